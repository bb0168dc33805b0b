#include "cli/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/signals.h"

#define COMMAND "debuginfod-find"
#define LIMIT_S_MAX 86400 /* a day is no limit any more */

/* What goes through the pipes, whole. Both ends are one program, but what Stacker reads may
 * have taken its end over. */
struct question {
	char build_id[2 * BUILD_ID_MAX + 1];
};
struct answer {
	bool found;
	char text[PATH_MAX]; /* the path, or why there is none */
};

static bool read_whole(int fd, void *to, size_t size)
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

static bool write_whole(int fd, const void *from, size_t size)
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

/* ---- The process that is set apart ---- */

struct server {
	int questions, answers;
	int stacker; /* a descriptor of that process, -1: not to be had (before Linux 5.3) */
	int signals; /* awaited(), to be read */
	bool verbose;
	uint64_t limit_s;
	bool begun;
	struct timespec end; /* CLOCK_MONOTONIC; once begun */
	char given_up[80];   /* asking again is no use; "": go on */
};

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

static void no_answer(struct answer *answer, const char *why)
{
	answer->found = false;
	snprintf(answer->text, sizeof answer->text, "%s", why);
}

static void give_up(struct server *server, struct answer *answer, const char *why)
{
	snprintf(server->given_up, sizeof server->given_up, "%s", why);
	no_answer(answer, why);
}

/* 0 or an errno. Its stdout is `out`; stdin and stderr are this process's own. */
static int command_start(const char *build_id, int out, pid_t *pid)
{
	char name[] = COMMAND, what[] = "debuginfo", id[sizeof((struct question *)0)->build_id];
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
	status = posix_spawnp(pid, COMMAND, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return status;
}

static struct timespec time_left(const struct server *server)
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

static enum event event_await(const struct server *server)
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
static enum command_end command_wait(const struct server *server, pid_t pid, int *status)
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
static bool path_read(int from, struct answer *answer)
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

static void status_tell(int status, struct answer *answer)
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
static void command_finish(struct server *server, pid_t pid, int from, struct answer *answer)
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
		no_answer(answer, "what it printed is not a path");
}

static void file_find(struct server *server, const char *build_id, struct answer *answer)
{
	int pipe_ends[2], error;
	pid_t pid;

	if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
		no_answer(answer, strerror(errno));
		return;
	}
	error = command_start(build_id, pipe_ends[1], &pid);
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

static void answer_question(struct server *server, const char *build_id, struct answer *answer)
{
	*answer = (struct answer){.found = false};
	if (!server->begun) {
		clock_gettime(CLOCK_MONOTONIC, &server->end);
		server->end.tv_sec += (time_t)server->limit_s;
		server->begun = true;
	}
	if (!is_build_id(build_id))
		no_answer(answer, "asked for what is not a build-id");
	else if (server->given_up[0])
		no_answer(answer, server->given_up);
	else
		file_find(server, build_id, answer);
}

static void quiet_begin(struct server *server)
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
static bool question_await(const struct server *server)
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

__attribute__((noreturn)) static void serve(struct server *server)
{
	struct question question;
	struct answer answer;

	quiet_begin(server);
	while (question_await(server) &&
	       read_whole(server->questions, &question, sizeof question)) {
		question.build_id[sizeof question.build_id - 1] = '\0';
		answer_question(server, question.build_id, &answer);
		if (!write_whole(server->answers, &answer, sizeof answer))
			break;
	}
	_exit(0);
}

/* ---- Stacker's side ---- */

struct fetcher {
	struct debug_fetch face;
	struct arena *arena;
	const struct options *options;
	int questions, answers; /* -1: there is no such process */
};

/* That process may have been killed, which must not end Stacker: a signal only tells of
 * stdout. */
static bool question_put(int to, const struct question *question)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	bool ok = write_whole(to, question, sizeof *question);

	signal(SIGPIPE, before);
	return ok;
}

static const char *fetch_file(void *context, struct bytes build_id, const char **why)
{
	struct fetcher *fetcher = context;
	const char *hex = build_id_text(fetcher->arena, build_id);
	struct question question = {.build_id = ""};
	struct answer answer;

	snprintf(question.build_id, sizeof question.build_id, "%s", hex);
	progress(fetcher->options, "asking debuginfod servers");
	if (fetcher->questions < 0)
		no_answer(&answer, "there is no process to run it");
	else if (!question_put(fetcher->questions, &question) ||
		 !read_whole(fetcher->answers, &answer, sizeof answer))
		no_answer(&answer, "the process that runs it has ended");
	progress(fetcher->options, NULL);
	if (answer.found)
		return arena_string(fetcher->arena, answer.text);
	*why = arena_printf(fetcher->arena, COMMAND ": %s", answer.text);
	return NULL;
}

static void pipe_close(int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

static bool pipes_make(int questions[2], int answers[2])
{
	if (pipe2(questions, O_CLOEXEC) != 0)
		return false;
	if (pipe2(answers, O_CLOEXEC) == 0)
		return true;
	pipe_close(questions);
	return false;
}

const struct debug_fetch *fetch_start(struct arena *arena, const struct options *options)
{
	struct fetcher *fetcher = arena_new(arena, struct fetcher);
	uint64_t limit_s = options->debuginfod_timeout_s;
	int questions[2], answers[2], self;
	pid_t pid;

	*fetcher = (struct fetcher){
		{fetch_file, fetcher}, arena, options, .questions = -1, .answers = -1};
	if (!pipes_make(questions, answers))
		return &fetcher->face;
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	pid = fork();
	if (pid == 0) {
		struct server server = {
			.stacker = self,
			.questions = questions[0],
			.answers = answers[1],
			.verbose = options->verbose,
			.limit_s = limit_s == 0            ? FETCH_LIMIT_S
				   : limit_s > LIMIT_S_MAX ? LIMIT_S_MAX
							   : limit_s,
		};

		close(questions[1]);
		close(answers[0]);
		serve(&server);
	}
	if (self >= 0)
		close(self);
	if (pid < 0) {
		pipe_close(questions);
		pipe_close(answers);
		return &fetcher->face;
	}
	close(questions[0]);
	close(answers[1]);
	fetcher->questions = questions[1];
	fetcher->answers = answers[0];
	return &fetcher->face;
}
