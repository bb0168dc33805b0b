/*
 * symbol/perfmap: lines as just-in-time compilers write them, code that replaced other code, lines
 * that are none, and the overlaps against a second implementation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "symbol/perfmap.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct perfmap *parse(struct arena *arena, const char *text)
{
	/* Without the NUL, in memory of exactly its size. */
	size_t len = strlen(text);
	char *exact = arena_alloc(arena, len + 1, 1);

	memcpy(exact, text, len);
	return perfmap_parse(arena, (struct bytes){(const uint8_t *)exact, len});
}

static const char *name_at(const struct perfmap *map, uint64_t va)
{
	struct perfmap_place place;

	return perfmap_find(map, va, &place) ? place.function : "(none)";
}

/* clang-format off */
static const struct {
	const char *name, *text;
	uint64_t va;
	const char *want;
} cases[] = {
	{"first byte", "1000 10 f\n", 0x1000, "f"},
	{"last byte", "1000 10 f\n", 0x100f, "f"},
	{"behind", "1000 10 f\n", 0x1010, "(none)"},
	{"before", "1000 10 f\n", 0xfff, "(none)"},
	{"0x", "0x1000 0X10 f\n", 0x1008, "f"},
	{"capitals", "ABC0 1A f\n", 0xabd9, "f"},
	{"a name with spaces", "1000 10 LazyCompile:*run /app/x.js:3\n", 0x1000,
	 "LazyCompile:*run /app/x.js:3"},
	{"no newline at the end", "1000 10 f", 0x1000, "f"},
	{"carriage returns", "1000 10 f\r\n1010 10 g\r\n", 0x1010, "g"},
	{"tabs", "1000\t10\tf\n", 0x1000, "f"},
	{"any order", "2000 10 g\n1000 10 f\n", 0x1000, "f"},
	{"the later line wins", "1000 20 old\n1000 20 new\n", 0x1010, "new"},
	{"in part", "1000 20 old\n1008 8 new\n", 0x100c, "new"},
	{"behind that part the old one goes on", "1000 20 old\n1008 8 new\n", 0x1010, "old"},
	{"though it begins before", "1008 8 old\n1000 20 new\n", 0x100c, "new"},
	{"empty lines and others", "\n\nhello\n1000 10 f\n# x\n", 0x1000, "f"},
	{"no name", "1000 10\n1000 10 \n", 0x1000, "(none)"},
	{"no size", "1000 f\n", 0x1000, "(none)"},
	{"size 0", "1000 0 f\n", 0x1000, "(none)"},
	{"not hex", "10g0 10 f\n", 0x10, "(none)"},
	{"a sign", "-1000 10 f\n", 0x1000, "(none)"},
	{"17 digits", "11111111111111111 10 f\n", 0x1111111111111111, "(none)"},
	{"leading zeros", "00000000000000001000 10 f\n", 0x1000, "f"},
	{"a size that wraps", "fffffffffffffff0 ffffffffffffffff f\n", 0xfffffffffffffffe, "f"},
	{"does not come out below", "fffffffffffffff0 ffffffffffffffff f\n", 0x10, "(none)"},
	{"nothing", "", 0, "(none)"},
	{"only 0x", "0x 10 f\n", 0, "(none)"},
};
/* clang-format on */

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct arena arena = {0};
		const char *got = name_at(parse(&arena, cases[i].text), cases[i].va);

		if (strcmp(got, cases[i].want) != 0)
			fail_msg("%s: %s, not %s", cases[i].name, got, cases[i].want);
		arena_free(&arena);
	}
}

static void test_cut_short_at_every_length(void **state)
{
	static const char text[] = "1000 20 old\n1008 8 newer one\n0x2000 10 g\r\n";
	struct arena arena = {0};

	(void)state;
	for (size_t len = 0; len < sizeof text; len++) {
		struct perfmap *map = parse(&arena, arena_copy(&arena, text, len));

		for (uint64_t va = 0xff0; va < 0x1040; va++)
			name_at(map, va);
		assert_true(perfmap_count(map) <= 3);
	}
	arena_free(&arena);
}

static void test_long_names_are_cut(void **state)
{
	struct arena arena = {0};
	char *text = arena_alloc(&arena, 100000, 1);

	(void)state;
	memset(text, 'x', 99999);
	memcpy(text, "1000 10 ", 8);
	assert_int_equal(strlen(name_at(parse(&arena, text), 0x1000)), 4096);
	arena_free(&arena);
}

static uint32_t dice(uint32_t *seed, uint32_t sides)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % sides;
}

static void test_overlaps_against_the_slow_way(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 200; round++) {
		struct arena arena = {0};
		uint64_t start[20], end[20];
		size_t count = 1 + round % COUNT(start);
		const char *text = "";
		uint32_t seed = round;
		struct perfmap *map;

		for (size_t i = 0; i < count; i++) {
			start[i] = 0x1000 + dice(&seed, 100);
			end[i] = start[i] + 1 + dice(&seed, 40);
			text = arena_printf(&arena, "%s%llx %llx f%zu\n", text,
					    (unsigned long long)start[i],
					    (unsigned long long)(end[i] - start[i]), i);
		}
		map = parse(&arena, text);
		for (uint64_t va = 0xff0; va < 0x10a0; va++) {
			const char *want = "(none)";

			for (size_t i = 0; i < count; i++)
				if (va >= start[i] && va < end[i])
					want = arena_printf(&arena, "f%zu", i);
			assert_string_equal(name_at(map, va), want);
		}
		arena_free(&arena);
	}
}

/* Two hundred thousand lines about the same place. */
static void test_hostile_overlaps(void **state)
{
	struct arena arena = {0};
	enum { LINES = 200000, LINE = 24 };
	char *text = arena_alloc(&arena, LINES * LINE + 1, 1);
	size_t len = 0;
	clock_t begin = clock();
	struct perfmap *map;

	(void)state;
	for (unsigned i = 0; i < LINES; i++)
		len += (size_t)snprintf(text + len, LINE, "%x %x f%u\n", 0x1000 + i % 1000,
					0x100000 - i, i);
	map = perfmap_parse(&arena, (struct bytes){(const uint8_t *)text, len});
	assert_int_equal(perfmap_count(map), LINES);
	assert_string_equal(name_at(map, 0x1000 + 999), "f199999");
	assert_string_equal(name_at(map, 0x1000), "f199000");
	assert_true(clock() - begin < 20 * CLOCKS_PER_SEC);
	arena_free(&arena);
}

/* Lines too short to be any cost no room; the shortest one has room. */
static void test_lines_that_are_none(void **state)
{
	enum { NEWLINES = 1 << 20 };
	struct arena text_arena = {0}, arena = {0};
	char *text = arena_alloc(&text_arena, NEWLINES + 1, 1);
	struct perfmap *map;

	(void)state;
	memset(text, '\n', NEWLINES);
	memcpy(text + NEWLINES - 18, "\n0 1 a\n1 1 b\n2 1 c", 18);
	map = perfmap_parse(&arena, (struct bytes){(const uint8_t *)text, NEWLINES});
	assert_int_equal(perfmap_count(map), 3);
	assert_string_equal(name_at(map, 0), "a");
	assert_string_equal(name_at(map, 2), "c");
	assert_true(arena_held(&arena) < NEWLINES);
	arena_free(&arena);
	arena_free(&text_arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_cut_short_at_every_length),
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_overlaps_against_the_slow_way),
		cmocka_unit_test(test_hostile_overlaps),
		cmocka_unit_test(test_lines_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
