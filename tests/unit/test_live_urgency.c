/*
 * base/urgency: there is an end to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "base/urgency.h"

static int64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Processor time, of which a busy machine takes nothing away. */
static void it_ends(void **state)
{
	int before = getpriority(PRIO_PROCESS, 0);
	int64_t begin = used_ns();

	(void)state;
	urgency_begin();
	if (before != 0 || getpriority(PRIO_PROCESS, 0) != -20)
		skip(); /* not permitted here */
	while (used_ns() - begin < 700000000)
		;
	assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
