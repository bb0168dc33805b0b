#include "base/urgency.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Older glibc has no such name for it. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define URGENT_NS 500000000L
#define NICENESS_MIN (-20)

static int niceness_before;
static bool is_urgent;

/* Of the calling thread. */
static void urgency_end(int number)
{
	int error = errno;

	(void)number;
	setpriority(PRIO_PROCESS, 0, niceness_before);
	errno = error;
}

/* Somebody may have blocked all signals. */
static void end_unblock(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* The end is sure before the beginning. */
static bool end_arrange(void)
{
	struct sigaction action = {.sa_handler = urgency_end, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
	struct itimerspec once = {.it_value = {0, URGENT_NS}};
	timer_t timer;

	end_unblock();
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGRTMIN, &action, NULL) != 0 ||
	    timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) != 0)
		return false;
	if (timer_settime(timer, 0, &once, NULL) == 0)
		return true;
	timer_delete(timer);
	return false;
}

void urgency_begin(void)
{
	int policy = (int)syscall(SYS_sched_getscheduler, 0);

	errno = 0;
	niceness_before = getpriority(PRIO_PROCESS, 0);
	if (policy != SCHED_OTHER || errno || niceness_before != 0 || !end_arrange())
		return;
	is_urgent = setpriority(PRIO_PROCESS, 0, NICENESS_MIN) == 0;
}

void urgency_go_on(void)
{
	if (is_urgent && !end_arrange())
		setpriority(PRIO_PROCESS, 0, niceness_before);
}

void urgency_keep(void)
{
	struct sched_param normal = {0};

	/* musl's sched_setscheduler refuses on purpose; the kernel does not. */
	if (is_urgent)
		syscall(SYS_sched_setscheduler, 0, SCHED_OTHER | SCHED_RESET_ON_FORK, &normal);
}
