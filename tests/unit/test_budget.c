/* base/budget: one allowance of memory and work. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/budget.h"

static void test_memory(void **state)
{
	(void)state;
	budget_allow(100);
	assert_true(budget_take(60));
	assert_false(budget_refused());
	assert_false(budget_take(41));
	assert_true(budget_refused());
	assert_true(budget_take(40));
	assert_int_equal(budget_held(), 100);
	assert_int_equal(budget_left(), 0);
	budget_give_back(60);
	assert_int_equal(budget_held(), 40);
	assert_true(budget_take(60));
	assert_false(budget_take(UINT64_MAX));
}

static void test_work_is_in_proportion(void **state)
{
	(void)state;
	budget_allow(100);
	assert_true(budget_work(100 * BUDGET_WORK_PER_BYTE - 1));
	assert_false(budget_refused());
	assert_false(budget_work(2));
	assert_true(budget_refused());
	assert_false(budget_work(1)); /* who was refused once has no rest to nibble at */
	budget_allow(UINT64_MAX);
	assert_false(budget_refused());
	assert_int_equal(budget_work_left(), UINT64_MAX);
}

/* What a growing array takes is what it draws. */
static void test_growing(void **state)
{
	struct arena arena = {0};
	VEC(uint64_t) numbers = {0};

	(void)state;
	budget_allow(10000);
	while (budget_has_room(numbers.count, numbers.capacity, sizeof *numbers.at))
		*vec_push(&arena, &numbers) = 1;
	assert_int_equal(numbers.count, numbers.capacity);
	assert_in_range(numbers.count, 16, 10000 / sizeof *numbers.at);
	assert_int_equal(budget_held(), (2 * numbers.capacity - 16) * sizeof *numbers.at);
	arena_free(&arena);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *take_and_give(void *argument)
{
	size_t *refused = argument;

	for (int i = 0; i < ROUNDS; i++) {
		if (budget_take(40))
			budget_give_back(40);
		else
			++*refused;
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	size_t refused[THREADS] = {0};

	(void)state;
	budget_allow(THREADS * 40);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &refused[i]),
				 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(refused[i], 0);
	}
	assert_int_equal(budget_left(), THREADS * 40);
	assert_int_equal(budget_held(), 0);
}

/* Never more than half of what there is, whatever is asked for. */
static void test_machine(void **state)
{
	(void)state;
	budget_begin(UINT64_MAX / 4);
	assert_true(budget_left() > 0 && budget_left() < UINT64_MAX / 8);
	budget_begin(1000);
	assert_int_equal(budget_left(), 1000);
	budget_begin(0);
	assert_true(budget_left() <= BUDGET_MEMORY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),  cmocka_unit_test(test_work_is_in_proportion),
		cmocka_unit_test(test_growing), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
