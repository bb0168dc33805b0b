/*
 * Stacker's side: sets the process apart, and asks it.
 */
#include "cli/fetch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/fetch_server.h"

#define LIMIT_S_MAX 86400 /* a day is no limit any more */

struct fetcher {
	struct debug_fetch face;
	struct arena *arena;
	const struct options *options;
	int questions, answers; /* -1: there is no such process */
};

/* That process may have been killed, which must not end Stacker: a signal only tells of
 * stdout. */
static bool question_put(int to, const struct fetch_question *question)
{
	void (*before)(int) = signal(SIGPIPE, SIG_IGN);
	bool ok = fetch_write(to, question, sizeof *question);

	signal(SIGPIPE, before);
	return ok;
}

static const char *fetch_file(void *context, struct bytes build_id, const char **why)
{
	struct fetcher *fetcher = context;
	const char *hex = build_id_text(fetcher->arena, build_id);
	struct fetch_question question = {.build_id = ""};
	struct fetch_answer answer;

	snprintf(question.build_id, sizeof question.build_id, "%s", hex);
	progress(fetcher->options, "asking debuginfod servers");
	if (fetcher->questions < 0)
		fetch_refuse(&answer, "there is no process to run it");
	else if (!question_put(fetcher->questions, &question) ||
		 !fetch_read(fetcher->answers, &answer, sizeof answer))
		fetch_refuse(&answer, "the process that runs it has ended");
	progress(fetcher->options, NULL);
	if (answer.found)
		return arena_string(fetcher->arena, answer.text);
	*why = arena_printf(fetcher->arena, FETCH_COMMAND ": %s", answer.text);
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
		struct fetch_server server = {
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
		fetch_serve(&server);
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
