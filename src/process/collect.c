#include "process/collect.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/step.h"

/* Older glibc has no such name for it. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* A thread that does not stop within a slice is looked at again after all others. */
#define SLICE_NS UINT64_C(2000000)
/* How long a sleep lasts at the most. */
#define TICK_NS 1000000L
/* Threads in uninterruptible sleep rarely come out of it soon, and everyone else is held for as
 * long as we wait: they get this much, not the whole timeout. */
#define SLEEPERS_GRACE_NS UINT64_C(50000000)
/* Between looks where there is no timer to be had, and when we are to end. */
#define NAP_NS 200000L
#define SHORT_NAP_NS 20000L

/* ---- The tick ---- */

static void tick(int number)
{
	(void)number; /* that a handler runs ends the sleep */
}

static void tick_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	pthread_sigmask(how, &set, NULL);
}

void ticks_begin(struct hold *hold)
{
	struct sigaction action = {.sa_handler = tick}; /* without SA_RESTART */
	struct itimerspec ticks = {{0, TICK_NS}, {0, TICK_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX};

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	sigaction(SIGRTMAX, &action, &hold->before_ticks);
	tick_mask(SIG_UNBLOCK);
	if (timer_create(CLOCK_MONOTONIC, &event, &hold->ticker) != 0)
		return;
	hold->ticking = timer_settime(hold->ticker, 0, &ticks, NULL) == 0;
	if (!hold->ticking)
		timer_delete(hold->ticker);
}

void ticks_end(struct hold *hold)
{
	if (hold->ticking)
		timer_delete(hold->ticker);
	hold->ticking = false;
	/* One that is pending goes with this thread. */
	tick_mask(SIG_BLOCK);
	sigaction(SIGRTMAX, &hold->before_ticks, NULL);
}

/* ---- One thread ---- */

bool asked_to_end(struct hold *hold)
{
	int number = sigtimedwait(&hold->ends, NULL, &(struct timespec){0});

	if (number > 0)
		hold->ended_by = number;
	return hold->ended_by != 0;
}

/* Until the thread has stopped, or a tick. */
static bool tick_await(struct hold *hold, struct held_thread *thread)
{
	if (hold->ticking ? tracee_wait(hold, thread) : tracee_look(hold, thread))
		return true;
	if (!hold->ticking)
		nanosleep(&(struct timespec){0, NAP_NS}, NULL);
	asked_to_end(hold);
	return false;
}

/* Until the thread has stopped, or for a slice; after the deadline it is only looked at. */
static bool slice_await(struct hold *hold, struct held_thread *thread, uint64_t deadline)
{
	uint64_t until = tracee_now_ns() + SLICE_NS;

	if (until > deadline)
		until = deadline;
	while (!hold->ended_by && tracee_now_ns() < until)
		if (tick_await(hold, thread))
			return true;
	return tracee_look(hold, thread);
}

/* ---- Those that are late ---- */

static bool is_asleep_for_good(const struct hold *hold, const struct held_thread *thread)
{
	struct task_stat stat;

	return task_stat(hold->process, thread->tid, &stat) && stat.state == 'D';
}

/* What is left of a range after a look at each thread that was late. */
struct late {
	struct held_thread *first; /* NULL: none */
	bool any_came;
};

static struct late late_look(struct hold *hold, size_t from, size_t to)
{
	struct late late = {0};

	for (size_t i = from; i < to; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (thread->state != HELD_SEIZED)
			continue;
		if (tracee_look(hold, thread))
			late.any_came = true;
		else if (!late.first)
			late.first = thread;
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
		if (task_has_ended(hold->process, thread->tid))
			thread->state = HELD_GONE;
		else if (!is_asleep_for_good(hold, thread))
			return false;
	}
	return true;
}

static void late_collect(struct hold *hold, size_t from, size_t to, uint64_t begin,
			 uint64_t deadline)
{
	while (!hold->ended_by && tracee_now_ns() < deadline) {
		struct late late = late_look(hold, from, to);

		if (!late.first)
			return;
		if (!late.any_came && tracee_now_ns() - begin > SLEEPERS_GRACE_NS &&
		    only_sleepers_left(hold, from, to))
			return;
		tick_await(hold, late.first);
	}
}

/* ---- All ---- */

/* Once one was late, threads in uninterruptible sleep are not waited for here. */
void threads_collect(struct hold *hold, size_t from, size_t to)
{
	uint64_t begin = tracee_now_ns(), deadline = begin + hold->timeout_ns, waited;
	bool any_late = false;

	step_begin(STEP_STOP, 0, NULL);
	for (size_t i = to; i-- > from && !hold->ended_by;) {
		struct held_thread *thread = &hold->table->threads[i];

		if (any_late && !tracee_look(hold, thread) && is_asleep_for_good(hold, thread))
			continue;
		any_late |= !slice_await(hold, thread, deadline);
	}
	if (any_late)
		late_collect(hold, from, to, begin, deadline);
	for (size_t i = from; i < to; i++)
		if (hold->table->threads[i].state == HELD_SEIZED)
			hold->table->threads[i].state = HELD_LATE;
	waited = tracee_now_ns() - begin;
	if (waited > hold->waited_ns)
		hold->waited_ns = waited;
}

void interrupted_collect(struct hold *hold)
{
	uint64_t deadline = tracee_now_ns() + SLICE_NS;

	for (size_t i = 0; i < hold->table->count; i++) {
		struct held_thread *thread = &hold->table->threads[i];

		if (thread->state == HELD_LATE)
			thread->state = HELD_SEIZED;
		while (thread->interrupted_ns && !tracee_look(hold, thread) &&
		       tracee_now_ns() < deadline)
			nanosleep(&(struct timespec){0, SHORT_NAP_NS}, NULL);
		if (thread->state == HELD_STOPPED && !thread->has_registers)
			tracee_read(hold, thread);
	}
}
