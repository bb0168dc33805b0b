/* base/sort: the same as a stable qsort, for all counts and kinds of disorder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sort.h"

#define COUNT_MAX 300

struct item {
	uint32_t key, place;
	uint8_t load[9];
};

static size_t compared;

static int compare_keys(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	compared++;
	return x->key < y->key ? -1 : x->key > y->key;
}

static uint32_t roll(uint32_t *dice, uint32_t sides)
{
	*dice = *dice * 1664525 + 1013904223;
	return (*dice >> 8) % sides;
}

static void sorts(struct arena *arena, size_t count, uint32_t keys)
{
	struct item *items = arena_array(arena, struct item, count);
	bool *seen = arena_array(arena, bool, count);
	uint32_t dice = (uint32_t)count;

	for (size_t i = 0; i < count; i++)
		items[i] = (struct item){roll(&dice, keys), (uint32_t)i, {(uint8_t)i}};
	sort(arena, items, count, sizeof *items, compare_keys);
	for (size_t i = 0; i < count; i++) {
		assert_false(seen[items[i].place]);
		seen[items[i].place] = true;
		assert_int_equal(items[i].load[0], (uint8_t)items[i].place);
		if (i && items[i - 1].key == items[i].key)
			assert_true(items[i - 1].place < items[i].place);
		else if (i)
			assert_true(items[i - 1].key < items[i].key);
	}
}

static void test_all_counts(void **state)
{
	struct arena arena = {0};

	(void)state;
	for (size_t count = 0; count <= COUNT_MAX; count++) {
		sorts(&arena, count, 10);
		sorts(&arena, count, UINT32_MAX);
		arena_reset(&arena);
	}
	arena_free(&arena);
}

/* In order: one comparison each, and no memory. */
static void test_in_order(void **state)
{
	struct item items[COUNT_MAX];

	(void)state;
	for (uint32_t i = 0; i < COUNT_MAX; i++)
		items[i] = (struct item){.key = i / 2, .place = i};
	compared = 0;
	sort(NULL, items, COUNT_MAX, sizeof items[0], compare_keys);
	assert_int_equal(compared, COUNT_MAX - 1);
	sort(NULL, NULL, 0, sizeof items[0], compare_keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_counts),
		cmocka_unit_test(test_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
