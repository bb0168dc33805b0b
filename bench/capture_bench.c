/*
 * bench/capture_bench: size, time and memory of writing and reading the capture of a large
 * process, and of printing its report.
 *
 *     capture_bench [THREADS [FRAMES]]      10,000 threads of 33 frames unless told otherwise
 *
 * Built by `make bench`.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "output/report.h"
#include "snapshot/capture_file.h"

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say(const char *what, double begin, size_t bytes)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("%-12s %8.1f ms cpu  %7.2f MB  peak %6.1f MB\n", what,
	       (cpu_seconds() - begin) * 1e3, (double)bytes / 1e6,
	       (double)usage.ru_maxrss / 1e3);
}

static void make_thread(struct arena *arena, struct thread *thread, uint32_t tid, size_t frames)
{
	thread->tid = tid;
	thread->name = arena_printf(arena, "worker-%u", tid);
	thread->state = 'S';
	thread->syscall = 202;
	thread->has_registers = true;
	for (size_t i = 0; i < ARCH_SLOTS; i++)
		thread->registers.at[i] = UINT64_C(0x7f8b8c0d4000) + i * tid;
	thread->stack.count = frames;
	thread->stack.frames = arena_array(arena, struct frame, frames);
	for (size_t i = 0; i < frames; i++)
		thread->stack.frames[i] =
			(struct frame){UINT64_C(0x7f8b8c0d4000) + i * 64 + tid,
				       i ? PC_RETURN : PC_EXACT,
				       i ? FOUND_CFI : FOUND_REGISTERS};
	thread->stack.stop = STOP_OUTERMOST;
}

static void make_snapshot(struct arena *arena, struct snapshot *out, size_t threads,
			  size_t frames)
{
	*out = (struct snapshot){
		.arch = &arch_x86_64,
		.stacker_version = "0.1.0",
		.timestamp = "2026-01-02T03:04:05Z",
		.hostname = "bench",
		.kernel = "6.1.0",
		.pid = 1000,
		.executable_path = "/usr/bin/bench",
		.thread_count = threads,
	};
	out->threads = arena_array(arena, struct thread, threads);
	for (size_t i = 0; i < threads; i++)
		make_thread(arena, &out->threads[i], 1000 + (uint32_t)i, frames);
}

static void make_report(struct arena *arena, const struct snapshot *snapshot,
			struct report *out)
{
	*out = (struct report){.snapshot = snapshot, .thread_count = snapshot->thread_count};
	out->threads = arena_array(arena, struct report_thread, out->thread_count);
	for (size_t i = 0; i < out->thread_count; i++) {
		const struct thread *thread = &snapshot->threads[i];
		struct report_thread *reported = &out->threads[i];

		reported->thread = thread;
		reported->frame_count = thread->stack.count;
		reported->frames =
			arena_array(arena, struct report_frame, reported->frame_count);
		for (size_t k = 0; k < reported->frame_count; k++)
			reported->frames[k] = (struct report_frame){
				.pc = thread->stack.frames[k].pc,
				.function = "worker_pool_take_and_run_next",
				.file = "/build/bench/src/worker/pool.c",
				.line = 123,
				.module = "/usr/bin/bench",
				.module_name = "bench",
				.build_id = "0123456789abcdef0123456789abcdef01234567",
				.module_off = 0x1234,
				.found_by = (enum found_by)thread->stack.frames[k].found_by,
			};
	}
}

/* A printer's output goes through stdio as it does in the program. */
static void bench_reports(const struct report *report)
{
	const struct report_options options = {.registers = true, .maps = true};
	FILE *null = fopen("/dev/null", "w");
	double begin = cpu_seconds();

	if (!null)
		exit(1);
	report_print_head(null, report->snapshot, &options);
	report_print_threads(null, report, &options);
	say("text report", begin, 0);
	begin = cpu_seconds();
	report_print_json(null, report, &options, NULL);
	say("JSON report", begin, 0);
	fclose(null);
}

int main(int argc, char **argv)
{
	size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
	size_t frames = argc > 2 ? strtoul(argv[2], NULL, 10) : 33;
	const struct capture_options options = {0};
	struct arena arena = {0}, read_arena = {0};
	struct snapshot snapshot, again;
	struct report report;
	struct err e = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	double begin;

	make_snapshot(&arena, &snapshot, threads, frames);
	begin = cpu_seconds();
	if (!stream || !capture_write(stream, &snapshot, &options, &e) || fclose(stream) != 0)
		return 1;
	say("write", begin, size);
	begin = cpu_seconds();
	if (!capture_read(&read_arena, (struct bytes){(const uint8_t *)text, size}, "bench",
			  &again, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	say("read", begin, size);
	make_report(&arena, &again, &report);
	bench_reports(&report);
	arena_free(&arena);
	arena_free(&read_arena);
	free(text);
	return 0;
}
