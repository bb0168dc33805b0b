/*
 * elf/gopclntab: the four layouts, made here field by field, and each of them cut short at
 * every length and with every byte wrong.
 *
 * The program that the tables describe: main.one at TEXT (lines 10, then 11 from its 8th byte on,
 * one.go), main.two at TEXT + 0x20 (line 7, two.go), the end at TEXT + 0x30.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "elf/gopclntab.h"
#include "elf_image.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define TEXT 0x401000
#define TABLE_MAX 512

struct table {
	uint8_t at[TABLE_MAX];
	size_t len;
};

static size_t put(struct table *t, uint64_t value, size_t size)
{
	size_t at = t->len;

	assert_true(t->len + size <= TABLE_MAX);
	for (size_t i = 0; i < size; i++)
		t->at[t->len++] = (uint8_t)(i < 8 ? value >> (8 * i) : 0);
	return at;
}

static size_t put_text(struct table *t, const char *text)
{
	size_t at = t->len;

	for (size_t i = 0; i <= strlen(text); i++)
		put(t, (uint8_t)text[i], 1);
	return at;
}

static void patch(struct table *t, size_t at, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		t->at[at + i] = (uint8_t)(value >> (8 * i));
}

/* Values by address: pairs of zigzag change and distance, ended by 0. */
static size_t put_values(struct table *t, const uint8_t *pairs, size_t len)
{
	size_t at = t->len;

	for (size_t i = 0; i < len; i++)
		put(t, pairs[i], 1);
	return at;
}

/* From -1: +11 is 10, then +1. Distances are in units of `quantum`. */
static const uint8_t one_lines[] = {22, 8, 2, 24, 0}, two_lines[] = {16, 16, 0};
/* From -1: +1 is 0 bytes for 4 units, then +16. main.two is C's, and has none. */
static const uint8_t one_sizes[] = {2, 4, 32, 28, 0};
/* From -1: +1 is file 0, +2 is file 1, +3 is file 2. */
static const uint8_t file_0[] = {2, 32, 0}, file_1[] = {4, 16, 0};
static const uint8_t file_1_long[] = {4, 32, 0}, file_2[] = {6, 16, 0};

static void put_header(struct table *t, uint32_t magic, uint8_t quantum)
{
	put(t, magic, 4);
	put(t, 0, 2);
	put(t, quantum, 1);
	put(t, 8, 1);
}

static struct table make_1_2(void)
{
	struct table t = {.len = 0};
	size_t index, files, name[2], file[2], line[2], path[2], sizes;

	put_header(&t, 0xfffffffb, 1);
	put(&t, 2, 8);
	index = put(&t, 0, 8 * 5);
	files = put(&t, 0, 4);
	name[0] = put_text(&t, "main.one");
	name[1] = put_text(&t, "main.two");
	path[0] = put_text(&t, "/src/one.go");
	path[1] = put_text(&t, "/src/two.go");
	line[0] = put_values(&t, one_lines, sizeof one_lines);
	line[1] = put_values(&t, two_lines, sizeof two_lines);
	sizes = put_values(&t, one_sizes, sizeof one_sizes);
	file[0] = put_values(&t, file_1_long, sizeof file_1_long);
	file[1] = put_values(&t, file_2, sizeof file_2);
	for (size_t i = 0; i < 2; i++) {
		patch(&t, index + 16 * i, TEXT + 0x20 * i, 8);
		patch(&t, index + 16 * i + 8, put(&t, TEXT + 0x20 * i, 8), 8);
		put(&t, name[i], 4);
		put(&t, 0, 8); /* args, frame */
		put(&t, i == 0 ? sizes : 0, 4);
		put(&t, file[i], 4);
		put(&t, line[i], 4);
		put(&t, 0, 8);
	}
	patch(&t, index + 32, TEXT + 0x30, 8);
	patch(&t, files, put(&t, 3, 4), 4);
	put(&t, path[0], 4);
	put(&t, path[1], 4);
	return t;
}

/* 1.16 has 64-bit fields in the index and in a record, 1.18 and 1.20 have 32-bit ones. */
static struct table make_apart(uint32_t magic, uint8_t quantum, uint64_t text)
{
	struct table t = {.len = 0};
	bool relative = magic != 0xfffffffa;
	size_t word = relative ? 4 : 8, heads, base, index;
	uint32_t name[2], file[2], line[2], path[2], sizes;

