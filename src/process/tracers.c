#include "process/tracers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "process/step.h"

/* The first pause; each is twice as long as the one before, but not longer than the longest. */
#define PAUSE_NS UINT64_C(1000000)
#define PAUSE_DOUBLINGS 3
/* Of the capture's time limit. */
#define PATIENCE_SHARE 8
/* So often a tracer that is not seen is believed to have been there. */
#define UNSEEN_MAX 3
/* strace of a debugger of a debugger: longer chains are a mistake, or a loop. */
#define CHAIN_MAX 16

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void tracer_name(struct tracer *tracer, uint32_t tid)
{
	struct process_status status;

	*tracer = (struct tracer){.pid = tid, .name = "?"};
	if (!process_status_of(tid, &status))
		return;
	/* The process's name, not the thread's. */
	if (status.tgid && status.tgid != tid) {
		tracer->pid = status.tgid;
		if (!process_status_of(status.tgid, &status))
			return;
	}
	memcpy(tracer->name, status.name, sizeof tracer->name);
}

/* Of no fixed length: two who wait for each other must not do so in step. */
bool patience_pause(struct patience *patience, uint64_t timeout_ns)
{
	unsigned doublings =
		patience->pauses < PAUSE_DOUBLINGS ? patience->pauses : PAUSE_DOUBLINGS;
	uint64_t pause = PAUSE_NS << doublings, now = now_ns();

	if (!patience->until_ns)
		patience->until_ns = now + timeout_ns / PATIENCE_SHARE;
	pause += now / 1000 % 1000 * pause / 1000;
	if (now + pause > patience->until_ns)
		return false;
	patience->pauses++;
	step_begin(STEP_PROCESS, 0, NULL);
	nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
	return true;
}

bool patience_with_thread(struct patience *patience, const struct process *process,
			  uint32_t tid, uint64_t timeout_ns)
{
	uint32_t tracer = task_tracer(process, tid);

	if (tracer)
		tracer_name(&patience->seen, tracer);
	else if (patience->unseen++ >= UNSEEN_MAX)
		return false;
	return patience_pause(patience, timeout_ns);
}

bool tracer_explain(uint32_t pid, const struct tracer *tracer, struct err *e)
{
	return err_set(e, ERR_BUSY,
		       "process %u is already traced by process %u (%s): end that first", pid,
		       tracer->pid, tracer->name);
}

bool own_tracers_check(uint32_t pid, struct err *e)
{
	struct process_status status;
	struct tracer tracer = {.pid = (uint32_t)getpid()};

	for (int i = 0;
	     i < CHAIN_MAX && process_status_of(tracer.pid, &status) && status.tracer; i++) {
		tracer_name(&tracer, status.tracer);
		if (tracer.pid == pid)
			return err_set(
				e, ERR_UNSUPPORTED,
				"process %u (%s) traces this stacker, so each would wait "
				"for the other: try --never-stop",
				pid, tracer.name);
	}
	return true;
}
