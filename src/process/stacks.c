#include "process/stacks.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "process/reader.h"
#include "process/ready.h"

/* The smallest there is. */
#define PAGE UINT64_C(4096)
/* Of every thread first; what is beyond follows for those that have it, while the total lasts. */
#define FIRST_PART (UINT64_C(256) << 10)
/* Made ready beforehand for each thread: most blocked threads use less than this. */
#define EXPECTED_PART (UINT64_C(12) << 10)
/* A stack inside a large mapping that nothing bounds (a coroutine's, in a heap). */
#define UNBOUNDED_PART (UINT64_C(256) << 10)
#define LARGE_MAPPING (UINT64_C(16) << 20)
/* An SP in no known mapping: a thread that is newer than our maps. */
#define UNKNOWN_PART (UINT64_C(64) << 10)
/* Handlers interrupted by handlers on further alternate stacks. */
#define STACK_SWITCHES_MAX 4
/* How far above a handler's SP its signal frame is looked for. */
#define HANDLER_PART (UINT64_C(64) << 10)
/* Larger than any that is in use: Go takes 32 KiB, Rust and the JVM some pages. */
#define ALTERNATE_STACK_MAX (UINT64_C(64) << 20)
/* How much of a frame below its frame record is copied too (unwind/go.c: SWITCHING_FRAME_MAX). */
#define CHAINED_FRAME_MAX (UINT64_C(8) << 10)
/* Frames on the stack that goroutines are left for: a garbage collection has about 20. */
#define CHAIN_MAX 256
/* Where Go's heap begins, which goroutines' stacks are part of (runtime/malloc.go, arenaHints). */
#define GO_HEAP UINT64_C(0xc000000000)
/* All threads are held while a file system is waited for that has to supply memory. */
#define FILE_WAIT_NS UINT64_C(20000000)
#define GO_HEAP_MAX (UINT64_C(1) << 40)

/* Frame pointers are kept everywhere in Go; elsewhere they may be any register, and lead
 * anywhere. */
static int chain_slot(const struct snapshot *snapshot)
{
	const struct arch *arch = snapshot->arch;

	for (size_t i = 0; i < arch->register_count; i++)
		if (arch->registers[i].dwarf == arch->dwarf_fp &&
		    snapshot_map_at(snapshot, GO_HEAP))
			return arch->registers[i].slot;
	return -1;
}

bool stacks_reserve(struct stacks *stacks, struct arena *arena, const struct snapshot *snapshot,
		    const struct capture_request *request, size_t threads, struct err *e)
{
	*stacks = (struct stacks){
		.snapshot = snapshot,
		.limit = request->stack_limit,
		.total = request->stack_total,
		.read_limit_ns = request->timeout_ns,
		.capacity = threads * 3 + 64,
		.thread_count = threads,
		.chain_slot = chain_slot(snapshot),
	};
	stacks->copies = arena_array(arena, struct stack_copy, stacks->capacity);
	stacks->unplanned = arena_array(arena, uint64_t, threads);
	stacks->here = arena_array(arena, struct iovec, STACKS_BATCH);
	stacks->there = arena_array(arena, struct iovec, STACKS_BATCH);
	stacks->buffer = mmap(NULL, stacks->total, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks->buffer == MAP_FAILED) {
		stacks->buffer = NULL;
		return err_set(
			e, ERR_SYSTEM,
			"reserving %ju bytes for stacks: %s: --stack-total asks for less",
			(uintmax_t)stacks->total, strerror(errno));
	}
	return true;
}

void stacks_ready(struct stacks *stacks, size_t threads)
{
	uint64_t expected = threads * EXPECTED_PART;

	if (expected > stacks->total)
		expected = stacks->total;
	memory_ready(stacks->copies, stacks->capacity * sizeof stacks->copies[0]);
	memory_ready(stacks->unplanned, stacks->thread_count * sizeof stacks->unplanned[0]);
	memory_ready(stacks->here, STACKS_BATCH * sizeof stacks->here[0]);
	memory_ready(stacks->there, STACKS_BATCH * sizeof stacks->there[0]);
	/* Large pages first: of 10,000 threads that is 60 faults instead of 30,000. */
	madvise(stacks->buffer, expected, MADV_HUGEPAGE);
	memory_ready(stacks->buffer, expected);
}

