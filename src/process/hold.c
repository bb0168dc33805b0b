#include "process/hold.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"

/* musl's elf.h has it, older glibc's sys/ptrace.h has not. */
#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif
#ifndef NT_ARM_PAC_MASK
#define NT_ARM_PAC_MASK 0x406
#endif

/* A thread that does not stop within a slice is looked at again after all others. */
#define SLICE_NS UINT64_C(2000000)
/* Threads in uninterruptible sleep rarely come out of it soon, and everyone else is held for as
 * long as we wait: they get this much, not the whole timeout. */
#define SLEEPERS_GRACE_NS UINT64_C(50000000)
/* How often zombies are looked for that an exec waits for. */
#define REAP_INTERVAL_NS 50000000L
/* Listing again while the process makes new threads. */
#define ROUNDS_MAX 16

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static pid_t pid_of(const struct held_thread *thread)
{
	return (pid_t)thread->tid;
}

/* Attaching. */

static bool is_dead(const struct hold *hold, const struct held_thread *thread)
{
	struct task_stat stat;

	return !task_stat(hold->process, thread->tid, &stat) || stat.state == 'Z' ||
	       stat.state == 'X';
}

/* PTRACE_O_TRACEEXEC: an exec in the window becomes an event instead of a vanished thread. */
static void thread_seize(struct hold *hold, struct held_thread *thread)
{
	bool seized;

	__atomic_store_n(&hold->seizing, thread->tid, __ATOMIC_RELAXED);
	seized = ptrace(PTRACE_SEIZE, pid_of(thread), NULL, (void *)PTRACE_O_TRACEEXEC) == 0;
	thread->error = seized ? 0 : errno;
	__atomic_store_n(&hold->seizing, 0, __ATOMIC_RELAXED);
	if (seized) {
		thread->state = HELD_SEIZED;
		return;
	}
	if (thread->error == ESRCH || is_dead(hold, thread)) {
		thread->state = HELD_GONE; /* an exiting thread gives EPERM */
	} else {
		thread->state = HELD_REFUSED;
	}
}

/* Lists again; true when there were threads that are not in the table. */
static bool threads_list(struct hold *hold)
{
	size_t found = task_list(hold->process, hold->listing, hold->table->capacity);
	bool any_new = false;

	if (found > hold->table->capacity) {
		hold->table->overflow = true;
		found = hold->table->capacity;
	}
	for (size_t i = 0; i < found; i++)
		any_new |= thread_add(hold->table, hold->listing[i]);
	return any_new;
}

/* Threads of the table that still exist, as far as we know. A leader that exited stays a zombie
 * and counts while others live. */
static size_t threads_alive(const struct hold *hold)
{
	size_t alive = 0;

	for (size_t i = 0; i < hold->table->count; i++)
		alive += hold->table->threads[i].state != HELD_GONE ||
			 hold->table->threads[i].tid == hold->process->pid;
	return alive;
}

static bool has_unknown_threads(const struct hold *hold)
{
	return task_count(hold->process) > threads_alive(hold);
}

static size_t seize_from(struct hold *hold, size_t from)
{
	for (; from < hold->table->count && !hold->ended_by; from++)
		if (hold->table->threads[from].state == HELD_LISTED)
			thread_seize(hold, &hold->table->threads[from]);
	return from;
}

static void seize_all(struct hold *hold, bool follow_new)
{
	size_t done = seize_from(hold, 0);

	for (int round = 0; follow_new && round < ROUNDS_MAX; round++) {
		if (!has_unknown_threads(hold) || !threads_list(hold))
			return;
		done = seize_from(hold, done);
	}
}

/* Collecting. */

static void thread_interrupt(struct held_thread *thread)
{
	if (thread->state != HELD_SEIZED)
		return;
	thread->interrupted_ns = now_ns();
	if (ptrace(PTRACE_INTERRUPT, pid_of(thread), NULL, NULL) != 0 && errno == ESRCH)
		thread->state = HELD_GONE;
}

/* ptrace(2), "Stopped states": PTRACE_EVENT_STOP is our interrupt or a group-stop (the kernel
 * goes back to it after the release); an event of 0 is a signal on its way, which must be handed
 * on. */
static void stopped_take(struct hold *hold, struct held_thread *thread, int status)
{
	int event = (int)((unsigned)status >> 16);

	thread->state = HELD_STOPPED;
	if (event == PTRACE_EVENT_EXEC)
		hold->exec_seen = true;
	else if (event != PTRACE_EVENT_STOP)
		thread->signal = WSTOPSIG(status);
}

