/*
 * The capture by ptrace: prepare, hold, read, release, then turn what was read into a snapshot.
 */
#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/elf.h"
#include "process/files.h"
#include "process/hold.h"
#include "process/maps.h"
#include "process/procfs.h"
#include "process/stacks.h"
#include "process/trouble.h"

#define MAPS_MAX ((size_t)256 << 20)
/* An exec in the window starts everything anew with the new program. */
#define TRIES_MAX 10

/* What one capture works with. */
struct job {
	struct captured *out;
	struct arena *arena;
	const struct capture_request *request;
	struct process process;
	struct process_status status;
	uint32_t *tids;
	size_t tid_count;
	struct task_stat *stats; /* per tid, from before the stop */
	struct hold hold;
	struct stacks stacks;
};

static bool refused(const struct job *job, struct err *e)
{
	return permission_explain(&job->process, &job->status, e);
}

/* Facts about the machine and the process. */

static const char *timestamp(struct arena *arena)
{
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	return arena_printf(arena, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", utc.tm_year + 1900,
			    utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
			    now.tv_nsec / 1000000);
}

static void arguments_read(struct job *job, struct snapshot *snapshot)
{
	VEC(const char *) arguments = {0};
	struct bytes text;

	if (!file_read_all(job->arena, job->process.dir, "cmdline", (size_t)4 << 20, &text,
			   NULL))
		return;
	for (struct reader r = reader_over(text); reader_more(&r);) {
		const char *argument = (const char *)r.at;

		/* A program may have overwritten the last NUL; file_read_all put one behind. */
		reader_skip(&r, strnlen(argument, reader_left(&r)));
		reader_skip(&r, reader_more(&r));
		*vec_push(job->arena, &arguments) = argument;
	}
	snapshot->arguments = arguments.at;
	snapshot->argument_count = arguments.count;
}

static void facts_read(struct job *job)
{
	struct snapshot *snapshot = &job->out->snapshot;
	struct utsname uts = {0};

	uname(&uts);
	*snapshot = (struct snapshot){
		.arch = arch_host(),
		.stacker_version = STACKER_VERSION,
		.timestamp = timestamp(job->arena),
		.hostname = arena_string(job->arena, uts.nodename),
		.kernel = arena_string(job->arena, uts.release),
		.pid = job->process.pid,
		.executable_path = process_link(&job->process, job->arena, "exe"),
	};
	arguments_read(job, snapshot);
}