/* The bytes of what is forgotten stay where they are, since moving the others takes time, as long as
 * there is plenty of room. */
void stacks_forget(struct stacks *stacks, const struct stack_owner *owners)
{
	bool is_short = stacks->used > stacks->total / 2;
	uint64_t end = 0;
	size_t kept = 0;

	for (size_t i = 0; i < stacks->thread_count; i++)
		if (owners[i].registers)
			stacks->unplanned[i] = 0;
	for (size_t i = 0; i < stacks->count; i++) {
		struct stack_copy copy = stacks->copies[i];

		if (owners[copy.thread].registers)
			continue;
		if (is_short) {
			memmove(stacks->buffer + end, copy.at, copy.got);
			copy.at = stacks->buffer + end;
		}
		end = (uint64_t)(copy.at - stacks->buffer) + ((copy.got + 7) & ~UINT64_C(7));
		stacks->copies[kept++] = copy;
	}
	stacks->used = end;
	stacks->count = kept;
}

struct stacks_mark stacks_mark(const struct stacks *stacks)
{
	return (struct stacks_mark){stacks->count, stacks->used};
}

void stacks_take_back(struct stacks *stacks, struct stacks_mark mark, size_t row)
{
	stacks->count = mark.count;
	stacks->used = mark.used;
	stacks->unplanned[row] = 0;
}

void stacks_release(struct stacks *stacks)
{
	if (stacks->buffer)
		munmap(stacks->buffer, stacks->total);
	stacks->buffer = NULL;
}

/* The main stack grows downwards into addresses that were not yet mapped when maps was read:
 * the next mapping above is then the one. */
static uint64_t end_of_growing_stack(const struct snapshot *snapshot, uint64_t sp)
{
	size_t low = 0, high = snapshot->map_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (snapshot->maps[middle].start <= sp)
			low = middle + 1;
		else
			high = middle;
	}
	return low < snapshot->map_count && strcmp(snapshot->maps[low].path, "[stack]") == 0
		       ? snapshot->maps[low].end
		       : 0;
}

static uint64_t stack_end(const struct snapshot *snapshot, uint64_t sp, uint64_t block,
			  bool *guessed)
{
	const struct map *map = snapshot_map_at(snapshot, sp);
	uint64_t end;

	*guessed = false;
	if (!map) {
		end = end_of_growing_stack(snapshot, sp);
		*guessed = end == 0;
		return end ? end : (sp & ~(PAGE - 1)) + UNKNOWN_PART;
	}
	if (block > sp && block < map->end && strcmp(map->path, "[stack]") != 0)
		return block;
	if (strcmp(map->path, "[stack]") != 0 && map->end - map->start > LARGE_MAPPING &&
	    map->end - sp > UNBOUNDED_PART) {
		*guessed = true;
		return sp + UNBOUNDED_PART;
	}
	return map->end;
}

/* Whether this stretch is there already: alternate stacks may lead back to a stack that was
 * copied for the same thread. */
static bool is_planned(const struct stacks *stacks, uint32_t thread, uint64_t va)
{
	for (size_t i = stacks->count;
	     i-- > 0 && stacks->count - i <= 2 * STACK_SWITCHES_MAX;) {
		const struct stack_copy *copy = &stacks->copies[i];

		if (copy->thread == thread && va >= copy->va && va - copy->va < copy->wanted)
			return true;
	}
	return false;
}

