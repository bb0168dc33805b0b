/*
 * Which files are leased, by the text of /proc/locks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/leases.h"

static const char text[] = "1: POSIX  ADVISORY  WRITE 900 fe:00:11 0 EOF\n"
			   "2: LEASE  ACTIVE    WRITE 901 fe:00:12 0 EOF\n"
			   "3: LEASE  ACTIVE    READ  902 fe:00:13 0 EOF\n"
			   "4: LEASE  BREAKING  WRITE 903 08:1f:18446744073709551615 0 EOF\n"
			   "5: LEASE  ACTIVE    WRITE\n"
			   "6: LEASE  ACTIVE    WRITE 904 fe:00:14";

static void test_locks(void **state)
{
	static const struct {
		uint32_t major, minor;
		uint64_t inode;
		bool leased;
	} cases[] = {
		{0xfe, 0, 11, false}, {0xfe, 0, 12, true},  {0xfe, 1, 12, false},
		{0xfd, 0, 12, false}, {0xfe, 0, 13, false}, {8, 0x1f, UINT64_MAX, true},
		{0xfe, 0, 14, true},
	};
	struct arena arena = {0};
	struct leases leases;

	(void)state;
	leases_parse(&leases, &arena, text);
	assert_int_equal(leases.count, 3);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct map map = {.device_major = cases[i].major,
				  .device_minor = cases[i].minor,
				  .inode = cases[i].inode};

		assert_int_equal(leases_have(&leases, &map), cases[i].leased);
	}
	leases_parse(&leases, &arena, "");
	assert_int_equal(leases.count, 0);
	leases_parse(&leases, &arena, "\n\nnonsense\n7: LEASE");
	assert_int_equal(leases.count, 0);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
