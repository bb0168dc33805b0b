#include "process/tracee.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "process/step.h"

/* musl's elf.h has it, older glibc's sys/ptrace.h has not. */
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif
#ifndef NT_ARM_PAC_MASK
#define NT_ARM_PAC_MASK 0x406
#endif

uint64_t tracee_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static pid_t pid_of(const struct held_thread *thread)
{
	return (pid_t)thread->tid;
}

/* PTRACE_O_TRACEEXEC: an exec in the window becomes an event instead of a vanished thread. */
void tracee_seize(struct hold *hold, struct held_thread *thread)
{
	bool seized;

	__atomic_store_n(&hold->seizing, thread->tid, __ATOMIC_RELAXED);
	step_begin(STEP_ATTACH, thread->tid, NULL);
	seized = ptrace(PTRACE_SEIZE, pid_of(thread), NULL, (void *)PTRACE_O_TRACEEXEC) == 0;
	thread->error = seized ? 0 : errno;
	__atomic_store_n(&hold->seizing, 0, __ATOMIC_RELAXED);
	if (seized) {
		thread->state = HELD_SEIZED;
		return;
	}
	if (thread->error == ESRCH || task_has_ended(hold->process, thread->tid)) {
		thread->state = HELD_GONE; /* an exiting thread gives EPERM */
	} else {
		thread->state = HELD_REFUSED;
	}
}

void tracee_interrupt(struct held_thread *thread)
{
	if (thread->state != HELD_SEIZED)
		return;
	thread->interrupted_ns = tracee_now_ns();
	if (ptrace(PTRACE_INTERRUPT, pid_of(thread), NULL, NULL) != 0 && errno == ESRCH)
		thread->state = HELD_GONE;
}

/* ptrace(2), "Stopped states": PTRACE_EVENT_STOP is our interrupt or a group-stop (the kernel
 * goes back to it after the release); an event of 0 is a signal on its way, which must be
 * handed on. */
static void stopped_take(struct hold *hold, struct held_thread *thread, int status)
{
	int event = (int)((unsigned)status >> 16);

	thread->state = HELD_STOPPED;
	if (event == PTRACE_EVENT_EXEC)
		hold->exec_seen = true;
	else if (event != PTRACE_EVENT_STOP)
		thread->signal = WSTOPSIG(status);
}

static bool stop_take(struct hold *hold, struct held_thread *thread, int flags)
{
	uint64_t begin_ns;
	int status;
	pid_t got;

	if (thread->state != HELD_SEIZED)
		return true;
	begin_ns = tracee_now_ns();
	got = waitpid(pid_of(thread), &status, __WALL | flags);
	if (got == 0 || (got < 0 && errno == EINTR)) {
		thread->running_ns = begin_ns;
		return false;
	}
	if (got < 0 || !WIFSTOPPED(status)) {
		/* Exited, or its id went to the leader in an exec. */
		thread->state = HELD_GONE;
		hold->exec_seen |= got < 0 && errno == ECHILD &&
				   !task_has_ended(hold->process, thread->tid);
		return true;
	}
	stopped_take(hold, thread, status);
	return true;
}

bool tracee_look(struct hold *hold, struct held_thread *thread)
{
	return stop_take(hold, thread, WNOHANG);
}

/* Looks first: what is known then of when it stops is as new as can be. */
bool tracee_wait(struct hold *hold, struct held_thread *thread)
{
	return stop_take(hold, thread, WNOHANG) || stop_take(hold, thread, 0);
}

static void registers_read(const struct hold *hold, struct held_thread *thread)
{
	struct iovec set = {&thread->registers, sizeof thread->registers};

	if (ptrace(PTRACE_GETREGSET, pid_of(thread), (void *)NT_PRSTATUS, &set) != 0)
		return;
	thread->has_registers = set.iov_len == hold->arch->slot_count * sizeof(uint64_t);
	thread->foreign_registers = !thread->has_registers;
}

