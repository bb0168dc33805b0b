/*
 * process/occupier: a thread of ours that takes a processor for a moment.
 *
 * Under SCHED_FIFO and bound to that processor it drives away whoever runs there by niceness, as any
 * wakeup of such a thread does. Who was driven away is not stopped: it is runnable, and has saved
 * registers. The time is bounded by the occupier's own clock.
 */
#ifndef STACKER_PROCESS_OCCUPIER_H
#define STACKER_PROCESS_OCCUPIER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* It leaves by itself after this. */
#define OCCUPIED_MAX_NS UINT64_C(100000)

#define CPU_WORDS 128 /* of 64 processors each: 8192, the most that Linux can be built for */

struct occupier {
	pthread_t thread;
	bool started;
	uint32_t tid;   /* 0: it has not begun yet */
	uint32_t order; /* what it is to do; it sleeps on this (futex) */
	uint32_t place; /* the processor it holds, and 1; 0: none */
	uint64_t kept_free
		[CPU_WORDS]; /* never taken: isolated, without ticks, not in our affinity */
};

/* The caller must have SCHED_FIFO, which the new thread inherits. False: there is none to be had. */
bool occupier_start(struct occupier *occupier);
/* True when it is there, and whoever ran there does not. Not the caller's own processor. */
bool occupier_take(struct occupier *occupier, uint32_t cpu);
void occupier_leave(struct occupier *occupier);
void occupier_end(struct occupier *occupier);

/* A list of processors as sysfs has it: "0-3,8". */
void cpu_list_read(const char *text, uint64_t *cpus);

#endif
