/*
 * The process that is set apart: a build-id comes, the command runs, a path or the reason goes back.
 */
#include "cli/fetch_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"

bool fetch_read(int fd, void *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = read(fd, (char *)to + done, size - done);

		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		done += got > 0 ? (size_t)got : 0;
	}
	return true;
}

bool fetch_write(int fd, const void *from, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t put = write(fd, (const char *)from + done, size - done);

		if (put < 0 && errno != EINTR)
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

/* Sent when Stacker ends, but for one in a sandbox that keeps its signals in (Landlock). None
 * of those that it may have been told to ignore. */
#define PARENT_ENDED SIGUSR1

/* What it waits for: the end of the command, or its own. */
static sigset_t awaited(void)
{
	sigset_t set = signals_that_end();

	sigaddset(&set, SIGCHLD);
	sigaddset(&set, PARENT_ENDED);
	return set;
}

void fetch_refuse(struct fetch_answer *answer, const char *why)
{
	answer->found = false;
	snprintf(answer->text, sizeof answer->text, "%s", why);
}

static void give_up(struct fetch_server *server, struct fetch_answer *answer, const char *why)
{
	snprintf(server->given_up, sizeof server->given_up, "%s", why);
	fetch_refuse(answer, why);
}

/* 0 or an errno. Its stdout is `out`; stdin and stderr are this process's own. */
static int command_start(const char *command, const char *build_id, int out, pid_t *pid)
{
	char name[] = FETCH_COMMAND, what[] = "debuginfo",
	     id[sizeof((struct fetch_question *)0)->build_id];
	char *argv[] = {name, what, id, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, ignored;
	int status;

	memcpy(id, build_id, sizeof id);
	sigemptyset(&none);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE); /* as it is at the beginning of main */
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &ignored);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	status = posix_spawn(pid, command, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return status;
}

static struct timespec time_left(const struct fetch_server *server)
{
	struct timespec now, left;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left = (struct timespec){server->end.tv_sec - now.tv_sec,
				 server->end.tv_nsec - now.tv_nsec};
	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += 1000000000;
	}
	return left.tv_sec < 0 ? (struct timespec){0, 0} : left;
}

enum command_end {
	COMMAND_ENDED, /* by itself; there is a status */
	COMMAND_OUT_OF_TIME,
	COMMAND_LOST, /* somebody else has its status: the id may be another process's by now */
};

enum event { EVENT_CHILD, EVENT_OVER, EVENT_TIMEOUT };

static enum event event_await(const struct fetch_server *server)
{
	struct pollfd from[] = {
		{.fd = server->signals, .events = POLLIN},
		{.fd = server->stacker, .events = POLLIN},
		{.fd = server->questions}, /* nobody is there to ask */
	};
	struct timespec left = time_left(server);
	struct signalfd_siginfo signal;
	int ready = ppoll(from, sizeof from / sizeof from[0], &left, NULL);

	if (ready <= 0)
		return ready < 0 && errno == EINTR ? EVENT_CHILD : EVENT_TIMEOUT;
	if (from[1].revents || from[2].revents)
		return EVENT_OVER;
	if (read(server->signals, &signal, sizeof signal) != (ssize_t)sizeof signal)
		return EVENT_OVER;
	return signal.ssi_signo == SIGCHLD ? EVENT_CHILD : EVENT_OVER;
}

/* Out of time, or when Stacker is no more, it is ended. */
static enum command_end command_wait(const struct fetch_server *server, pid_t pid, int *status)
{
	pid_t ended;

	while ((ended = waitpid(pid, status, WNOHANG)) == 0) {
		enum event event = event_await(server);

		if (event == EVENT_CHILD)
			continue;
		kill(pid, SIGKILL);
		waitpid(pid, status, 0);
		if (event == EVENT_OVER)
			_exit(0);
		return COMMAND_OUT_OF_TIME;
	}
	return ended == pid ? COMMAND_ENDED : COMMAND_LOST;
}

/* The one line that the command printed, if it is a path. A pipe holds more than any path, so
 * nobody needs to read while the command runs. */
static bool path_read(int from, struct fetch_answer *answer)
{
	ssize_t got = read(from, answer->text, sizeof answer->text - 1);
	char *end;

	if (got <= 0 || answer->text[0] != '/')
		return false;
	answer->text[got] = '\0';
	end = strchr(answer->text, '\n');
	if (!end || end != answer->text + got - 1)
		return false;
	*end = '\0';
	return true;
}