	put_header(&t, magic, quantum);
	put(&t, 2, 8);
	put(&t, 2, 8);
	if (relative)
		put(&t, text, 8);
	heads = put(&t, 0, 8 * 5);
	base = put(&t, 0, 1); /* offset 0 of each table names nothing */
	patch(&t, heads, base, 8);
	name[0] = (uint32_t)(put_text(&t, "main.one") - base);
	name[1] = (uint32_t)(put_text(&t, "main.two") - base);
	base = put(&t, UINT32_MAX, 4); /* units: one file left out, then two */
	patch(&t, heads + 8, base, 8);
	put(&t, 0, 4);
	put(&t, 12, 4);
	base = t.len;
	patch(&t, heads + 16, base, 8);
	path[0] = (uint32_t)(put_text(&t, "/src/one.go") - base);
	path[1] = (uint32_t)(put_text(&t, "/src/two.go") - base);
	assert_int_equal(path[0], 0);
	assert_int_equal(path[1], 12);
	base = put(&t, 0, 1);
	patch(&t, heads + 24, base, 8);
	line[0] = (uint32_t)(put_values(&t, one_lines, sizeof one_lines) - base);
	line[1] = (uint32_t)(put_values(&t, two_lines, sizeof two_lines) - base);
	sizes = (uint32_t)(put_values(&t, one_sizes, sizeof one_sizes) - base);
	file[0] = (uint32_t)(put_values(&t, file_0, sizeof file_0) - base);
	file[1] = (uint32_t)(put_values(&t, file_1, sizeof file_1) - base);
	index = put(&t, 0, word * 5);
	patch(&t, heads + 32, index, 8);
	for (size_t i = 0; i < 2; i++) {
		uint64_t start = (uint64_t)0x20 * i * quantum;

		patch(&t, index + 2 * word * i, relative ? start : TEXT + start, word);
		patch(&t, index + 2 * word * i + word,
		      put(&t, relative ? start : TEXT + start, word) - index, word);
		put(&t, name[i], 4);
		put(&t, 0, 8);
		put(&t, i == 0 ? sizes : 0, 4);
		put(&t, file[i], 4);
		put(&t, line[i], 4);
		put(&t, 0, 4);
		put(&t, 1, 4); /* the unit's files begin at 1 */
	}
	patch(&t, index + 4 * word, (relative ? 0 : TEXT) + (uint64_t)0x30 * quantum, word);
	return t;
}

static struct gopclntab *open_table(struct arena *arena, const char *section,
				    struct bytes contents)
{
	/* In memory of exactly its size, so that a sanitizer sees every slip. */
	uint8_t *exact = arena_alloc(arena, contents.len + 1, 1);
	const struct image_section sections[] = {
		image_code(".text", TEXT, 0x1000),
		image_plain(section, (struct bytes){exact, contents.len}),
	};
	struct image image = {.sections = sections, .section_count = COUNT(sections)};
	struct elf *elf = arena_new(arena, struct elf);
	struct err e = {0};

	memcpy(exact, contents.at, contents.len);
	if (!elf_open(elf, arena, image_make(arena, &image), "go", &e))
		fail_msg("%s", e.text);
	return gopclntab_open(arena, elf);
}

static struct layout_case {
	const char *name, *section;
	uint8_t quantum;
	struct table table;
} layouts[6];

static int make_layouts(void **state)
{
	static const char plain[] = ".gopclntab", pie[] = ".data.rel.ro.gopclntab";
	struct layout_case *l = layouts;

	(void)state;
	*l++ = (struct layout_case){"1.2", plain, 1, make_1_2()};
	*l++ = (struct layout_case){"1.16", plain, 1, make_apart(0xfffffffa, 1, TEXT)};
	*l++ = (struct layout_case){"1.18", plain, 1, make_apart(0xfffffff0, 1, TEXT)};
	*l++ = (struct layout_case){"1.20", plain, 1, make_apart(0xfffffff1, 1, TEXT)};
	*l++ = (struct layout_case){"1.20 pie", pie, 1, make_apart(0xfffffff1, 1, 0)};
	*l++ = (struct layout_case){"1.18 arm64", plain, 4, make_apart(0xfffffff0, 4, TEXT)};
	assert_ptr_equal(l, layouts + COUNT(layouts));
	return 0;
}

static struct bytes contents_of(size_t i)
{
	return (struct bytes){layouts[i].table.at, layouts[i].table.len};
}