/* True when the thread needs no more waiting for. */
static bool thread_collect(struct hold *hold, struct held_thread *thread)
{
	int status;
	pid_t got;

	if (thread->state != HELD_SEIZED)
		return true;
	got = waitpid(pid_of(thread), &status, __WALL | WNOHANG);
	if (got == 0)
		return false;
	if (got < 0 || !WIFSTOPPED(status)) {
		/* Exited, or its id went to the leader in an exec. */
		thread->state = HELD_GONE;
		hold->exec_seen |= got < 0 && errno == ECHILD && !is_dead(hold, thread);
		return true;
	}
	stopped_take(hold, thread, status);
	return true;
}

/* Sleeps until some tracee changes state, somebody asks us to end, or the time is over. All these
 * signals are blocked, so that none can slip by between a look and the sleep. */
static void wait_for_change(struct hold *hold, uint64_t until)
{
	uint64_t now = now_ns();
	struct timespec left = {0};
	sigset_t set = hold->ends;
	int got;

	if (now < until)
		left.tv_nsec = (long)(until - now);
	sigaddset(&set, SIGCHLD);
	got = sigtimedwait(&set, NULL, &left);
	if (got > 0 && got != SIGCHLD)
		hold->ended_by = got;
}

/* Waits for one thread for a slice of time at the most. */
static bool thread_await(struct hold *hold, struct held_thread *thread, uint64_t deadline)
{
	uint64_t until = now_ns() + SLICE_NS;

	if (until > deadline)
		until = deadline;
	while (!thread_collect(hold, thread)) {
		if (hold->ended_by || now_ns() >= until)
			return false;
		wait_for_change(hold, until);
	}
	return true;
}

static bool is_asleep_for_good(const struct hold *hold, const struct held_thread *thread)
{
	struct task_stat stat;

	return task_stat(hold->process, thread->tid, &stat) && stat.state == 'D';
}

/* What is left of a range after a look at each thread that was late. */
struct late {
	size_t left;
	bool any_came;
};

static struct late late_look(struct hold *hold, size_t from, size_t to)
{
	struct late late = {0};

	for (size_t i = from; i < to; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (thread->state != HELD_SEIZED)
			continue;
		if (thread_collect(hold, thread))
			late.any_came = true;
		else
			late.left++;
	}
	return late;
}

/* Nobody came for a while: are those that are left all in uninterruptible sleep? A leader that
 * exits is not reported while others live: it is gone. */
static bool only_sleepers_left(struct hold *hold, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (thread->state != HELD_SEIZED)
			continue;
		if (is_dead(hold, thread))
			thread->state = HELD_GONE;
		else if (!is_asleep_for_good(hold, thread))
			return false;
	}
	return true;
}

static void late_collect(struct hold *hold, size_t from, size_t to, uint64_t begin,
			 uint64_t deadline)
{
	while (!hold->ended_by && now_ns() < deadline) {
		struct late late = late_look(hold, from, to);

		if (late.left == 0)
			return;
		if (!late.any_came && only_sleepers_left(hold, from, to) &&
		    now_ns() - begin > SLEEPERS_GRACE_NS)
			return;
		wait_for_change(hold, now_ns() + SLICE_NS);
	}
}

/* In table order, which is the order of the interrupts: nearly always the next one is ready. Once
 * one was late, threads in uninterruptible sleep are not waited for here. */
static void collect_range(struct hold *hold, size_t from, size_t to)
{
	uint64_t begin = now_ns(), deadline = begin + hold->timeout_ns;
	bool any_late = false;

	for (size_t i = from; i < to && !hold->ended_by; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (any_late && !thread_collect(hold, thread) &&
		    is_asleep_for_good(hold, thread))
			continue;
		any_late |= !thread_await(hold, thread, deadline);
	}
	if (any_late)
		late_collect(hold, from, to, begin, deadline);
	for (size_t i = from; i < to; i++)
		if (hold->table->threads[i].state == HELD_SEIZED)
			hold->table->threads[i].state = HELD_LATE;
	hold->waited_ns =
		now_ns() - begin > hold->waited_ns ? now_ns() - begin : hold->waited_ns;
}

static void interrupt_from(struct hold *hold, size_t from)
{
	for (; from < hold->table->count; from++)
		thread_interrupt(&hold->table->threads[from]);
}

/* Once every known thread is stopped no new one can be made; those made until then are few. */
static void threads_hold(struct hold *hold, bool follow_new)
{
	size_t from = 0;

	for (int round = 0; round < ROUNDS_MAX && !hold->ended_by; round++) {
		size_t known = hold->table->count;

		interrupt_from(hold, from);
		collect_range(hold, from, hold->table->count);
		if (!follow_new || hold->exec_seen || !has_unknown_threads(hold) ||
		    !threads_list(hold))
			return;
		from = known;
		seize_from(hold, from);
	}
}

