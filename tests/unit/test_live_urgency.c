/*
 * base/urgency: there is an end to it, in the sandbox too, and for the process that puts files in their places.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/placer.h"
#include "base/urgency.h"
#include "cli/sandbox.h"

#define URGENT (-20)

static int64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Longer than there is urgency: processor time, of which a busy machine takes nothing away. */
static void time_use(void)
{
	int64_t begin = used_ns();

	while (used_ns() - begin < 700000000)
		;
}

static void it_ends(void **state)
{
	int before = getpriority(PRIO_PROCESS, 0);

	(void)state;
	urgency_begin();
	if (before != 0 || getpriority(PRIO_PROCESS, 0) != URGENT)
		skip(); /* not permitted here */
	time_use();
	assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

__attribute__((noreturn)) static void sandboxed(int tell, int listen)
{
	struct sandbox sandbox;
	char byte = 0;

	urgency_begin();
	if (write(tell, &byte, 1) != 1)
		_exit(1);
	sandbox_enter(NULL, 0, &sandbox);
	time_use();
	if (write(tell, &byte, 1) != 1 || read(listen, &byte, 1) != 1)
		_exit(1);
	_exit(0);
}

/* There nobody may ask for the priority: it is looked at from outside. */
static void it_ends_in_the_sandbox(void **state)
{
	int before = getpriority(PRIO_PROCESS, 0), from[2], to[2], status, urgent, after;
	char byte = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(from), 0);
	assert_int_equal(pipe(to), 0);
	pid = fork();
	if (pid == 0)
		sandboxed(from[1], to[0]);
	assert_int_equal(read(from[0], &byte, 1), 1);
	urgent = getpriority(PRIO_PROCESS, (id_t)pid);
	assert_int_equal(read(from[0], &byte, 1), 1);
	after = getpriority(PRIO_PROCESS, (id_t)pid);
	assert_int_equal(write(to[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	if (before != 0 || urgent != URGENT)
		skip();
	assert_int_equal(after, before);
}

static bool place(void *context, struct err *e)
{
	int *told = context;

	(void)e;
	told[0] = getpriority(PRIO_PROCESS, 0);
	time_use();
	told[1] = getpriority(PRIO_PROCESS, 0);
	return write(told[2], told, 2 * sizeof *told) == 2 * sizeof *told;
}

static void no_place(void *context)
{
	(void)context;
}

static void it_ends_where_files_are_placed(void **state)
{
	int before = getpriority(PRIO_PROCESS, 0), from[2], told[3];
	struct placer_task task = {place, no_place, told};
	struct placer placer;
	bool permitted;

	(void)state;
	assert_int_equal(pipe(from), 0);
	told[2] = from[1];
	urgency_begin();
	permitted = before == 0 && getpriority(PRIO_PROCESS, 0) == URGENT;
	assert_true(placer_start(&placer, &task));
	assert_true(placer_ask(&placer, NULL));
	assert_int_equal(read(from[0], told, 2 * sizeof *told), 2 * sizeof *told);
	setpriority(PRIO_PROCESS, 0, before);
	if (!permitted)
		skip();
	assert_int_equal(told[0], URGENT);
	assert_int_equal(told[1], before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends),
		cmocka_unit_test(it_ends_in_the_sandbox),
		cmocka_unit_test(it_ends_where_files_are_placed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
