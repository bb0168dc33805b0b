/*
 * process/ready: what is there stays, nothing outside is touched, and afterwards no write
 * faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/ready.h"

#define PAGES 600 /* more than one system call takes */

/* So many pages between two that must not be touched. */
static uint8_t *pages_new(size_t page)
{
	uint8_t *at =
		mmap(NULL, (PAGES + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + page, PAGES * page, PROT_READ | PROT_WRITE), 0);
	return at + page;
}

static void pages_free(uint8_t *at, size_t page)
{
	munmap(at - page, (PAGES + 2) * page);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void test_nothing_faults_afterwards(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = pages_new(page);
	long before;

	(void)state;
	memory_ready(at, PAGES * page);
	before = faults();
	for (size_t i = 0; i < PAGES; i++)
		at[i * page] = 1;
	assert_true(faults() - before < PAGES / 10);
	pages_free(at, page);
}

static void test_contents_stay(void **state)
{
	static const size_t edges[] = {0, 1, 100, 4095, 4096, 4097};
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = PAGES * page;
	uint8_t *at = pages_new(page);

	(void)state;
	memset(at, 0xa5, size);
	for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
		for (size_t k = 0; k < sizeof edges / sizeof edges[0]; k++)
			memory_ready(at + edges[i], size - edges[i] - edges[k]);
	memory_ready(at, 0);
	for (size_t i = 0; i < size; i++)
		if (at[i] != 0xa5)
			fail_msg("byte %zu is %#x", i, at[i]);
	pages_free(at, page);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_faults_afterwards),
		cmocka_unit_test(test_contents_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