/* A 32-bit program has another register set, stack layout and ELF class. */
static bool program_check(const struct job *job, struct err *e)
{
	SCOPED_FD int fd = openat(job->process.dir, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint8_t head[EI_NIDENT + 4] = {0};
	uint16_t machine;

	if (fd < 0 || read(fd, head, sizeof head) != (ssize_t)sizeof head)
		return true; /* not readable: the registers will tell */
	machine = (uint16_t)(head[EI_NIDENT + 2] | head[EI_NIDENT + 3] << 8);
	if (head[EI_CLASS] == ELFCLASS32)
		return err_set(
			e, ERR_UNSUPPORTED,
			"process %u (%s) is a 32-bit program: only 64-bit ones are supported",
			job->process.pid, job->status.name);
	if (machine != arch_host()->elf_machine)
		return err_set(
			e, ERR_UNSUPPORTED,
			"process %u (%s) is of another architecture than this stacker (%s)",
			job->process.pid, job->status.name, arch_host()->name);
	return true;
}

static bool maps_read(struct job *job, struct err *e)
{
	struct snapshot *snapshot = &job->out->snapshot;
	struct bytes text;
	struct err why = {0};

	if (!file_read_all(job->arena, job->process.dir, "maps", MAPS_MAX, &text, &why)) {
		if (why.kind == ERR_PERMISSION)
			return refused(job, e);
		if (why.kind == ERR_NOT_FOUND)
			return err_set(e, ERR_NOT_FOUND, "process %u is gone",
				       job->process.pid);
		*e = why;
		return err_within(e, "process %u", job->process.pid);
	}
	maps_parse(job->arena, text, &snapshot->maps, &snapshot->map_count);
	if (snapshot->map_count == 0)
		return err_set(e, ERR_NOT_FOUND, "process %u (%s) has no memory: it is ending",
			       job->process.pid, job->status.name);
	return true;
}

static bool threads_list(struct job *job, struct err *e)
{
	const struct capture_request *request = job->request;
	size_t room = job->status.threads + 64, found;

	if (request->tids) {
		job->tid_count = request->tid_count;
		job->tids = arena_array(job->arena, uint32_t, request->tid_count);
		memcpy(job->tids, request->tids, request->tid_count * sizeof job->tids[0]);
	} else {
		for (;; room = found + 64) {
			job->tids = arena_array(job->arena, uint32_t, room);
			found = task_list(&job->process, job->tids, room);
			if (found <= room)
				break;
		}
		job->tid_count = found;
	}
	if (job->tid_count == 0)
		return err_set(e, ERR_NOT_FOUND, "process %u is gone", job->process.pid);
	job->stats = arena_array(job->arena, struct task_stat, job->tid_count);
	for (size_t i = 0; i < job->tid_count; i++)
		if (!task_stat(&job->process, job->tids[i], &job->stats[i]) && request->tids)
			return err_set(e, ERR_NOT_FOUND, "process %u has no thread %u",
				       job->process.pid, job->tids[i]);
	return true;
}

static bool prepare(struct job *job, struct err *e)
{
	facts_read(job);
	if (!process_status(&job->process, &job->status, e) ||
	    !process_check(&job->process, &job->status, e) || !program_check(job, e) ||
	    !maps_read(job, e))
		return false;
	files_open(job->out, job->arena, &job->process);
	if (!threads_list(job, e))
		return false;
	job->hold = (struct hold){
		.process = &job->process,
		.arch = job->out->snapshot.arch,
		.timeout_ns = job->request->timeout_ns,
		.realtime = job->request->realtime,
		.rolling = job->request->rolling,
		.stacks = &job->stacks,
	};
	hold_prepare(&job->hold, job->arena, job->tids, job->tid_count);
	return stacks_reserve(&job->stacks, job->arena, &job->out->snapshot, job->request,
			      job->hold.count, e);
}

/* After the release: what was read becomes the snapshot. */

static const char *left_out_reason(const struct job *job, const struct held_thread *held)
{
	struct arena *arena = job->arena;

	switch (held->state) {
	case HELD_STOPPED:
		return held->foreign_registers ? "runs 32-bit code"
					       : "its registers are not readable";
	case HELD_LATE:
		return arena_printf(arena, "did not stop in %jums",
				    (uintmax_t)(job->hold.waited_ns / 1000000));
	case HELD_REFUSED:
		return arena_printf(arena, "could not be traced: %s", strerror(held->error));
	default:
		return "was not reached";
	}
}

/* "NUMBER args..." of /proc/PID/task/TID/syscall; "running" and -1 mean none. */
static int64_t syscall_number(const struct job *job, uint32_t tid)
{
	const char *text = process_text(&job->process, job->arena, tid, "syscall");

	return text && *text >= '0' && *text <= '9' ? strtoll(text, NULL, 10) : -1;
}

/* x86_64 keeps the number in ORIG_RAX, negative outside of system calls. aarch64 shows none. */
static int64_t syscall_of_registers(const struct arch *arch, const struct registers *registers)
{
	if (arch->syscall_slot >= arch->slot_count)
		return -1;
	return (int64_t)registers->at[arch->syscall_slot] >= 0
		       ? (int64_t)registers->at[arch->syscall_slot]
		       : -1;
}

static void left_out_describe(const struct job *job, struct thread *thread)
{
	thread->wait_channel = process_text(&job->process, job->arena, thread->tid, "wchan");
	thread->kernel_stack = process_text(&job->process, job->arena, thread->tid, "stack");
	thread->syscall = syscall_number(job, thread->tid);
	if (thread->wait_channel && strcmp(thread->wait_channel, "0") == 0)
		thread->wait_channel = NULL;
}

/* Name and state from before the stop; threads that appeared later are asked now. */
static struct task_stat stat_of(const struct job *job, size_t index)
{
	struct task_stat stat = {0};

	if (index < job->tid_count && job->tids[index] == job->hold.threads[index].tid &&
	    job->stats[index].state)
		return job->stats[index];
	task_stat(&job->process, job->hold.threads[index].tid, &stat);
	return stat;
}

static void thread_fill(const struct job *job, size_t index, struct thread *thread)
{
	const struct held_thread *held = &job->hold.threads[index];
	struct task_stat stat = stat_of(job, index);

	*thread = (struct thread){
		.tid = held->tid,
		.name = arena_string(job->arena, stat.name),
		.state = stat.state,
		.has_registers = held->has_registers,
		.registers = held->registers,
		.syscall = -1,
	};
	if (held->released_ns)
		thread->held_ns = held->released_ns - held->interrupted_ns;
	if (held->has_registers) {
		thread->syscall = syscall_of_registers(job->hold.arch, &held->registers);
		return;
	}
	thread->left_out = left_out_reason(job, held);
	left_out_describe(job, thread);
}

/* Pieces of one thread need not be neighbours in the plan: count, then fill. */
static void pieces_take(struct job *job, const int32_t *thread_of)
{
	struct snapshot *snapshot = &job->out->snapshot;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < job->stacks.count; i++) {
			const struct stack_copy *copy = &job->stacks.copies[i];
			struct thread *thread;

			if (thread_of[copy->thread] < 0)
				continue;
			thread = &snapshot->threads[thread_of[copy->thread]];
			if (pass == 1)
				thread->pieces[thread->piece_count] = (struct memory_piece){
					copy->va,
					{copy->at, copy->got},
				};
			else if (!copy->guessed)
				thread->stack_missing += copy->wanted - copy->got;
			thread->piece_count++;
		}
		for (size_t i = 0; pass == 0 && i < snapshot->thread_count; i++) {
			struct thread *thread = &snapshot->threads[i];

			thread->pieces = arena_array(job->arena, struct memory_piece,
						     thread->piece_count);
			thread->piece_count = 0;
		}
	}
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void capture_facts_fill(struct job *job)
{
	struct capture_facts *facts = &job->out->snapshot.capture;
	const struct snapshot *snapshot = &job->out->snapshot;
	uint64_t *held = arena_array(job->arena, uint64_t, snapshot->thread_count + 1);
	size_t count = 0;

	*facts = (struct capture_facts){
		.method = job->hold.rolling ? CAPTURE_PTRACE_ROLLING : CAPTURE_PTRACE,
		.calls_restarted = job->hold.restarted,
		.realtime = job->hold.raised,
		.stopped_ns = job->hold.end_ns - job->hold.begin_ns,
		.threads_found = (uint32_t)snapshot->thread_count,
	};
	if (job->hold.overflow)
		facts->method_note =
			"more new threads than there was room for: some are missing";
	for (size_t i = 0; i < snapshot->thread_count; i++) {
		const struct thread *thread = &snapshot->threads[i];

		if (thread->held_ns)
			held[count++] = thread->held_ns;
		facts->threads_left_out += thread->left_out != NULL;
		facts->stack_bytes_missing += thread->stack_missing;
		for (size_t p = 0; p < thread->piece_count; p++)
			facts->stack_bytes += thread->pieces[p].bytes.len;
	}
	qsort(held, count, sizeof held[0], compare_u64);
	facts->threads_stopped = (uint32_t)count;
	facts->held_median_ns = count ? held[count / 2] : 0;
	facts->held_longest_ns = count ? held[count - 1] : 0;
}