static const struct {
	uint64_t distance; /* from TEXT, in units of the quantum */
	const char *function, *file;
	uint32_t line;
	uint64_t start;
	int size; /* of the frame; -1: not told */
} wanted[] = {
	{0x00, "main.one", "/src/one.go", 10, 0x00, 0},
	{0x03, "main.one", "/src/one.go", 10, 0x00, 0},
	{0x04, "main.one", "/src/one.go", 10, 0x00, 16},
	{0x07, "main.one", "/src/one.go", 10, 0x00, 16},
	{0x08, "main.one", "/src/one.go", 11, 0x00, 16},
	{0x1f, "main.one", "/src/one.go", 11, 0x00, 16},
	{0x20, "main.two", "/src/two.go", 7, 0x20, -1},
	{0x2f, "main.two", "/src/two.go", 7, 0x20, -1},
};

static void check_frame(const struct gopclntab *t, uint64_t ea, size_t j)
{
	struct go_frame frame = {.function = NULL};
	bool is_told = gopclntab_frame(t, ea, &frame);

	assert_int_equal(is_told, wanted[j].size >= 0);
	if (!is_told)
		return;
	assert_string_equal(frame.function, wanted[j].function);
	assert_int_equal(frame.size, wanted[j].size);
}

static void test_layouts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		struct arena arena = {0};
		struct gopclntab *t = open_table(&arena, layouts[i].section, contents_of(i));
		uint64_t quantum = layouts[i].quantum;
		struct go_place place;

		if (!t)
			fail_msg("Go %s: not opened", layouts[i].name);
		for (size_t j = 0; j < COUNT(wanted); j++) {
			if (!gopclntab_find(t, TEXT + wanted[j].distance * quantum, &place))
				fail_msg("Go %s: nothing at 0x%llx", layouts[i].name,
					 (unsigned long long)wanted[j].distance);
			assert_string_equal(place.function, wanted[j].function);
			assert_string_equal(place.file, wanted[j].file);
			assert_int_equal(place.line, wanted[j].line);
			assert_int_equal(place.function_ea, TEXT + wanted[j].start * quantum);
			check_frame(t, TEXT + wanted[j].distance * quantum, j);
		}
		assert_false(gopclntab_find(t, TEXT - 1, &place));
		assert_false(gopclntab_find(t, TEXT + 0x30 * quantum, &place));
		assert_false(gopclntab_find(t, UINT64_MAX, &place));
		assert_false(gopclntab_find(t, 0, &place));
		arena_free(&arena);
	}
}

/* Whatever is found is a string and a line. */
static void ask_everything(const struct gopclntab *t)
{
	struct go_place place;
	struct go_frame frame;

	for (uint64_t ea = TEXT - 1; t && ea < TEXT + 0x31; ea++) {
		if (gopclntab_find(t, ea, &place))
			assert_true(strlen(place.function) > 0);
		if (gopclntab_frame(t, ea, &frame))
			assert_true(strlen(frame.function) > 0);
	}
}

static void test_cut_short_at_every_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		struct arena arena = {0};

		for (size_t len = 0; len < layouts[i].table.len; len++)
			ask_everything(open_table(&arena, layouts[i].section,
						  bytes_part(contents_of(i), 0, len)));
		arena_free(&arena);
	}
}

static void test_every_byte_wrong(void **state)
{
	static const uint8_t values[] = {0x00, 0x7f, 0x80, 0xff};

	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		struct arena arena = {0};

		for (size_t at = 0; at < layouts[i].table.len; at++) {
			for (size_t v = 0; v < COUNT(values); v++) {
				struct table bad = layouts[i].table;

				bad.at[at] = values[v];
				ask_everything(open_table(&arena, layouts[i].section,
							  (struct bytes){bad.at, bad.len}));
			}
		}
		arena_free(&arena);
	}
}

static void test_headers_that_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} lies[] = {
		{0, 0xf2},  /* magic of no version */
		{3, 0x00},  /* magic of the other byte order */
		{7, 4},     /* 32-bit */
		{12, 1},    /* 2^32 functions */
		{15, 0x80}, /* 2^63 functions */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lies); i++) {
		struct arena arena = {0};
		struct table bad = layouts[2].table;

		bad.at[lies[i].at] = lies[i].value;
		assert_null(open_table(&arena, ".gopclntab", (struct bytes){bad.at, bad.len}));
		arena_free(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_cut_short_at_every_length),
		cmocka_unit_test(test_every_byte_wrong),
		cmocka_unit_test(test_headers_that_are_refused),
	};

	return cmocka_run_group_tests(tests, make_layouts, NULL);
}