static struct stack_copy *copy_plan(struct stacks *stacks, uint32_t thread, uint64_t va,
				    uint64_t wanted, uint64_t part)
{
	struct stack_copy *copy = &stacks->copies[stacks->count];
	uint64_t size = wanted < part ? wanted : part;

	if (stacks->count == stacks->capacity)
		return NULL;
	if (stacks->avoid && !avoid_permits_memory(stacks->avoid, stacks->snapshot, va))
		size = 0;
	if (size > stacks->total - stacks->used)
		size = (stacks->total - stacks->used) & ~UINT64_C(7);
	*copy = (struct stack_copy){
		.thread = thread,
		.va = va,
		.wanted = wanted,
		.got = size,
		.at = stacks->buffer + stacks->used,
	};
	stacks->used += (size + 7) & ~UINT64_C(7);
	if (stacks->used > stacks->total)
		stacks->used = stacks->total;
	stacks->count++;
	return copy;
}

static void stack_plan(struct stacks *stacks, uint32_t thread, uint64_t sp, uint64_t block)
{
	uint64_t begin = (sp - stacks->snapshot->arch->red_zone) & ~UINT64_C(7);
	const struct map *map = snapshot_map_at(stacks->snapshot, sp);
	bool guessed;
	uint64_t end = stack_end(stacks->snapshot, sp, block, &guessed);
	struct stack_copy *copy;

	/* The red zone of a stack pointer at its mapping's very beginning belongs to the guard. */
	if (map && begin < map->start)
		begin = map->start;
	if (sp == 0 || end <= begin)
		return;
	copy = copy_plan(stacks, thread, begin, end - begin,
			 stacks->limit < FIRST_PART ? stacks->limit : FIRST_PART);
	if (copy) {
		copy->guessed = guessed;
		copy->from_file = map && map->inode != 0;
	} else if (!guessed)
		stacks->unplanned[thread] += end - begin;
}

/* How many from `from` on are read with one call: memory that a file supplies is not among them. */
static size_t batch_size(const struct stacks *stacks, size_t from, size_t to)
{
	size_t most = stacks->avoid && stacks->avoid->one_by_one ? 1 : STACKS_BATCH, size = 0;

	while (from + size < to && size < most && !stacks->copies[from + size].from_file)
		size++;
	return size;
}

