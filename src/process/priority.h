/*
 * process/priority: the calling thread before all others, for a moment.
 *
 * SCHED_FIFO, else a niceness of -20, else nothing: what the kernel grants. While threads of the target
 * compute, normal priority means to wait in line behind them again and again.
 */
#ifndef STACKER_PROCESS_PRIORITY_H
#define STACKER_PROCESS_PRIORITY_H

#include <stdbool.h>

struct priority {
	bool realtime; /* SCHED_FIFO was granted, or the thread was real-time already */
	/* to be restored */
	bool changed;
	int policy, niceness;
};

struct priority priority_raise(void);
void priority_restore(const struct priority *before);

#endif
