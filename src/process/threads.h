/*
 * process/threads: the table that every method of capture fills: which threads there are, what
 * became of each, its registers, and when they were true.
 */
#ifndef STACKER_PROCESS_THREADS_H
#define STACKER_PROCESS_THREADS_H

#include "base/arena.h"
#include "process/procfs.h"
#include "process/stacks.h"

enum held_state {
	HELD_LISTED,    /* known, not touched yet */
	HELD_SEIZED,    /* attached, not stopped */
	HELD_STOPPED,   /* stopped: registers can be read */
	HELD_UNTOUCHED, /* read while it did not run, without a stop */
	HELD_GONE,      /* it exited */
	HELD_LATE,      /* did not stop in time */
	HELD_REFUSED,   /* could not be attached */
	/* Not to be stopped, and without a stop there is no picture of it: */
	HELD_RUNNING,   /* it was on a processor */
	HELD_UNSETTLED, /* it ran between two looks */
	HELD_UNSEEN,    /* the task iterator did not show it */
};

/* Is it one of those that were not to be stopped? */
static inline bool held_is_spared(enum held_state state)
{
	return state == HELD_RUNNING || state == HELD_UNSETTLED || state == HELD_UNSEEN;
}

struct held_thread {
	uint32_t tid;
	uint8_t state;     /* enum held_state */
	char kernel_state; /* as in /proc/PID/stat when it was read; 0: not known */
	char seen_state;   /* the same when it was looked at last, perhaps before its stop */
	bool has_name;
	char name[16]; /* comm, where a look brought it along */
	bool has_registers;
	bool foreign_registers; /* of another register set: a 32-bit program's */
	int error;              /* errno of the attempt to attach, when it was refused */
	int signal; /* stopped while this signal was on its way: handed on at release */
	/* CLOCK_MONOTONIC; 0: never */
	uint64_t interrupted_ns, released_ns;
	uint64_t running_ns;        /* asked to stop, it had not yet done so then */
	uint64_t from_ns, until_ns; /* registers and stack are those of all this time */
	struct registers registers;
	struct task_call
		call; /* that it was seen in, while it was not stopped; see process/calls */
};

/* It was stopped from then on at the earliest: asked to, and not seen to run any more. */
static inline uint64_t held_from_ns(const struct held_thread *thread)
{
	return thread->running_ns > thread->interrupted_ns ? thread->running_ns
							   : thread->interrupted_ns;
}

struct thread_table {
	struct held_thread *threads;
	struct stack_owner *owners; /* per thread, for stacks_copy */
	size_t count, capacity;
	uint32_t *slots;   /* hash of tid -> index + 1 */
	size_t slot_count; /* power of two */
	bool overflow;     /* more new threads than there was room for */
};

/* Reserves room for `tids` and as many new threads again, and makes it ready for who is held. */
void thread_table_prepare(struct thread_table *table, struct arena *arena, const uint32_t *tids,
			  size_t count);

/* Index of a thread, or `count`. */
size_t thread_index(const struct thread_table *table, uint32_t tid);

/* True when the thread is new. The table only grows, and ids in it do not change, so that
 * another thread may read it meanwhile. */
bool thread_add(struct thread_table *table, uint32_t tid);

#endif
