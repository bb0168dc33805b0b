/*
 * Stacks whose pages come slowly: what was not read in time is missing, and nobody waits for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/stacks.h"

#define THREADS 3
#define STACK_SIZE 4096

static uint8_t memory[THREADS * STACK_SIZE] __attribute__((aligned(STACK_SIZE)));

/* How many stacks were read of which each takes longer than `limit_ns`. */
static size_t stacks_within(uint64_t limit_ns)
{
	static struct avoid one_by_one = {.one_by_one = true};
	struct arena arena = {0};
	struct map maps[THREADS];
	struct snapshot snapshot = {.arch = arch_host(), .maps = maps, .map_count = THREADS};
	struct capture_request request = {.stack_limit = 1 << 20,
					  .stack_total = 1 << 20,
					  .timeout_ns = limit_ns};
	struct registers registers[THREADS] = {0};
	struct stack_owner owners[THREADS] = {0};
	struct stacks stacks;
	size_t read = 0;

	for (size_t i = 0; i < THREADS; i++) {
		uint64_t begin = (uintptr_t)memory + i * STACK_SIZE;

		maps[i] = (struct map){.start = begin,
				       .end = begin + STACK_SIZE,
				       .permissions = "rw-p",
				       .path = "",
				       .module = -1};
		registers[i].at[arch_host()->sp_slot] = begin + 512;
		owners[i].registers = &registers[i];
	}
	assert_true(stacks_reserve(&stacks, &arena, &snapshot, &request, THREADS, NULL));
	stacks.avoid = &one_by_one;
	stacks.tid = (uint32_t)syscall(SYS_gettid);
	stacks_copy(&stacks, owners, 0, THREADS);
	for (size_t i = 0; i < stacks.count; i++)
		read += stacks.copies[i].got > 0;
	stacks_release(&stacks);
	arena_free(&arena);
	return read;
}

static void test_time_is_limited(void **state)
{
	(void)state;
	assert_int_equal(stacks_within(UINT64_C(60000000000)), THREADS);
	assert_int_equal(stacks_within(1), 1);
	assert_int_equal(stacks_within(0), THREADS); /* no limit */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
