/*
 * process/tracee: one thread, from attaching to letting go (ptrace(2)).
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT: no SIGSTOP is ever sent. All of this is for the tracing
 * thread alone. No allocation, no output.
 */
#ifndef STACKER_PROCESS_TRACEE_H
#define STACKER_PROCESS_TRACEE_H

#include "process/hold.h"

/* CLOCK_MONOTONIC, as in struct held_thread. */
uint64_t tracee_now_ns(void);

/* From HELD_LISTED to HELD_SEIZED, HELD_GONE or HELD_REFUSED. */
void tracee_seize(struct hold *hold, struct held_thread *thread);

/* Asks it to stop, if it was seized. */
void tracee_interrupt(struct held_thread *thread);

/* Looks whether it stopped, or waits until it does or a signal handler has run. True when
 * nothing more is to be waited for: HELD_STOPPED, HELD_GONE, or it was never seized. */
bool tracee_look(struct hold *hold, struct held_thread *thread);
bool tracee_wait(struct hold *hold, struct held_thread *thread);

/* Registers of a stopped one. */
void tracee_read(struct hold *hold, struct held_thread *thread);

/* Its thread pointer; 0: not known. After tracee_read. */
uint64_t tracee_thread_pointer(const struct hold *hold, const struct held_thread *thread);

/* Lets a stopped one go on, with the signal that was on its way. */
void tracee_release(struct hold *hold, struct held_thread *thread);

#endif
