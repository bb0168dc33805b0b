/* base/arena: memory that may be refused, and memory that is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

#define LARGE ((size_t)1 << 20)

/* The sanitizer would end the program where malloc says no. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void test_what_is_not_there_is_null(void **state)
{
	struct arena arena = {0};
	volatile size_t half = SIZE_MAX / 2, all = SIZE_MAX;

	(void)state;
	assert_null(arena_try(&arena, all, 2));
	assert_null(arena_try(&arena, all, 1));
	assert_null(arena_try(&arena, half, 1));
	assert_int_equal(arena_held(&arena), 0);
	memset(arena_alloc(&arena, 100, 1), 1, 100);
	assert_null(arena_try(&arena, half, 1));
	memset(arena_alloc(&arena, 100, 1), 1, 100);
	arena_free(&arena);
}

/* Whichever of three goes, the others stay, and the arena can still be used. */
static void test_any_large_one_goes(void **state)
{
	(void)state;
	for (int small_first = 0; small_first < 2; small_first++) {
		for (size_t gone = 0; gone < 3; gone++) {
			struct arena arena = {0};
			uint8_t *at[3];
			size_t held;

			if (small_first)
				arena_string(&arena, "small");
			for (size_t i = 0; i < 3; i++) {
				at[i] = arena_try(&arena, LARGE, 1);
				memset(at[i], (int)i + 1, LARGE);
			}
			held = arena_held(&arena);
			assert_true(arena_drop(&arena, at[gone], LARGE));
			assert_int_equal(arena_held(&arena), held - LARGE);
			for (size_t i = 0; i < 3; i++)
				assert_true(i == gone || at[i][LARGE - 1] == i + 1);
			assert_string_equal(arena_string(&arena, "more"), "more");
			arena_reset(&arena);
			assert_string_equal(arena_string(&arena, "again"), "again");
			arena_free(&arena);
		}
	}
}

static void test_the_only_one_goes(void **state)
{
	struct arena arena = {0};

	(void)state;
	assert_true(arena_drop(&arena, arena_try(&arena, LARGE, 1), LARGE));
	assert_int_equal(arena_held(&arena), 0);
	arena_reset(&arena);
	assert_string_equal(arena_string(&arena, "again"), "again");
	arena_free(&arena);
}

/* Zeroed and aligned as ever, to its last byte and not beyond. */
static void test_one_over_memory_ends_with_it(void **state)
{
	static uint8_t memory[4096];
	struct arena arena = arena_over(memory + 1, sizeof memory - 1);
	size_t given = 0;
	uint8_t *at;

	(void)state;
	while ((at = arena_try(&arena, 1, 100))) {
		assert_int_equal((uintptr_t)at % _Alignof(max_align_t), 0);
		assert_true(at > memory && at + 100 <= memory + sizeof memory);
		assert_int_equal(at[0] | at[99], 0);
		memset(at, 1, 100);
		given++;
	}
	assert_true(given >= 36);
	assert_null(arena_try(&arena, 1, (size_t)1 << 20));
	assert_false(arena_drop(&arena, memory, 100000));
	arena_free(&arena);
	arena = arena_over(memory + 1, 2);
	assert_null(arena_try(&arena, 1, 1));
}

static void test_small_and_strange_ones_stay(void **state)
{
	struct arena arena = {0};
	uint8_t *small = arena_try(&arena, 100, 1), other[1];

	(void)state;
	assert_false(arena_drop(&arena, small, 100));
	memset(small, 1, 100);
	assert_false(arena_drop(&arena, other, LARGE));
	arena_free(&arena);
	assert_false(arena_drop(&arena, other, LARGE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_not_there_is_null),
		cmocka_unit_test(test_any_large_one_goes),
		cmocka_unit_test(test_the_only_one_goes),
		cmocka_unit_test(test_one_over_memory_ends_with_it),
		cmocka_unit_test(test_small_and_strange_ones_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
