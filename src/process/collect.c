#include "process/collect.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older glibc has no such name for it. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* A thread that does not stop within a slice is looked at again after all others. */
#define SLICE_NS UINT64_C(2000000)
/* Threads in uninterruptible sleep rarely come out of it soon, and everyone else is held for as
 * long as we wait: they get this much, not the whole timeout. */
#define SLEEPERS_GRACE_NS UINT64_C(50000000)
/* Between looks where there is no timer to be had. */
#define NAP_NS 20000

/* ---- The tick ---- */

static void tick(int number)
{
	(void)number; /* that a handler runs ends the sleep */
}

void ticks_begin(struct hold *hold)
{
	struct sigaction action = {.sa_handler = tick}; /* without SA_RESTART */
	struct itimerspec each_slice = {{0, (long)SLICE_NS}, {0, (long)SLICE_NS}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX};
	sigset_t set;

	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	sigaction(SIGRTMAX, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &hold->ticker) != 0)
		return;
	hold->ticking = timer_settime(hold->ticker, 0, &each_slice, NULL) == 0;
	if (!hold->ticking)
		timer_delete(hold->ticker);
}

void ticks_end(struct hold *hold)
{
	if (hold->ticking)
		timer_delete(hold->ticker);
	hold->ticking = false;
}

/* ---- One thread ---- */

bool asked_to_end(struct hold *hold)
{
	int number = sigtimedwait(&hold->ends, NULL, &(struct timespec){0});

	if (number > 0)
		hold->ended_by = number;
	return hold->ended_by != 0;
}

/* Waits until the thread has stopped, until a tick at the most. */
static bool thread_wait(struct hold *hold, struct held_thread *thread)
{
	if (tracee_collect(hold, thread, hold->ticking))
		return true;
	if (!hold->ticking)
		nanosleep(&(struct timespec){0, NAP_NS}, NULL);
	asked_to_end(hold);
	return false;
}

static bool thread_await(struct hold *hold, struct held_thread *thread, uint64_t deadline)
{
	uint64_t until = tracee_now_ns() + SLICE_NS;

	if (until > deadline)
		until = deadline;
	while (!thread_wait(hold, thread))
		if (hold->ended_by || tracee_now_ns() >= until)
			return false;
	return true;
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
		if (tracee_collect(hold, thread, false))
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
		if (!late.any_came && only_sleepers_left(hold, from, to) &&
		    tracee_now_ns() - begin > SLEEPERS_GRACE_NS)
			return;
		thread_wait(hold, late.first);
	}
}

/* ---- All ---- */

/* Once one was late, threads in uninterruptible sleep are not waited for here. */
void threads_collect(struct hold *hold, size_t from, size_t to)
{
	uint64_t begin = tracee_now_ns(), deadline = begin + hold->timeout_ns, waited;
	bool any_late = false;

	for (size_t i = to; i-- > from && !hold->ended_by;) {
		struct held_thread *thread = &hold->table->threads[i];

		if (any_late && !tracee_collect(hold, thread, false) &&
		    is_asleep_for_good(hold, thread))
			continue;
		any_late |= !thread_await(hold, thread, deadline);
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
		while (thread->interrupted_ns && !tracee_collect(hold, thread, false) &&
		       tracee_now_ns() < deadline)
			nanosleep(&(struct timespec){0, NAP_NS}, NULL);
		if (thread->state == HELD_STOPPED && !thread->has_registers)
			tracee_read(hold, thread);
	}
}
