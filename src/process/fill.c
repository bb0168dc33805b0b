/*
 * After the release: what was read becomes the snapshot.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "process/calls.h"
#include "process/job.h"
#include "process/ready.h"

static const char *left_out_reason(const struct job *job, const struct held_thread *held)
{
	struct arena *arena = job->arena;

	switch (held->state) {
	case HELD_STOPPED:
	case HELD_UNTOUCHED:
		return held->foreign_registers ? "runs 32-bit code"
					       : "its registers are not readable";
	case HELD_LATE:
		return arena_printf(arena, "did not stop in %jums",
				    (uintmax_t)(job->hold.waited_ns / 1000000));
	case HELD_REFUSED:
		return arena_printf(arena, "could not be traced: %s", strerror(held->error));
	case HELD_RUNNING:
		return "was running, and is not to be stopped";
	case HELD_UNSETTLED:
		return "ran between two looks, and is not to be stopped";
	case HELD_UNSEEN:
		return "was not shown by the task iterator, and is not to be stopped";
	default:
		return "was not reached";
	}
}

static void left_out_describe(const struct job *job, struct thread *thread)
{
	struct task_call call;

	step_begin(STEP_TEXTS, thread->tid, NULL);
	thread->wait_channel = process_text(&job->process, job->arena, thread->tid, "wchan");
	thread->kernel_stack = process_text(&job->process, job->arena, thread->tid, "stack");
	if (task_call(&job->process, thread->tid, &call))
		thread->syscall = call.number;
	if (thread->wait_channel && strcmp(thread->wait_channel, "0") == 0)
		thread->wait_channel = NULL;
}

/* Name and state from before the stop; threads that appeared later are asked now. */
static struct task_stat stat_of(const struct job *job, size_t index)
{
	const struct held_thread *thread = &job->table.threads[index];
	struct task_stat stat = {.state = thread->seen_state};

	memcpy(stat.name, thread->name, sizeof thread->name);
	if (thread->has_name && thread->seen_state)
		return stat;
	if (job->stats && index < job->tid_count && job->tids[index] == thread->tid &&
	    job->stats[index].state)
		return job->stats[index];
	task_stat(&job->process, thread->tid, &stat);
	return stat;
}

/* Asked only of threads that a tracer has stopped, and of those that we could not attach. Most often
 * all have the same. */
static void tracer_describe(struct job *job, const struct held_thread *held,
			    struct thread *thread)
{
	struct tracer *known = &job->patience.seen;
	uint32_t tid;

	if (thread->state != 't' && held->state != HELD_REFUSED)
		return;
	step_begin(STEP_PROCESS, thread->tid, NULL);
	tid = task_tracer(&job->process, thread->tid);
	if (!tid)
		return;
	if (tid != known->pid)
		tracer_name(known, tid);
	thread->tracer_pid = known->pid;
	thread->tracer_name = arena_string(job->arena, known->name);
}

static void thread_fill(struct job *job, size_t index, struct thread *thread)
{
	const struct held_thread *held = &job->table.threads[index];
	struct task_stat stat = stat_of(job, index);

	*thread = (struct thread){
		.tid = held->tid,
		.name = arena_string(job->arena, stat.name),
		.state = held->kernel_state ? held->kernel_state : stat.state,
		.has_registers = held->has_registers,
		.registers = held->registers,
		.syscall = -1,
	};
	if (held->released_ns)
		thread->held_ns = held->released_ns - held_from_ns(held);
	tracer_describe(job, held, thread);
	if (held->has_registers) {
		thread->syscall = call_number(job->hold.arch, &held->registers, &held->call);
		return;
	}
	thread->left_out = left_out_reason(job, held);
	if (!job->avoid->texts)
		left_out_describe(job, thread);
}

/* The copied stacks, where the other process sees them. */
static uint8_t *stacks_shared(const struct job *job)
{
	size_t size = job->stacks.used;
	uint8_t *bytes = arena_alloc(job->arena, size + 1, 1);

	memory_populate(bytes, size);
	if (size)
		memcpy(bytes, job->stacks.buffer, size);
	return bytes;
}

/* Pieces of one thread need not be neighbours in the plan: count, then fill. */
static void pieces_take(struct job *job, const int32_t *thread_of)
{
	struct snapshot *snapshot = &job->out->snapshot;
	uint8_t *bytes = stacks_shared(job);

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
					{bytes + (copy->at - job->stacks.buffer), copy->got},
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

static enum capture_method method_of(const struct job *job)
{
	if (iterator_is_open(&job->iterator))
		return CAPTURE_BPF;
	return job->hold.rolling ? CAPTURE_PTRACE_ROLLING : CAPTURE_PTRACE;
}

/* Is there an instant at which all pictures were true? */
static void instant_fill(const struct job *job, struct capture_facts *facts)
{
	uint64_t latest_begin = 0, earliest_end = UINT64_MAX;

	for (size_t i = 0; i < job->table.count; i++) {
		const struct held_thread *thread = &job->table.threads[i];

		if (!thread->has_registers || thread->state == HELD_GONE)
			continue;
		facts->threads_untouched += thread->state == HELD_UNTOUCHED;
		if (thread->from_ns > latest_begin)
			latest_begin = thread->from_ns;
		if (thread->until_ns < earliest_end)
			earliest_end = thread->until_ns;
	}
	if (latest_begin)
		facts->instant = latest_begin < earliest_end ? INSTANT_ONE : INSTANT_SEVERAL;
}

static void capture_facts_fill(struct job *job)
{
	struct capture_facts *facts = &job->out->snapshot.capture;
	const struct snapshot *snapshot = &job->out->snapshot;
	uint64_t *held = arena_array(job->arena, uint64_t, snapshot->thread_count + 1);
	size_t count = 0;

	*facts = (struct capture_facts){
		.method = method_of(job),
		.method_note = job->method_note,
		.calls_restarted = job->hold.restarted,
		.realtime = job->hold.raised,
		.capture_ns = job->hold.took_ns,
		.stopped_ns = job->hold.end_ns - job->hold.begin_ns,
		.threads_found = (uint32_t)snapshot->thread_count,
		.threads_missing = job->table.overflow,
	};
	instant_fill(job, facts);
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
	uint64_t tid = job->table.threads[index].tid;

	return (tid == job->process.pid ? 0 : tid << 32) | index;
}

void snapshot_fill(struct job *job)
{
	struct snapshot *snapshot = &job->out->snapshot;
	const struct thread_table *table = &job->table;
	uint64_t *order = arena_array(job->arena, uint64_t, table->count);
	int32_t *thread_of = arena_array(job->arena, int32_t, table->count);
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		thread_of[i] = -1;
		if (table->threads[i].state != HELD_GONE)
			order[count++] = order_key(job, i);
	}
	qsort(order, count, sizeof order[0], compare_u64);
	snapshot->threads = arena_array(job->arena, struct thread, count);
	snapshot->thread_count = count;
	for (size_t i = 0; i < count; i++) {
		uint32_t index = (uint32_t)order[i];

		thread_of[index] = (int32_t)i;
		step_begin(STEP_PROCESS, table->threads[index].tid, NULL);
		thread_fill(job, index, &snapshot->threads[i]);
		snapshot->threads[i].stack_missing = job->stacks.unplanned[index];
	}
	pieces_take(job, thread_of);
	snapshot->pac_code_mask =
		job->hold.pac_code_mask ? job->hold.pac_code_mask : arch_host_pac_mask();
	capture_facts_fill(job);
}
