/*
 * Lists of processors as sysfs has them: process/occupier.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process/occupier.h"

static void lists_of_processors(void **state)
{
	static const struct {
		const char *text;
		uint64_t first, last_word;
	} cases[] = {
		{"", 0, 0},
		{"\n", 0, 0},
		{"(null)\n", 0, 0}, /* nohz_full of some kernels */
		{"0\n", 1, 0},
		{"1-3\n", 0xe, 0},
		{"0-1,4,6-7\n", 0xd3, 0},
		{"63,8191\n", UINT64_C(1) << 63, UINT64_C(1) << 63},
		/* Malformed: bounded, and what can be read is taken. */
		{"8192\n", 0, 0},
		{"0-99999999999999999999", UINT64_MAX, UINT64_MAX},
		{"3-1", 0, 0},
		{"1-", 0, 0},
		{"2,,3", 4, 0},
		{"1,x", 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t cpus[CPU_WORDS] = {0};

		cpu_list_read(cases[i].text, cpus);
		if (cpus[0] != cases[i].first || cpus[CPU_WORDS - 1] != cases[i].last_word)
			fail_msg("%s: %jx %jx", cases[i].text, (uintmax_t)cpus[0],
				 (uintmax_t)cpus[CPU_WORDS - 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_processors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
