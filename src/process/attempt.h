/*
 * process/attempt: one try to capture a process, by the process that can be left behind
 * (process/captor), in memory that both see.
 */
#ifndef STACKER_PROCESS_ATTEMPT_H
#define STACKER_PROCESS_ATTEMPT_H

#include "process/avoid.h"
#include "process/process.h"
#include "process/procfs.h"

struct attempt {
	const struct capture_request *request;
	struct avoid avoid;
	struct arena *arena;
	struct captured *out;   /* no `files`, no `root` yet: they are descriptors */
	struct step_at step;    /* in hand */
	bool by_bpf;            /* threads are read without a stop */
	struct process process; /* open after success */
	struct process_status status;
};

/* All but the extras. Errors as process_capture's. */
bool attempt_threads(struct attempt *attempt, struct err *e);

/* What stacks do not need, each filled in when it is there: the root (out->root), names of code
 * made at run time, the arguments. Closes the process. */
void attempt_extras(struct attempt *attempt);

#endif