/* {data_mask, insn_mask} (asm/ptrace.h, struct user_pac_mask); the call fails where there is no
 * pointer authentication. All threads have the same. */
static void pac_mask_read(struct hold *hold, const struct held_thread *thread)
{
	uint64_t masks[2] = {0};
	struct iovec set = {masks, sizeof masks};

	if (ptrace(PTRACE_GETREGSET, pid_of(thread), (void *)NT_ARM_PAC_MASK, &set) == 0 &&
	    set.iov_len == sizeof masks)
		hold->pac_code_mask = masks[1];
}

void tracee_read(struct hold *hold, struct held_thread *thread)
{
	registers_read(hold, thread);
	if (hold->arch->has_pac && !hold->pac_code_mask)
		pac_mask_read(hold, thread);
}

uint64_t tracee_thread_pointer(const struct hold *hold, const struct held_thread *thread)
{
	uint64_t pointer = 0;
	struct iovec set = {&pointer, sizeof pointer};

	if (hold->arch->thread_pointer_slot < hold->arch->slot_count)
		return thread->registers.at[hold->arch->thread_pointer_slot];
	if (!hold->arch->thread_pointer_set ||
	    ptrace(PTRACE_GETREGSET, pid_of(thread),
		   (void *)(uintptr_t)hold->arch->thread_pointer_set, &set) != 0)
		return 0;
	return pointer;
}

static bool has_no_time_limit(const struct arch_restartable *call,
			      const struct registers *registers)
{
	uint64_t limit = call->limit_slot < 0 ? 0 : registers->at[call->limit_slot];

	switch (call->limit) {
	case ARCH_LIMIT_INT:
		return (int32_t)limit < 0;
	case ARCH_LIMIT_POINTER:
		return limit == 0;
	case ARCH_LIMIT_FLAG:
		return !(limit & call->limit_flag);
	default:
		return true;
	}
}

static bool is_restartable(const struct arch *arch, const struct registers *registers)
{
	uint64_t number = registers->at[arch->syscall_slot];

	for (size_t i = 0; i < arch->restartable_count; i++)
		if (number == (uint64_t)arch->restartables[i].syscall)
			return has_no_time_limit(&arch->restartables[i], registers);
	return false;
}

/*
 * Some system calls fail with EINTR when their thread wakes for whatever reason, our interrupt
 * included, and programs that do not expect it break. We see such a thread inside the kernel's
 * signal delivery (x86: arch_do_signal_or_restart), with the result already in RAX and the
 * decision about a restart still to come. Setting the result to ERESTARTNOHAND makes the kernel
 * decide as for other calls: if a signal handler is to run after all, the call returns EINTR to
 * it as ever; if not, it is begun again. Only calls without a time limit: one with a limit
 * would wait for its whole time once more. Not on aarch64, whose do_signal looks at the result
 * before we can set it.
 */
#define ERESTARTNOHAND 514

static void call_restart(struct hold *hold, struct held_thread *thread)
{
	const struct registers *registers = &thread->registers;
	uint8_t slot = hold->arch->result_slot;

	if (!thread->has_registers || thread->signal || !hold->arch->restartable_count ||
	    registers->at[slot] != (uint64_t)-EINTR || !is_restartable(hold->arch, registers))
		return;
	/* struct user begins with the registers, in the order of NT_PRSTATUS. */
	if (ptrace(PTRACE_POKEUSER, pid_of(thread), (void *)(slot * sizeof(uint64_t)),
		   (void *)(intptr_t)-ERESTARTNOHAND) == 0)
		hold->restarted++;
}

/* A thread killed meanwhile gives ESRCH: nothing is left to release. */
void tracee_release(struct hold *hold, struct held_thread *thread)
{
	if (thread->state != HELD_STOPPED || thread->released_ns)
		return;
	call_restart(hold, thread);
	thread->until_ns = tracee_now_ns();
	ptrace(PTRACE_DETACH, pid_of(thread), NULL, (void *)(intptr_t)thread->signal);
	thread->released_ns = tracee_now_ns();
}