/* Reading and letting go. */

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

static uint64_t thread_pointer_read(const struct hold *hold, const struct held_thread *thread)
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

static void threads_read(struct hold *hold, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		hold->table->owners[i] = (struct stack_owner){0};
		if (thread->state != HELD_STOPPED)
			continue;
		registers_read(hold, thread);
		thread->from_ns = now_ns();
		if (thread->has_registers)
			hold->table->owners[i] =
				(struct stack_owner){&thread->registers,
						     thread_pointer_read(hold, thread)};
		hold->stacks->tid = thread->tid;
		if (hold->arch->has_pac && !hold->pac_code_mask)
			pac_mask_read(hold, thread);
	}
	stacks_copy(hold->stacks, hold->table->owners, from, to);
}

static bool has_no_time_limit(const struct arch_restartable *call,
			      const struct registers *registers)
{
	uint64_t limit = call->limit_slot < 0 ? 0 : registers->at[call->limit_slot];

	if (call->limit_slot < 0)
		return true;
	return call->limit_is_int ? (int32_t)limit < 0 : limit == 0;
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
 * signal delivery (x86: arch_do_signal_or_restart), with the result already in RAX and the decision
 * about a restart still to come. Setting the result to ERESTARTNOHAND makes the kernel decide as
 * for other calls: if a signal handler is to run after all, the call returns EINTR to it as ever;
 * if not, it is begun again. Only calls without a time limit: one with a limit would wait for its
 * whole time once more. Not on aarch64, whose do_signal looks at the result before we can set it.
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
static void thread_release(struct hold *hold, struct held_thread *thread)
{
	if (thread->state != HELD_STOPPED || thread->released_ns)
		return;
	call_restart(hold, thread);
	thread->until_ns = now_ns();
	ptrace(PTRACE_DETACH, pid_of(thread), NULL, (void *)(intptr_t)thread->signal);
	thread->released_ns = now_ns();
}

/* Asked to end in the middle: threads that were interrupted already are given a moment to stop, and
 * registers are read all the same, so that their calls can be begun again (call_restart). */
static void interrupted_finish(struct hold *hold)
{
	uint64_t deadline = now_ns() + SLICE_NS;
	struct timespec moment = {0, 20000};

	for (size_t i = 0; i < hold->table->count; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (thread->state == HELD_LATE)
			thread->state = HELD_SEIZED;
		while (thread->interrupted_ns && !thread_collect(hold, thread) &&
		       now_ns() < deadline)
			nanosleep(&moment, NULL);
		if (thread->state == HELD_STOPPED && !thread->has_registers)
			registers_read(hold, thread);
	}
}

static void release_all(struct hold *hold)
{
	if (hold->ended_by)
		interrupted_finish(hold);
	for (size_t i = 0; i < hold->table->count; i++)
		thread_release(hold, &hold->table->threads[i]);
}

/* --rolling: each thread for itself, as short as can be. */
static void thread_roll(struct hold *hold, size_t index)
{
	struct held_thread *thread = &hold->table->threads[index];

	thread_seize(hold, thread);
	thread_interrupt(thread);
	collect_range(hold, index, index + 1);
	threads_read(hold, index, index + 1);
	thread_release(hold, thread);
}

/* Threads that were given up and stop after all while others roll: let go at once. */
static size_t late_ones_release(struct hold *hold, size_t count)
{
	size_t late = 0;

	for (size_t i = 0; i < count; i++) {
		struct held_thread *thread = &hold->table->threads[i];
		int status;

		if (thread->state != HELD_LATE || thread->released_ns)
			continue;
		late++;
		if (waitpid(pid_of(thread), &status, __WALL | WNOHANG) <= 0 ||
		    !WIFSTOPPED(status))
			continue;
		stopped_take(hold, thread, status);
		thread_release(hold, thread);
		thread->state = HELD_LATE;
	}
	return late;
}

static void roll_all(struct hold *hold, bool follow_new)
{
	size_t done = 0, late = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		for (; done < hold->table->count && !hold->ended_by && !hold->exec_seen;
		     done++) {
			thread_roll(hold, done);
			if (late || hold->table->threads[done].state == HELD_LATE)
				late = late_ones_release(hold, done + 1);
		}
		if (hold->ended_by || hold->exec_seen || !follow_new ||
		    !has_unknown_threads(hold) || !threads_list(hold))
			return;
	}
}

/* The calling thread only (Linux schedules threads): while woken threads of the target compete for
 * the CPUs, normal priority made the stop of 100 busy threads last 50 times longer. */
