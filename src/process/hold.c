#include "process/hold.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/signals.h"
#include "process/collect.h"
#include "process/priority.h"

/* How often zombies are looked for that an exec waits for. */
#define REAP_INTERVAL_NS 50000000L
/* Listing again while the process makes new threads. */
#define ROUNDS_MAX 16

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
			tracee_seize(hold, &hold->table->threads[from]);
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

static void interrupt_from(struct hold *hold, size_t from)
{
	for (; from < hold->table->count; from++)
		tracee_interrupt(&hold->table->threads[from]);
}

/* Once every known thread is stopped no new one can be made; those made until then are few. */
static void threads_hold(struct hold *hold, bool follow_new)
{
	size_t from = 0;

	for (int round = 0; round < ROUNDS_MAX && !asked_to_end(hold); round++) {
		size_t known = hold->table->count;

		interrupt_from(hold, from);
		threads_collect(hold, from, hold->table->count);
		if (!follow_new || hold->exec_seen || !has_unknown_threads(hold) ||
		    !threads_list(hold))
			return;
		from = known;
		seize_from(hold, from);
	}
}

static void threads_read(struct hold *hold, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		hold->table->owners[i] = (struct stack_owner){0};
		if (thread->state != HELD_STOPPED)
			continue;
		tracee_read(hold, thread);
		thread->from_ns = tracee_now_ns();
		if (thread->has_registers)
			hold->table->owners[i] =
				(struct stack_owner){&thread->registers,
						     tracee_thread_pointer(hold, thread)};
		hold->stacks->tid = thread->tid;
	}
	stacks_copy(hold->stacks, hold->table->owners, from, to);
}

static void release_all(struct hold *hold)
{
	if (hold->ended_by)
		interrupted_collect(hold);
	for (size_t i = 0; i < hold->table->count; i++)
		tracee_release(hold, &hold->table->threads[i]);
}

/* --rolling: each thread for itself, as short as can be. */
static void thread_roll(struct hold *hold, size_t index)
{
	struct held_thread *thread = &hold->table->threads[index];

	tracee_seize(hold, thread);
	tracee_interrupt(thread);
	threads_collect(hold, index, index + 1);
	threads_read(hold, index, index + 1);
	tracee_release(hold, thread);
}

/* Threads that were given up and stop after all while others roll: let go at once. */
static size_t late_ones_release(struct hold *hold, size_t count)
{
	size_t late = 0;

	for (size_t i = 0; i < count; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (thread->state != HELD_LATE || thread->released_ns)
			continue;
		late++;
		thread->state = HELD_SEIZED;
		if (tracee_look(hold, thread) && thread->state == HELD_STOPPED) {
			tracee_read(hold, thread); /* its call may have to begin again */
			tracee_release(hold, thread);
			thread->has_registers = false; /* nobody else's moment */
		}
		if (thread->state != HELD_GONE)
			thread->state = HELD_LATE;
	}
	return late;
}

static void roll_all(struct hold *hold, bool follow_new)
{
	size_t done = 0, late = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		for (; done < hold->table->count && !asked_to_end(hold) && !hold->exec_seen;
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

static void times_set(struct hold *hold)
{
	for (size_t i = 0; i < hold->table->count; i++) {
		const struct held_thread *thread = &hold->table->threads[i];

		if (thread->released_ns &&
		    (!hold->begin_ns || held_from_ns(thread) < hold->begin_ns))
			hold->begin_ns = held_from_ns(thread);
		if (thread->released_ns > hold->end_ns)
			hold->end_ns = thread->released_ns;
	}
}

struct work {
	struct hold *hold;
	bool follow_new;
};

static void *tracer_main(void *context)
{
	struct work *work = context;
	struct hold *hold = work->hold;
	uint64_t begin_ns;

	ticks_begin(hold);
	/* Its end with this thread's; normal priority made the stop of 100 busy threads last 50 times
	 * longer. */
	if (hold->realtime)
		hold->raised |= priority_raise().realtime;
	begin_ns = tracee_now_ns();
	if (hold->rolling) {
		roll_all(hold, work->follow_new);
	} else {
		seize_all(hold, work->follow_new);
		threads_hold(hold, work->follow_new);
		if (!asked_to_end(hold) && !hold->exec_seen)
			threads_read(hold, 0, hold->table->count);
	}
	release_all(hold);
	hold->took_ns = tracee_now_ns() - begin_ns;
	ticks_end(hold);
	return NULL;
}

/* Signals that would end us wait until everyone is released. */
static void signals_block(sigset_t *before)
{
	sigset_t set;
	struct sigaction plain = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, before);
	/* Stops need not signal: waitpid is woken all the same. Ignored, children would be
	 * reaped. */
	sigaction(SIGCHLD, &plain, NULL);
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
 * process takes the stops of tracees too, whatever it asks for, and those are the tracing
 * thread's. */
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
 * A thread that calls exec holds the lock that PTRACE_SEIZE needs and waits until all others
 * are gone, also those that we have seized already: zombies that only their tracer can reap.
 * The tracing thread cannot, while it waits for the lock; any thread of its process can. So we
 * look when one seizure takes long. An id that is reaped here gives ECHILD there and is taken
 * as gone.
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
			reap_if_exited((pid_t)hold->table->threads[i].tid);
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
