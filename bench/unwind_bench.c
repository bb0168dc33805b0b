/*
 * unwind_bench [THREADS [ROUNDS]]: frames unwound per second.
 *
 * The process is made of this program itself: the call frame information, the registers and the stack
 * of a recursion through functions with frames of several kinds are real, and every thread of the
 * made-up snapshot has a copy of that stack (so that caches are not kept warm by one and the same).
 * The first round is cold, as every pc is new; the fastest of the others is warm.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "process/maps.h"
#include "unwind/unwind.h"

#define DEPTH 10 /* calls of each of three functions: 33 frames with those around them */

struct sample {
	struct registers registers;
	uint64_t stack[2048];
	uint64_t sp, size;
};

static struct sample sample;
static volatile int zero;

/* Registers as at the point of the call: enough for a walk that begins here. */
static __attribute__((noinline)) void take_sample(uint64_t stack_end)
{
	struct registers *r = &sample.registers;
	const struct arch *arch = arch_host();
	uint64_t values[4];

#if defined(__x86_64__)
	__asm__ volatile(
		"lea 0(%%rip), %%rax; mov %%rax, %0; mov %%rsp, %1; mov %%rbp, %2; mov %%rbx, %3"
		: "=m"(values[0]), "=m"(values[1]), "=m"(values[2]), "=m"(values[3])
		:
		: "rax", "memory");
	enum { FRAME_POINTER = 4, SAVED = 5 };
#elif defined(__aarch64__)
	__asm__ volatile(
		"adr x9, .; str x9, %0; mov x9, sp; str x9, %1; str x29, %2; str x19, %3"
		: "=m"(values[0]), "=m"(values[1]), "=m"(values[2]), "=m"(values[3])
		:
		: "x9", "memory");
	enum { FRAME_POINTER = 29, SAVED = 19 };
#endif
	r->at[arch->pc_slot] = values[0];
	r->at[arch->sp_slot] = sample.sp = values[1];
	r->at[FRAME_POINTER] = values[2];
	r->at[SAVED] = values[3];
	sample.size = stack_end - values[1];
	if (sample.size > sizeof sample.stack)
		sample.size = sizeof sample.stack;
	memcpy(sample.stack, (const void *)(uintptr_t)values[1], sample.size);
}

static int third(int depth, uint64_t stack_end);

static __attribute__((noinline)) int first(int depth, uint64_t stack_end)
{
	return third(depth, stack_end) + zero;
}

static __attribute__((noinline)) int second(int depth, uint64_t stack_end)
{
	volatile char room[100];
	int a = zero, b = zero + depth;

	room[depth] = (char)a;
	return first(depth, stack_end) * a + b * room[depth];
}

static __attribute__((noinline)) int third(int depth, uint64_t stack_end)
{
	if (depth == 0) {
		take_sample(stack_end);
		return zero;
	}
	return second(depth - 1, stack_end) + depth * zero;
}

/* One module for each mapped file. */
static void make_modules(struct arena *arena, struct snapshot *snapshot)
{
	snapshot->modules = arena_array(arena, struct snapshot_module, snapshot->map_count);
	for (size_t i = 0; i < snapshot->map_count; i++) {
		struct map *map = &snapshot->maps[i];
		size_t m = 0;

		map->module = -1;
		if (map->path[0] != '/')
			continue;
		while (m < snapshot->module_count &&
		       strcmp(snapshot->modules[m].path, map->path) != 0)
			m++;
		map->module = (int32_t)m;
		if (m < snapshot->module_count) {
			snapshot->modules[m].end = map->end;
			continue;
		}
		snapshot->modules[snapshot->module_count++] =
			(struct snapshot_module){.path = map->path,
						 .start = map->start,
						 .end = map->end};
	}
}

static void make_threads(struct arena *arena, struct snapshot *snapshot, size_t count)
{
	snapshot->thread_count = count;
	snapshot->threads = arena_array(arena, struct thread, count);
	for (size_t i = 0; i < count; i++) {
		struct memory_piece *piece = arena_new(arena, struct memory_piece);
		const char *copy = arena_copy(arena, sample.stack, sample.size);

		*piece = (struct memory_piece){sample.sp, {(const uint8_t *)copy, sample.size}};
		snapshot->threads[i] = (struct thread){
			.tid = (uint32_t)i + 1,
			.has_registers = true,
			.registers = sample.registers,
			.pieces = piece,
			.piece_count = 1,
		};
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Unwinds all threads once. */
static double round_seconds(struct unwinder *unwinder, struct snapshot *snapshot)
{
	double begin = seconds();

	unwind_all(unwinder, snapshot);
	return seconds() - begin;
}

static void say(const char *what, double time, uint64_t frames)
{
	printf("%-5s %9.3f ms  %6.1f ns a frame  %5.1f million frames/s\n", what, time * 1e3,
	       time * 1e9 / (double)frames, (double)frames / time / 1e6);
}

static void print_stack(const struct stack *stack)
{
	printf("%zu frames a thread; ends: %s%s%s\n", stack->count, stop_text(stack->stop),
	       stack->stop_detail ? " " : "", stack->stop_detail ? stack->stop_detail : "");
}

static void measure(struct arena *arena, struct snapshot *snapshot, struct modules *modules,
		    int rounds)
{
	struct unwinder *unwinder = unwinder_new(arena, snapshot, modules, NULL);
	double cold = round_seconds(unwinder, snapshot), warm = cold;
	uint64_t frames = snapshot->thread_count * snapshot->threads[0].stack.count;

	for (int i = 1; i < rounds; i++) {
		double time = round_seconds(unwinder, snapshot);

		warm = time < warm ? time : warm;
	}
	print_stack(&snapshot->threads[0].stack);
	say("cold", cold, frames);
	say("warm", warm, frames);
}

int main(int argc, char **argv)
{
	size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	int rounds = argc > 2 ? atoi(argv[2]) : 10;
	struct arena arena = {0};
	struct snapshot snapshot = {.arch = arch_host()};
	struct modules modules;
	struct bytes text;
	struct err e;

	zero = third(DEPTH, (uint64_t)(uintptr_t)__builtin_frame_address(0) + 1024);
	if (!file_read_all(&arena, AT_FDCWD, "/proc/self/maps", 1 << 20, &text, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	maps_parse(&arena, text, &snapshot.maps, &snapshot.map_count);
	make_modules(&arena, &snapshot);
	make_threads(&arena, &snapshot, threads);
	modules_open_offline(&modules, &arena, &snapshot, &(struct module_search){0}, NULL);
	measure(&arena, &snapshot, &modules, rounds);
	return 0;
}
