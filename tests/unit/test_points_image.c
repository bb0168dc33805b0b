/*
 * symbol/points_image: what is written is read again, and nothing else is: tables cut short, changed, and such
 * that lie with the right checksum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/points_image.h"

static const struct bytes key = {(const uint8_t *)"key", 3};

static struct point points_of_info[] = {{{100000, 80001, 1}, 0},
					{{200000, 160007, 2}, 2},
					{{300000, 240000, 3}, 1}};
static struct points_check checks_of_info[] = {{5000, 7}, {250000, 8}};
static struct point points_of_lines[] = {{{STREAM_WINDOW, 8, 1}, 3}};

static void sample(struct points *points)
{
	struct points_section *info = &points->sections[SECTION_INFO];
	struct points_section *lines = &points->sections[SECTION_LINE];

	memset(points, 0, sizeof *points);
	points->windows = 4;
	info->packed = 50000;
	info->size = 1000000;
	info->end = 290000;
	info->at.at = points_of_info;
	info->at.count = 3;
	info->checks.at = checks_of_info;
	info->checks.count = 2;
	lines->packed = 20000;
	lines->size = lines->end = 40000;
	lines->at.at = points_of_lines;
	lines->at.count = 1;
	points->sections[SECTION_STR].size = 5; /* without points: not kept */
}

static void test_round_trip(void **state)
{
	struct points points, again = {0};
	struct points_image image;
	struct arena arena = {0};
	struct points_head head;

	(void)state;
	sample(&points);
	points_image_make(&image, &arena, &points, key);
	assert_true(points_head_read(&head, image.head));
	assert_int_equal(head.windows, 4);
	assert_int_equal(head.tables, image.tables.len);
	assert_true(points_image_read(&again, &arena, image.head, image.tables, key));
	assert_int_equal(again.windows, 4);
	for (size_t i = 0; i < SECTION_COUNT; i++) {
		const struct points_section *a = &points.sections[i], *b = &again.sections[i];

		if (i == SECTION_STR) {
			assert_int_equal(b->size, 0);
			continue;
		}
		assert_int_equal(a->packed, b->packed);
		assert_int_equal(a->size, b->size);
		assert_int_equal(a->end, b->end);
		assert_int_equal(a->at.count, b->at.count);
		assert_int_equal(a->checks.count, b->checks.count);
		for (size_t k = 0; k < a->at.count; k++) {
			assert_int_equal(a->at.at[k].at.off, b->at.at[k].at.off);
			assert_int_equal(a->at.at[k].at.bit, b->at.at[k].at.bit);
			assert_int_equal(a->at.at[k].at.checksum, b->at.at[k].at.checksum);
			assert_int_equal(a->at.at[k].window, b->at.at[k].window);
		}
		for (size_t k = 0; k < a->checks.count; k++) {
			assert_int_equal(a->checks.at[k].off, b->checks.at[k].off);
			assert_int_equal(a->checks.at[k].checksum, b->checks.at[k].checksum);
		}
	}
	arena_free(&arena);
}

static bool is_read(const uint8_t *head, struct bytes tables, struct bytes with)
{
	struct points points = {0};
	struct arena arena = {0};
	bool good = points_image_read(&points, &arena, head, tables, with);

	arena_free(&arena);
	return good;
}

static void test_damage(void **state)
{
	struct arena arena = {0};
	struct points_image image;
	struct points points;
	uint8_t *bytes;

	(void)state;
	sample(&points);
	points_image_make(&image, &arena, &points, key);
	bytes = (uint8_t *)(uintptr_t)image.tables.at;
	assert_true(is_read(image.head, image.tables, key));
	assert_false(is_read(image.head, image.tables, (struct bytes){key.at, 2}));
	for (size_t len = 0; len < image.tables.len; len++)
		assert_false(is_read(image.head, (struct bytes){bytes, len}, key));
	for (size_t i = 0; i < image.tables.len; i++) {
		bytes[i] ^= 1;
		assert_false(is_read(image.head, image.tables, key));
		bytes[i] ^= 1;
	}
	for (size_t i = 0; i < POINTS_HEAD_SIZE; i++) {
		image.head[i] ^= 1;
		assert_false(is_read(image.head, image.tables, key));
		image.head[i] ^= 1;
	}
	arena_free(&arena);
}

/* Everything that may not be, with the right checksum. */
static void lie(void (*how)(struct points *points))
{
	struct arena arena = {0};
	struct points_image image;
	struct points points;
	struct point kept[3];

	sample(&points);
	memcpy(kept, points_of_info, sizeof kept);
	how(&points);
	points_image_make(&image, &arena, &points, key);
	memcpy(points_of_info, kept, sizeof kept);
	assert_false(is_read(image.head, image.tables, key));
	arena_free(&arena);
}

static void lie_order(struct points *points)
{
	points->sections[SECTION_INFO].at.at[1].at.off = 100000;
}

static void lie_bit_order(struct points *points)
{
	points->sections[SECTION_INFO].at.at[1].at.bit = 1;
}

static void lie_early(struct points *points)
{
	points->sections[SECTION_INFO].at.at[0].at.off = STREAM_WINDOW - 1;
}

static void lie_late(struct points *points)
{
	points->sections[SECTION_INFO].size = 300000;
	points->sections[SECTION_INFO].end = 290000;
}

static void lie_input(struct points *points)
{
	points->sections[SECTION_INFO].packed = 30000;
}

static void lie_window(struct points *points)
{
	points->sections[SECTION_INFO].at.at[1].window = 4;
}

static void lie_end(struct points *points)
{
	points->sections[SECTION_INFO].end = 300001;
}

static void lie_check_order(struct points *points)
{
	static struct points_check twice[] = {{5000, 7}, {5000, 8}};

	points->sections[SECTION_INFO].checks.at = twice;
}

static void lie_check_late(struct points *points)
{
	static struct points_check late[] = {{5000, 7}, {1000001, 8}};

	points->sections[SECTION_INFO].checks.at = late;
}

static void test_lies(void **state)
{
	static void (*const lies[])(
		struct points *) = {lie_order, lie_bit_order,   lie_early,
				    lie_late,  lie_input,       lie_window,
				    lie_end,   lie_check_order, lie_check_late};

	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
		lie(lies[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
