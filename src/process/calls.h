/*
 * process/calls: the system call that a thread is in.
 *
 * On x86_64 a stopped thread's registers tell (ORIG_RAX). On aarch64 they do not: before a tracer sees
 * the thread the kernel has forgotten the number (arch/arm64/kernel/signal.c, do_signal; the register set
 * NT_ARM_SYSTEM_CALL then says that there is none), and has set PC back to the `svc` if the call will
 * begin again. So the kernel is asked before the stop, and its answer holds if the stop finds the thread
 * where it was: SP the same, PC behind the instruction or at it, and the call's number in its register.
 */
#ifndef STACKER_PROCESS_CALLS_H
#define STACKER_PROCESS_CALLS_H

#include "process/threads.h"

/* Notes the calls that threads are in now, where `arch` needs it. */
void calls_look(const struct process *process, const struct arch *arch,
		struct thread_table *table);

/* The number of the call that a thread with these registers is in, which was seen in `seen`; -1: in none,
 * or not known. */
int64_t call_number(const struct arch *arch, const struct registers *registers,
		    const struct task_call *seen);

#endif
