#include "base/signals.h"

#include <stddef.h>

sigset_t signals_that_end(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, ends[i]);
	return set;
}

static void (*pipe_signal_before)(int);

void stdout_pipe_guard(void)
{
	pipe_signal_before = signal(SIGPIPE, SIG_IGN);
}

void stdout_pipe_may_end_us(void)
{
	signal(SIGPIPE, pipe_signal_before);
}