static void status_tell(int status, struct fetch_answer *answer)
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	const char *hint = servers && *servers ? "" : " (DEBUGINFOD_URLS is not set)";

	if (WIFEXITED(status))
		snprintf(answer->text, sizeof answer->text, "it found nothing%s", hint);
	else
		snprintf(answer->text, sizeof answer->text, "it was ended by signal %d",
			 WTERMSIG(status));
}

/* Answers by what the command, which writes to `from`, comes to. */
static void command_finish(struct fetch_server *server, pid_t pid, int from,
			   struct fetch_answer *answer)
{
	int status;
	enum command_end end = command_wait(server, pid, &status);

	if (end == COMMAND_OUT_OF_TIME)
		give_up(server, answer, "out of time (--debuginfod-timeout)");
	else if (end == COMMAND_LOST)
		give_up(server, answer, "how it ended is not known");
	else if (status != 0)
		status_tell(status, answer);
	else if (!(answer->found = path_read(from, answer)))
		fetch_refuse(answer, "what it printed is not a path");
}

static bool command_is_known(struct fetch_server *server, struct fetch_answer *answer)
{
	const char *why;

	if (!server->command)
		server->command = fetch_command(&server->arena, &why);
	if (!server->command)
		give_up(server, answer, why);
	return server->command;
}

static void file_find(struct fetch_server *server, const char *build_id,
		      struct fetch_answer *answer)
{
	int pipe_ends[2], error;
	pid_t pid;

	if (!command_is_known(server, answer))
		return;
	if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		fetch_refuse(answer, strerror(errno));
		return;
	}
	error = command_start(server->command, build_id, pipe_ends[1], &pid);
	close(pipe_ends[1]);
	if (error == ENOENT)
		give_up(server, answer, "it is not installed");
	else if (error)
		give_up(server, answer, strerror(error));
	else
		command_finish(server, pid, pipe_ends[0], answer);
	close(pipe_ends[0]);
}

/* Who asks reads files of other people: what comes from there is no path and no option. */
static bool is_build_id(const char *text)
{
	size_t len = strlen(text);

	return len >= 2 && len % 2 == 0 && strspn(text, "0123456789abcdef") == len;
}

static void answer_question(struct fetch_server *server, const char *build_id,
			    struct fetch_answer *answer)
{
	*answer = (struct fetch_answer){.found = false};
	if (!server->begun) {
		clock_gettime(CLOCK_MONOTONIC, &server->end);
		server->end.tv_sec += (time_t)server->limit_s;
		server->begun = true;
	}
	if (!is_build_id(build_id))
		fetch_refuse(answer, "asked for what is not a build-id");
	else if (server->given_up[0])
		fetch_refuse(answer, server->given_up);
	else
		file_find(server, build_id, answer);
}

static void quiet_begin(struct fetch_server *server)
{
	sigset_t set = awaited();
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0) /* nothing can be read from or written to this one */
		null = open("/", O_PATH | O_CLOEXEC);
	signal(SIGCHLD, SIG_DFL); /* ignored, the command's status would be lost */
	signal(PARENT_ENDED, SIG_DFL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	server->signals = signalfd(-1, &set, SFD_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, PARENT_ENDED);
	/* Who waits for the end of Stacker's output must not wait for this process. */
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (!server->verbose)
		dup2(null, STDERR_FILENO);
}

/* Somebody may hold the pipe of a Stacker that is no more: a process that it left behind. */
static bool question_await(const struct fetch_server *server)
{
	struct pollfd from[] = {
		{.fd = server->questions, .events = POLLIN},
		{.fd = server->stacker, .events = POLLIN},
	};

	while (poll(from, 2, -1) < 0)
		if (errno != EINTR)
			return false;
	return from[0].revents & POLLIN;
}

void fetch_serve(struct fetch_server *server)
{
	struct fetch_question question;
	struct fetch_answer answer;

	quiet_begin(server);
	while (question_await(server) &&
	       fetch_read(server->questions, &question, sizeof question)) {
		question.build_id[sizeof question.build_id - 1] = '\0';
		answer_question(server, question.build_id, &answer);
		if (!fetch_write(server->answers, &answer, sizeof answer))
			break;
	}
	_exit(0);
}
