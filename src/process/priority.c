#include "process/priority.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICENESS_MIN (-20)

/* musl's functions refuse on purpose: POSIX means the process, Linux the thread. */
static int policy_set(int policy, int level)
{
	struct sched_param param = {.sched_priority = level};

	return (int)syscall(SYS_sched_setscheduler, 0, policy, &param);
}

struct priority priority_raise(void)
{
	struct priority before = {.policy = (int)syscall(SYS_sched_getscheduler, 0)};
	int policy = before.policy & ~SCHED_RESET_ON_FORK;

	if (policy == SCHED_FIFO || policy == SCHED_RR || policy < 0) {
		before.realtime = policy >= 0;
		return before;
	}
	before.niceness = getpriority(PRIO_PROCESS, 0);
	before.realtime = policy_set(SCHED_FIFO, 1) == 0;
	before.changed = before.realtime || setpriority(PRIO_PROCESS, 0, NICENESS_MIN) == 0;
	return before;
}

void priority_restore(const struct priority *before)
{
	if (!before->changed)
		return;
	if (before->realtime)
		policy_set(before->policy, 0);
	else
		setpriority(PRIO_PROCESS, 0, before->niceness);
}