static void priority_raise(struct hold *hold)
{
	struct sched_param param = {.sched_priority = 1};
	pid_t self = (pid_t)syscall(SYS_gettid);

	/* musl's sched_setscheduler refuses on purpose; the kernel does not. */
	hold->raised = syscall(SYS_sched_setscheduler, self, SCHED_FIFO, &param) == 0;
	if (!hold->raised)
		setpriority(PRIO_PROCESS, (id_t)self, -20);
}

static void times_set(struct hold *hold)
{
	for (size_t i = 0; i < hold->table->count; i++) {
		const struct held_thread *thread = &hold->table->threads[i];

		if (thread->interrupted_ns &&
		    (!hold->begin_ns || thread->interrupted_ns < hold->begin_ns))
			hold->begin_ns = thread->interrupted_ns;
		if (thread->released_ns > hold->end_ns)
			hold->end_ns = thread->released_ns;
	}
	if (!hold->end_ns)
		hold->begin_ns = 0;
}

struct work {
	struct hold *hold;
	bool follow_new;
};

static void *tracer_main(void *context)
{
	struct work *work = context;
	struct hold *hold = work->hold;

	if (hold->realtime)
		priority_raise(hold);
	if (hold->rolling) {
		roll_all(hold, work->follow_new);
	} else {
		seize_all(hold, work->follow_new);
		threads_hold(hold, work->follow_new);
		if (!hold->ended_by && !hold->exec_seen)
			threads_read(hold, 0, hold->table->count);
	}
	release_all(hold);
	return NULL;
}

/* Signals that would end us wait until everyone is released; wait_for_change takes them. */
static void signals_block(sigset_t *before)
{
	sigset_t set;
	struct sigaction plain = {.sa_handler = SIG_DFL};

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, before);
	sigaction(SIGCHLD, &plain, NULL); /* ignored, it would not be sent */
}

/* A request to end that came when nobody waited. */
static int pending_end(const struct hold *hold)
{
	sigset_t set;

	sigpending(&set);
	for (int number = 1; number < _NSIG; number++)
		if (sigismember(&set, number) && sigismember(&hold->ends, number))
			return number;
	return 0;
}

/* Reaps a thread that has exited. Looked at first (WNOWAIT): a wait by a thread of the tracer's
 * process takes the stops of tracees too, whatever it asks for, and those are the tracing thread's. */
static void reap_if_exited(pid_t tid)
{
	siginfo_t seen = {0};

	if (waitid(P_PID, (id_t)tid, &seen, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 &&
	    seen.si_pid == tid &&
	    (seen.si_code == CLD_EXITED || seen.si_code == CLD_KILLED ||
	     seen.si_code == CLD_DUMPED))
		waitid(P_PID, (id_t)tid, &seen, WEXITED | WNOHANG | __WALL);
}

/*
 * A thread that calls exec holds the lock that PTRACE_SEIZE needs and waits until all others are
 * gone, also those that we have seized already: zombies that only their tracer can reap. The tracing
 * thread cannot, while it waits for the lock; any thread of its process can. So we look when one
 * seizure takes long. An id that is reaped here gives ECHILD there and is taken as gone.
 */
static void tracer_join(struct hold *hold, pthread_t tracer)
{
	struct timespec until;
	uint32_t stuck = 0;

	for (;;) {
		uint32_t seizing;
		size_t count;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += REAP_INTERVAL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(tracer, NULL, &until) == 0)
			return;
		seizing = __atomic_load_n(&hold->seizing, __ATOMIC_RELAXED);
		if (!seizing || seizing != stuck) {
			stuck = seizing;
			continue;
		}
		count = __atomic_load_n(&hold->table->count, __ATOMIC_ACQUIRE);
		for (size_t i = 0; i < count; i++)
			reap_if_exited(pid_of(&hold->table->threads[i]));
	}
}

bool hold_run(struct hold *hold, bool follow_new, struct err *e)
{
	struct work work = {hold, follow_new};
	sigset_t before;
	pthread_t tracer;
	int failed;

	hold->ends = signals_that_end();
	signals_block(&before);
	failed = pthread_create(&tracer, NULL, tracer_main, &work);
	if (!failed)
		tracer_join(hold, tracer);
	if (!hold->ended_by)
		hold->ended_by = pending_end(hold);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (hold->ended_by) /* everyone is released: now it may end us */
		raise(hold->ended_by);
	if (failed)
		return err_set(e, ERR_SYSTEM, "starting the tracing thread: %s",
			       strerror(failed));
	times_set(hold);
	return true;
}