/* Sorts by tid with the main thread first; the index rides in the low half. */
static uint64_t order_key(const struct job *job, size_t index)
{
	uint64_t tid = job->hold.threads[index].tid;

	return (tid == job->process.pid ? 0 : tid << 32) | index;
}

/* The main thread first, then by tid; threads that exited are left away. */
static void snapshot_fill(struct job *job)
{
	struct snapshot *snapshot = &job->out->snapshot;
	const struct hold *hold = &job->hold;
	uint64_t *order = arena_array(job->arena, uint64_t, hold->count);
	int32_t *thread_of = arena_array(job->arena, int32_t, hold->count);
	size_t count = 0;

	for (size_t i = 0; i < hold->count; i++) {
		thread_of[i] = -1;
		if (hold->threads[i].state != HELD_GONE)
			order[count++] = order_key(job, i);
	}
	qsort(order, count, sizeof order[0], compare_u64);
	snapshot->threads = arena_array(job->arena, struct thread, count);
	snapshot->thread_count = count;
	for (size_t i = 0; i < count; i++) {
		uint32_t index = (uint32_t)order[i];

		thread_of[index] = (int32_t)i;
		thread_fill(job, index, &snapshot->threads[i]);
	}
	pieces_take(job, thread_of);
	snapshot->pac_code_mask = hold->pac_code_mask;
	capture_facts_fill(job);
}

/* The next executable mapping from `at` on, or NULL. */
static const struct map *next_code(const struct map *at, const struct map *end)
{
	while (at < end && !MAP_EXECUTABLE(at))
		at++;
	return at < end ? at : NULL;
}

