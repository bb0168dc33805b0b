/*
 * process/sleepers: the capture without a stop.
 *
 * Looks at all threads by the task iterator, copies the stacks of those that are on no processor,
 * looks again: a thread that has not run in between has an exact picture. Those that ran are read
 * one by one (process/runners). What is left then is held briefly by ptrace, it alone, or left out.
 */
#ifndef STACKER_PROCESS_SLEEPERS_H
#define STACKER_PROCESS_SLEEPERS_H

#include "process/hold.h"
#include "process/iterator.h"

struct sleepers {
	struct hold *hold; /* its table and stacks are filled; holds those that run */
	const struct iterator *iterator;
	bool follow_new; /* threads that appear are read too */
	bool never_stop;
};

/* ERR_UNSUPPORTED when the iterator cannot be read, or shows nothing of this process: nothing was
 * touched then, and another method may be tried with the same hold. ERR_PERMISSION when its memory may not be read (no
 * CAP_SYS_PTRACE). ERR_SYSTEM as hold_run and iterator_read. */
bool sleepers_capture(const struct sleepers *sleepers, struct arena *arena, struct err *e);

#endif
