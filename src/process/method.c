#include "process/method.h"

#include "process/calls.h"
#include "process/sleepers.h"
#include "process/trouble.h"

static void fall_back(struct job *job, const struct err *why)
{
	iterator_close(&job->iterator);
	job->method_note = arena_string(job->arena, why->text);
}

/* There can be only one tracer. */
static bool ptrace_choose(struct job *job, struct err *e)
{
	while (job->status.tracer) {
		tracer_name(&job->patience.seen, job->status.tracer);
		if (!patience_pause(&job->patience, job->request->timeout_ns))
			return tracer_explain(job->process.pid, &job->patience.seen, e);
		if (!process_status(&job->process, &job->status, e))
			return false;
	}
	return true;
}

bool method_choose(struct job *job, struct err *e)
{
	const struct capture_request *request = job->request;
	struct err why = {0};

	if (request->way == CAPTURE_BY_PTRACE || job->method_note)
		return ptrace_choose(job, e);
	if (iterator_is_open(&job->iterator) ||
	    iterator_open(&job->iterator, request->pid, &why))
		return true;
	if (request->way == CAPTURE_BY_BPF || request->never_stop) {
		*e = why;
		return err_within(e, "process %u cannot be read without a stop", request->pid);
	}
	fall_back(job, &why);
	return ptrace_choose(job, e);
}

static bool by_bpf(struct job *job, struct err *e)
{
	struct sleepers sleepers = {
		.hold = &job->hold,
		.iterator = &job->iterator,
		.follow_new = !job->request->tids,
		.never_stop = job->request->never_stop,
	};

	job->stats = NULL;
	return sleepers_capture(&sleepers, job->own, e);
}

static bool by_ptrace(struct job *job, struct err *e)
{
	job->stats = arena_array(job->own, struct task_stat, job->tid_count);
	for (size_t i = 0; i < job->tid_count; i++) {
		step_begin(STEP_PROCESS, job->tids[i], NULL);
		task_stat(&job->process, job->tids[i], &job->stats[i]);
	}
	calls_look(&job->process, job->hold.arch, &job->table);
	return hold_run(&job->hold, !job->request->tids, e);
}

bool method_run(struct job *job, struct err *e)
{
	bool may_fall_back = job->request->way == CAPTURE_BY_ANY && !job->request->never_stop;
	struct err why = {0};

	if (!iterator_is_open(&job->iterator))
		return by_ptrace(job, e);
	if (by_bpf(job, &why))
		return true;
	if (why.kind == ERR_PERMISSION)
		return permission_explain(&job->process, &job->status, e);
	if (!may_fall_back || why.kind != ERR_UNSUPPORTED) {
		*e = why;
		return false;
	}
	fall_back(job, &why);
	return ptrace_choose(job, e) && by_ptrace(job, e);
}

bool method_is_refused_for_now(struct job *job)
{
	const struct thread_table *table = &job->table;

	if (job->hold.ended_by)
		return false;
	for (size_t i = 0; i < table->count; i++)
		if (table->threads[i].state == HELD_REFUSED)
			return patience_with_thread(&job->patience, &job->process,
						    table->threads[i].tid,
						    job->request->timeout_ns);
	return false;
}