static bool has_same_code(const struct map *a, size_t a_count, const struct map *b,
			  size_t b_count)
{
	const struct map *a_end = a + a_count, *b_end = b + b_count;

	for (;; a++, b++) {
		a = next_code(a, a_end);
		b = next_code(b, b_end);
		if (!a || !b)
			return !a && !b;
		if (a->start != b->start || a->end != b->end || a->inode != b->inode)
			return false;
	}
}

/* The maps as they are now: they know code that was loaded between the first reading and the hold
 * (dlopen, or a program that is just starting). */
static struct map *maps_again(struct job *job, size_t *count)
{
	struct bytes text;
	struct map *maps;

	*count = 0;
	if (!file_read_all(job->arena, job->process.dir, "maps", MAPS_MAX, &text, NULL))
		return NULL;
	maps_parse(job->arena, text, &maps, count);
	return maps;
}

static void maps_refresh(struct job *job, struct map *maps, size_t count)
{
	struct snapshot *snapshot = &job->out->snapshot;

	if (count == 0 || has_same_code(snapshot->maps, snapshot->map_count, maps, count))
		return;
	captured_close(job->out);
	snapshot->maps = maps;
	snapshot->map_count = count;
	files_open(job->out, job->arena, &job->process);
}

static size_t count_in_state(const struct hold *hold, enum held_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < hold->count; i++)
		count += hold->threads[i].state == state;
	return count;
}

/* Nothing at all could be held: say why. */
static bool outcome_check(struct job *job, struct err *e)
{
	const struct hold *hold = &job->hold;
	size_t stopped = count_in_state(hold, HELD_STOPPED);

	if (hold->ended_by)
		return err_set(e, ERR_INTERRUPTED, "ended by signal %d", hold->ended_by);
	if (stopped || count_in_state(hold, HELD_LATE))
		return true;
	if (count_in_state(hold, HELD_REFUSED)) {
		/* Somebody else may have attached since the check. */
		process_status(&job->process, &job->status, NULL);
		return refused(job, e);
	}
	return err_set(e, ERR_NOT_FOUND, "process %u ended while it was being traced",
		       job->process.pid);
}

/* Has it ended? A zombie leader with other threads has not: one of them may be calling exec. */
static bool has_ended(uint32_t pid)
{
	struct process_status status;
	struct process process;
	bool ended;

	if (!process_open(&process, pid, NULL))
		return true;
	ended = !process_status(&process, &status, NULL) ||
		((status.state == 'Z' || status.state == 'X') && status.threads <= 1);
	process_close(&process);
	return ended;
}

/* An exec that the hold could not see shows in the auxiliary vector. Asked of the process anew: an
 * exec from another thread takes that thread's id away. A process that has ended has no vector,
 * and one that is in the middle of an exec may show none. */
static bool image_changed(const struct job *job, const struct image_identity *before)
{
	struct image_identity now = {.size = 0};
	struct process process;

	if (process_open(&process, job->request->pid, NULL)) {
		now = image_identity(&process);
		process_close(&process);
	}
	return now.size ? !image_is_same(before, &now) : !has_ended(job->request->pid);
}

/* The maps must not be of one program and the registers of the next. */
static bool try_once(struct job *job, bool *again, struct err *e)
{
	struct image_identity before = image_identity(&job->process);
	struct map *maps;
	size_t map_count;
	bool ok;

	*again = false;
	if (!prepare(job, e) || !hold_run(&job->hold, !job->request->tids, e))
		return false;
	maps = maps_again(job, &map_count);
	*again = job->hold.exec_seen || image_changed(job, &before) ||
		 (map_count == 0 && !has_ended(job->request->pid));
	ok = !*again && outcome_check(job, e);
	if (ok) {
		maps_refresh(job, maps, map_count);
		snapshot_fill(job);
		job->out->perf_map = perf_map_read(job->arena, &job->process, &job->status);
		stacks_keep(&job->stacks);
	}
	stacks_release(&job->stacks);
	return ok;
}

bool process_capture(struct captured *out, struct arena *arena,
		     const struct capture_request *request, struct err *e)
{
	struct job job = {.out = out, .arena = arena, .request = request};
	bool ok = false, again = true;

	*out = (struct captured){0};
	for (int tries = 0; again && tries < TRIES_MAX; tries++) {
		captured_close(out);
		if (!process_open(&job.process, request->pid, e))
			return false;
		ok = try_once(&job, &again, e);
		process_close(&job.process);
	}
	if (again)
		err_set(e, ERR_BUSY,
			"process %u kept starting other programs (exec): try again",
			request->pid);
	stacks_release(&job.stacks);
	if (!ok)
		captured_close(out);
	return ok;
}
