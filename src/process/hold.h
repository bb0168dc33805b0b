/*
 * process/hold: holding all threads of a process, briefly.
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT (ptrace(2)): no SIGSTOP is ever sent. The work is done by a
 * thread of its own, because a ptrace attachment belongs to the thread that made it: when that
 * thread ends, the kernel lets go of everything that could not be detached (a thread in
 * uninterruptible sleep, say), and its raised priority is gone with it. If the whole tracer is
 * killed, the same happens: the target is never left stopped.
 */
#ifndef STACKER_PROCESS_HOLD_H
#define STACKER_PROCESS_HOLD_H

#include <signal.h>

#include "process/procfs.h"
#include "process/stacks.h"

enum held_state {
	HELD_LISTED,  /* known, not touched yet */
	HELD_SEIZED,  /* attached, not stopped */
	HELD_STOPPED, /* stopped: registers can be read */
	HELD_GONE,    /* it exited */
	HELD_LATE,    /* did not stop in time */
	HELD_REFUSED, /* could not be attached */
};

struct held_thread {
	uint32_t tid;
	uint8_t state; /* enum held_state */
	bool has_registers;
	bool foreign_registers; /* of another register set: a 32-bit program's */
	int error;              /* errno of the attempt to attach, when it was refused */
	int signal; /* stopped while this signal was on its way: handed on at release */
	uint64_t interrupted_ns, released_ns; /* CLOCK_MONOTONIC; 0: never */
	struct registers registers;
};

struct hold {
	const struct process *process;
	const struct arch *arch;
	uint64_t timeout_ns;
	bool realtime; /* wanted */
	bool rolling;  /* one thread after the other: no common instant */
	struct held_thread *threads;
	size_t count, capacity;
	uint32_t *slots;            /* hash of tid -> index + 1 */
	size_t slot_count;          /* power of two */
	uint32_t seizing;           /* the thread that is being attached; read by tracer_join */
	uint32_t *listing;          /* room for `capacity` tids */
	struct stack_owner *owners; /* per thread, for stacks_copy */
	struct stacks *stacks;
	/* results */
	sigset_t ends;             /* signals that ask us to end: those that are not ignored */
	bool raised;               /* SCHED_FIFO was granted */
	bool exec_seen;            /* another program now runs in the process: try again */
	bool overflow;             /* more new threads than there was room for */
	uint32_t restarted;        /* system calls begun again, see call_restart */
	int ended_by;              /* the signal that asked us to end, or 0 */
	uint64_t waited_ns;        /* the longest wait for threads to stop */
	uint64_t begin_ns, end_ns; /* first interrupt to last release; 0: nothing was held */
	uint64_t pac_code_mask;
};

/* Reserves tables for `tids` and as many new threads again. */
void hold_prepare(struct hold *hold, struct arena *arena, const uint32_t *tids, size_t count);

/* Seizes, interrupts, collects, reads registers and stacks, releases. Runs to its end in every
 * case; what happened is in the hold. `follow_new`: threads that appear are held too. False with
 * ERR_SYSTEM only when the tracing thread cannot be started. */
bool hold_run(struct hold *hold, bool follow_new, struct err *e);

#endif
