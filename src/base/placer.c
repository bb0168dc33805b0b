/*
 * The process, and the two pipes to it: a byte says what to do, what came of it goes back.
 */
#include "base/placer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/urgency.h"

#define PLACE 'p'
#define GIVE_UP 'g'

struct answer {
	bool ok;
	struct err e;
};

/* Signals are for the program (a terminal sends them to both); what it does decides. */
static void quiet_begin(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	/* Who waits for the end of the program's output must not wait for this process. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
}

/* False: it is to give up, or the program is no more. Its end of the pipe says so, unless another process holds that
 * too; then `program` does (-1: before Linux 5.3). */
static bool is_asked(int requests, int program)
{
	struct pollfd from[] = {
		{.fd = requests, .events = POLLIN},
		{.fd = program, .events = POLLIN},
	};
	char what = GIVE_UP;

	while (poll(from, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return (from[0].revents & POLLIN) && read(requests, &what, 1) == 1 && what == PLACE;
}

__attribute__((noreturn)) static void serve(const struct placer_task *task, int requests,
					    int answers, int program)
{
	struct answer answer = {.ok = false};

	quiet_begin();
	urgency_go_on();
	if (is_asked(requests, program)) {
		answer.ok = task->place(task->context, &answer.e);
		if (write(answers, &answer, sizeof answer) < 0)
			_exit(1);
	} else {
		task->give_up(task->context);
	}
	_exit(0);
}

static void pipe_close(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static bool pipes_make(int requests[2], int answers[2])
{
	if (pipe2(requests, O_CLOEXEC) != 0)
		return false;
	if (pipe2(answers, O_CLOEXEC) == 0)
		return true;
	pipe_close(requests);
	return false;
}

bool placer_start(struct placer *placer, const struct placer_task *task)
{
	int requests[2], answers[2], program, number;
	pid_t pid;

	*placer = (struct placer){-1, -1, 0};
	if (!pipes_make(requests, answers))
		return false;
	program = (int)syscall(SYS_pidfd_open, getpid(), 0);
	pid = fork();
	number = errno;
	if (pid == 0) {
		close(requests[1]);
		close(answers[0]);
		serve(task, requests[0], answers[1], program);
	}
	if (program >= 0)
		close(program);
	close(requests[0]);
	close(answers[1]);
	if (pid > 0) {
		*placer = (struct placer){requests[1], answers[0], pid};
		return true;
	}
	close(requests[1]);
	close(answers[0]);
	errno = number;
	return false;
}

/* It is short enough to come in one piece. */
static bool answer_read(int from, struct answer *answer)
{
	ssize_t got;

	do
		got = read(from, answer, sizeof *answer);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof *answer;
}

/* It has answered, or ended. Where waiting is given up, too, it is not waited for. */
static void done(struct placer *placer)
{
	close(placer->requests);
	close(placer->answers);
	waitpid(placer->pid, NULL, 0);
	*placer = (struct placer){-1, -1, 0};
}

/* It may have been killed, which must not end the program. */
static bool tell(const struct placer *placer, char what)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	bool ok = write(placer->requests, &what, 1) == 1;

	signal(SIGPIPE, before);
	return ok;
}

bool placer_ask(struct placer *placer, struct err *e)
{
	struct answer answer;
	bool asked = tell(placer, PLACE) && answer_read(placer->answers, &answer);

	done(placer);
	if (!asked)
		return err_set(e, ERR_SYSTEM,
			       "the process that gives the output its name has ended");
	if (!answer.ok && e)
		*e = answer.e;
	return answer.ok;
}

void placer_end(struct placer *placer)
{
	struct answer answer;

	if (placer->requests < 0)
		return;
	if (tell(placer, GIVE_UP))
		answer_read(placer->answers, &answer); /* the end of the pipe: it has ended */
	done(placer);
}