static void file_copy_read(struct stacks *stacks, struct stack_copy *copy)
{
	if (stacks->files_silent || !copy->got) {
		copy->got = 0;
		return;
	}
	step_begin(STEP_STACKS, copy->va, NULL);
	copy->got = reader_read(stacks->tid, copy->va, copy->at, copy->got, FILE_WAIT_NS);
	stacks->files_silent = copy->got == 0;
	step_end();
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A batch from `from` on; the next one that is to be read. */
static size_t batch_read(struct stacks *stacks, size_t from, size_t batch)
{
	struct iovec *local = stacks->here, *remote = stacks->there;
	uint64_t begin = now_ns();
	ssize_t got;

	for (size_t i = 0; i < batch; i++) {
		struct stack_copy *copy = &stacks->copies[from + i];

		local[i] = (struct iovec){copy->at, copy->got};
		remote[i] = (struct iovec){(void *)(uintptr_t)copy->va, copy->got};
	}
	step_begin(STEP_STACKS, stacks->copies[from].va, NULL);
	got = process_vm_readv((pid_t)stacks->tid, local, batch, remote, batch, 0);
	stacks->refused |= got < 0 && errno == EPERM;
	if (got < 0)
		got = 0;
	for (size_t i = 0; i < batch; i++) {
		struct stack_copy *copy = &stacks->copies[from];

		from++;
		if ((uint64_t)got < copy->got) {
			copy->got = (uint64_t)got;
			break;
		}
		got -= (ssize_t)copy->got;
	}
	step_end();
	stacks->read_ns += now_ns() - begin;
	return from;
}

/* Copies [from, to) of the plan. `got` holds the size planned and then what really came: the
 * call ends at the first page that is not there, and the rest is asked again after it. */
static void copies_read(struct stacks *stacks, size_t from, size_t to)
{
	while (from < to) {
		if (stacks->read_limit_ns && stacks->read_ns > stacks->read_limit_ns)
			stacks->copies[from++].got = 0;
		else if (stacks->copies[from].from_file)
			file_copy_read(stacks, &stacks->copies[from++]);
		else
			from = batch_read(stacks, from, batch_size(stacks, from, to));
	}
}

/* What is beyond the first part, for those that have it. */
static void rests_copy(struct stacks *stacks, size_t from)
{
	size_t first = stacks->count;

	for (size_t i = from; i < first; i++) {
		struct stack_copy *copy = &stacks->copies[i], *rest;
		uint64_t wanted = copy->wanted < stacks->limit ? copy->wanted : stacks->limit;

		if (copy->got != FIRST_PART || wanted <= FIRST_PART)
			continue;
		rest = copy_plan(stacks, copy->thread, copy->va + FIRST_PART,
				 copy->wanted - FIRST_PART, wanted - FIRST_PART);
		if (!rest)
			continue;
		rest->from_file = copy->from_file;
		copy->wanted = FIRST_PART;
	}
	copies_read(stacks, first, stacks->count);
}

static uint64_t word_at(const struct stack_copy *copy, uint64_t off)
{
	uint64_t word = 0;

	if (off <= copy->got && copy->got - off >= sizeof word)
		memcpy(&word, copy->at + off, sizeof word);
	return word;
}

static bool is_writable(const struct snapshot *snapshot, uint64_t va)
{
	const struct map *map = snapshot_map_at(snapshot, va);

	return map && MAP_WRITABLE(map);
}

/* Is there a signal frame at `off` (where SP is at the trampoline)? It is known by its
 * uc_stack, {ss_sp, ss_flags, ss_size}, where the kernel noted the alternate stack itself: that
 * must be writable memory (perhaps of two mappings, .data and .bss) and hold the frame. */
static bool is_signal_frame(const struct stacks *stacks, const struct stack_copy *copy,
			    uint64_t off)
{
	uint64_t stack_off = off + stacks->snapshot->arch->sigframe_stack;
	uint64_t base = word_at(copy, stack_off);
	uint64_t flags = word_at(copy, stack_off + 8) & 0xffffffff;
	uint64_t size = word_at(copy, stack_off + 16);

	return flags <= 2 && size <= ALTERNATE_STACK_MAX && base <= copy->va + off &&
	       copy->va + off - base < size && is_writable(stacks->snapshot, base) &&
	       is_writable(stacks->snapshot, base + size - 1);
}

/* The stack pointer that a signal frame in this copy interrupted, when its handler runs on an
 * alternate stack; 0 when there is none. Handlers that interrupt handlers on the same stack
 * lead nowhere new. Frames are aligned to 16 on both architectures. */
static uint64_t interrupted_sp(const struct stacks *stacks, const struct stack_copy *copy)
{
	const struct arch *arch = stacks->snapshot->arch;
	uint64_t sp_off = arch->sigframe_registers;
	uint64_t end = copy->got < HANDLER_PART ? copy->got : HANDLER_PART;

	for (size_t i = 0; i < arch->sigframe_words; i++)
		if (arch->sigframe_slots[i] == arch->sp_slot)
			sp_off += 8 * i;
	for (uint64_t off = -copy->va & 15; off + sp_off + 8 <= end; off += 16) {
		uint64_t sp = word_at(copy, off + sp_off);

		if (sp - copy->va >= copy->wanted && is_signal_frame(stacks, copy, off) &&
		    is_writable(stacks->snapshot, sp))
			return sp;
	}
	return 0;
}

/* A thread's own stack holds its control block or is the main stack: only elsewhere is a signal
 * frame looked for. */
static bool is_alternate(const struct stacks *stacks, uint64_t sp, uint64_t block)
{
	const struct map *map = snapshot_map_at(stacks->snapshot, sp);

	return map && strcmp(map->path, "[stack]") != 0 && !(block > sp && block < map->end);
}

static void alternates_copy(struct stacks *stacks, const struct stack_owner *owners,
			    size_t from)
{
	for (int round = 0; round < STACK_SWITCHES_MAX; round++) {
		size_t to = stacks->count;

		for (size_t i = from; i < to; i++) {
			const struct stack_copy *copy = &stacks->copies[i];
			const struct arch *arch = stacks->snapshot->arch;
			uint64_t block = owners[copy->thread].thread_pointer;
			uint64_t sp = 0;

			if (copy->got && is_alternate(stacks, copy->va + arch->red_zone, block))
				sp = interrupted_sp(stacks, copy);
			if (sp && !is_planned(stacks, copy->thread, sp))
				stack_plan(stacks, copy->thread, sp, block);
		}
		if (stacks->count == to)
			return;
		copies_read(stacks, to, stacks->count);
		from = to;
	}
}

/* Where the thread's chain of frame records leaves this copy for writable memory elsewhere; 0
 * where it does not. */
static uint64_t chained_record(const struct stacks *stacks, const struct stack_copy *copy,
			       const struct registers *registers)
{
	uint64_t record = registers->at[stacks->chain_slot];

	for (int i = 0; i < CHAIN_MAX && record % 8 == 0; i++) {
		uint64_t off = record - copy->va;

		if (off >= copy->wanted)
			return is_writable(stacks->snapshot, record) ? record : 0;
		record = word_at(copy, off);
	}
	return 0;
}

/* The same where C code, called by the runtime, has put something else into the frame pointer:
 * the first words that look like a frame record which leads to Go's heap elsewhere. */
static uint64_t record_to_heap(const struct stacks *stacks, const struct stack_copy *copy)
{
	uint64_t end = copy->got < HANDLER_PART ? copy->got : HANDLER_PART;

	for (uint64_t off = 0; off + 16 <= end; off += 8) {
		uint64_t record = word_at(copy, off);
		const struct map *code;

		if (record - GO_HEAP >= GO_HEAP_MAX || record % 8 ||
		    record - copy->va < copy->wanted)
			continue;
		code = snapshot_map_at(stacks->snapshot, word_at(copy, off + 8));
		if (code && code->permissions[2] == 'x' &&
		    is_writable(stacks->snapshot, record))
			return record;
	}
	return 0;
}

static void chained_copy(struct stacks *stacks, const struct stack_owner *owners, size_t from)
{
	size_t to = stacks->count;

	for (size_t i = from; i < to; i++) {
		const struct stack_copy *copy = &stacks->copies[i];
		const struct stack_owner *owner = &owners[copy->thread];
		uint64_t record = chained_record(stacks, copy, owner->registers);
		const struct map *map;

		if (!record)
			record = record_to_heap(stacks, copy);
		map = snapshot_map_at(stacks->snapshot, record);
		if (!record || !map)
			continue;
		record -= record - map->start < CHAINED_FRAME_MAX ? record - map->start
								  : CHAINED_FRAME_MAX;
		stack_plan(stacks, copy->thread, record, owner->thread_pointer);
	}
	copies_read(stacks, to, stacks->count);
}

void stacks_copy(struct stacks *stacks, const struct stack_owner *owners, size_t from,
		 size_t to)
{
	const struct arch *arch = stacks->snapshot->arch;
	size_t first = stacks->count;

	stacks->read_ns = 0;
	for (size_t i = from; i < to; i++)
		if (owners[i].registers)
			stack_plan(stacks, (uint32_t)i, owners[i].registers->at[arch->sp_slot],
				   owners[i].thread_pointer);
	copies_read(stacks, first, stacks->count);
	if (stacks->chain_slot >= 0)
		chained_copy(stacks, owners, first);
	alternates_copy(stacks, owners, first);
	rests_copy(stacks, first);
}
