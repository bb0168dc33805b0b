/* The process that puts a file in its place: asked, not asked, and alone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/placer.h"

#define WAIT_MS 20000

/* What the process did: 'p' or 'g' comes out here. */
static int told[2];

static bool place(void *context, struct err *e)
{
	const char *refuse = context;

	if (refuse)
		return err_set(e, ERR_PERMISSION, "%s", refuse);
	return write(told[1], "p", 1) == 1;
}

static void give_up(void *context)
{
	(void)context;
	if (write(told[1], "g", 1) != 1)
		_exit(1);
}

static char what_it_did(void)
{
	struct pollfd from = {.fd = told[0], .events = POLLIN};
	char byte = 0;

	assert_int_equal(poll(&from, 1, WAIT_MS), 1);
	assert_int_equal(read(told[0], &byte, 1), 1);
	return byte;
}

static bool says_nothing_more(void)
{
	struct pollfd from = {.fd = told[0], .events = POLLIN};

	return poll(&from, 1, 0) == 0;
}

static void start(struct placer *placer, const char *refuse)
{
	struct placer_task task = {place, give_up, (void *)(uintptr_t)refuse};

	assert_true(placer_start(placer, &task));
}

static void test_asked(void **state)
{
	struct placer placer;
	struct err e = {0};

	(void)state;
	start(&placer, NULL);
	assert_true(placer_ask(&placer, &e));
	assert_int_equal(what_it_did(), 'p');
	placer_end(&placer); /* nothing any more */
	assert_true(says_nothing_more());
}

static void test_its_error(void **state)
{
	struct placer placer;
	struct err e = {0};

	(void)state;
	start(&placer, "not there");
	assert_false(placer_ask(&placer, &e));
	assert_int_equal(e.kind, ERR_PERMISSION);
	assert_string_equal(e.text, "not there");
}

/* When placer_end returns, it has given up. */
static void test_not_asked(void **state)
{
	struct placer placer;

	(void)state;
	start(&placer, NULL);
	placer_end(&placer);
	assert_false(says_nothing_more());
	assert_int_equal(what_it_did(), 'g');
}

/* A program that is killed, while a process that it made lives on with its end of the pipe. */
static void test_alone(void **state)
{
	int hold[2], made[2];
	struct placer placer;
	pid_t program;
	char byte;

	(void)state;
	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(made), 0);
	program = fork();
	if (program == 0) {
		close(hold[1]);
		start(&placer, NULL);
		if (fork() == 0) {
			if (write(made[1], "", 1) != 1 || read(hold[0], &byte, 1) != 0)
				_exit(1);
			_exit(0);
		}
		pause();
		_exit(1);
	}
	assert_int_equal(read(made[0], &byte, 1), 1);
	assert_true(says_nothing_more());
	assert_int_equal(kill(program, SIGKILL), 0);
	assert_int_equal(waitpid(program, NULL, 0), program);
	assert_int_equal(what_it_did(), 'g');
	close(hold[1]);
	close(hold[0]);
	close(made[0]);
	close(made[1]);
}

/* Its own end is an error, not the program's end. */
static void test_killed(void **state)
{
	struct placer_task task = {place, give_up, NULL};
	struct placer placer;
	struct err e = {0};
	int status;
	pid_t child;

	(void)state;
	/* It is found as the only child of a child of ours. */
	child = fork();
	if (child == 0) {
		char path[64], pid[16] = "";
		int fd;

		if (!placer_start(&placer, &task))
			_exit(2);
		snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
		fd = open(path, O_RDONLY);
		if (fd < 0 || read(fd, pid, sizeof pid - 1) <= 0)
			_exit(3);
		if (kill(atoi(pid), SIGKILL) != 0 || waitpid(atoi(pid), NULL, 0) < 0)
			_exit(4);
		_exit(placer_ask(&placer, &e) || !strstr(e.text, "has ended"));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		skip(); /* CONFIG_PROC_CHILDREN */
	assert_int_equal(status, 0);
}

static int pipe_make(void **state)
{
	(void)state;
	return pipe(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked),     cmocka_unit_test(test_its_error),
		cmocka_unit_test(test_not_asked), cmocka_unit_test(test_alone),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, pipe_make, NULL);
}
