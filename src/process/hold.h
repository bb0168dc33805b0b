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
#include <time.h>

#include "process/procfs.h"
#include "process/threads.h"

struct hold {
	const struct process *process;
	const struct arch *arch;
	uint64_t timeout_ns;
	bool realtime;              /* wanted */
	bool rolling;               /* one thread after the other: no common instant */
	struct thread_table *table; /* all threads that are only listed are held */
	uint32_t seizing;           /* the thread that is being attached; read by tracer_join */
	struct stacks *stacks;
	uint32_t *listing; /* room for as many tids as the table has */
	/* of process/collect */
	timer_t ticker;
	bool ticking;
	struct sigaction before_ticks;
	sigset_t
		ends; /* signals that ask us to end: those that are not ignored; set by hold_run */
	/* results */
	bool raised;        /* SCHED_FIFO was granted */
	bool exec_seen;     /* another program now runs in the process: try again */
	uint32_t restarted; /* system calls begun again, see call_restart in process/tracee.c */
	int ended_by;       /* the signal that asked us to end, or 0 */
	uint64_t took_ns;   /* taking all pictures, of threads that are not held too */
	uint64_t waited_ns; /* the longest wait for threads to stop */
	uint64_t begin_ns, end_ns; /* first stop to last release; 0: nothing was held */
	uint64_t pac_code_mask;
};

/* Seizes, interrupts, collects, reads registers and stacks, releases. Runs to its end in every
 * case; what happened is in the hold. `follow_new`: threads that appear are held too. False
 * with ERR_SYSTEM only when the tracing thread cannot be started. */
bool hold_run(struct hold *hold, bool follow_new, struct err *e);

#endif
