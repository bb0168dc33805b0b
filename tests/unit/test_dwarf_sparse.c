/*
 * dwarf/sparse: of a compressed .debug_info only what is asked for is in memory, whatever is asked in
 * whatever order, and the answers are those of the same section in plain.
 *
 * Unit n has one function at 0x1000 + 16 n, behind an entry of PADDING bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dwarf/constants.h"
#include "dwarf/context.h"
#include "dwarf/points.h"
#include "dwarf_writer.h"
#include "elf_image.h"

#define UNITS 40
#define PADDING 20000

struct sample {
	struct arena arena;
	struct bytes info; /* as it is when all of it is there */
	uint64_t begin[UNITS + 1];
	struct elf elf;
	struct dwarf *dwarf;
};

enum { ARANGES = 1 << 0, LONG_ROOTS = 1 << 1, DAMAGED_END = 1 << 2 };

static uint64_t function_of(unsigned n)
{
	return 0x1000 + 16 * n;
}

static void put_padding(struct writer *w)
{
	for (size_t i = 0; i < PADDING; i++)
		put_u8(w, 'x');
	put_u8(w, 0);
}

static void put_unit(struct writer *info, unsigned n, unsigned flags)
{
	size_t begin = unit_begin(info, 0);
	char name[16];

	snprintf(name, sizeof name, "function %u", n);
	put_u8(info, flags & LONG_ROOTS ? 4 : 1);
	if (flags & LONG_ROOTS)
		put_padding(info);
	put_address(info, function_of(n));
	put_u8(info, 16);
	put_u8(info, 3);
	put_padding(info);
	put_u8(info, 2);
	put_string(info, name);
	put_address(info, function_of(n));
	put_u8(info, 16);
	put_u8(info, 0);
	unit_end(info, begin);
}

static void put_aranges(struct writer *w, const struct sample *s)
{
	for (unsigned n = 0; n < UNITS; n++) {
		size_t begin = length_begin(w);

		put_u16(w, 2);
		put_offset(w, s->begin[n]);
		put_u8(w, 8);
		put_u8(w, 0);
		put_u32(w, 0); /* to a multiple of 16 */
		put_u64(w, function_of(n));
		put_u64(w, 16);
		put_u64(w, 0);
		put_u64(w, 0);
		length_end(w, begin);
	}
}

static void put_abbrevs(struct writer *w)
{
	put_abbrev(w, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		   DW_FORM_data1, 0);
	put_abbrev(w, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
		   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0);
	put_abbrev(w, 3, 0x34 /* DW_TAG_variable */, false, DW_AT_name, DW_FORM_string, 0);
	put_abbrev(w, 4, DW_TAG_compile_unit, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
		   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0);
	put_u8(w, 0);
}

static void sample_make(struct sample *s, unsigned flags)
{
	struct writer info = writer_begin(&s->arena, 4, 4);
	struct writer abbrev = writer_begin(&s->arena, 4, 4);
	struct writer aranges = writer_begin(&s->arena, 4, 4);
	struct image_section sections[4] = {image_code(".text", 0x1000, 0x1000)};
	struct image image = {.sections = sections, .section_count = 4};

	for (unsigned n = 0; n < UNITS; n++) {
		s->begin[n] = info.out.count;
		put_unit(&info, n, flags);
	}
	s->begin[UNITS] = info.out.count;
	s->info = writer_bytes(&info);
	put_abbrevs(&abbrev);
	if (flags & ARANGES)
		put_aranges(&aranges, s);
	sections[1] = image_packed(&s->arena, ".debug_info", s->info);
	sections[2] = image_plain(".debug_abbrev", writer_bytes(&abbrev));
	sections[3] = image_packed(&s->arena, ".debug_aranges", writer_bytes(&aranges));
	if (flags & DAMAGED_END) /* of the checksum */
		((uint8_t *)(uintptr_t)sections[1].contents.at)[sections[1].contents.len - 1] ^=
			1;
	assert_true(elf_open(&s->elf, &s->arena, image_make(&s->arena, &image), "test", NULL));
	s->dwarf = dwarf_open(&s->arena, &s->elf, NULL);
}

static void check_name(const struct dwarf_answer *answer, unsigned n)
{
	char name[16];

	snprintf(name, sizeof name, "function %u", n);
	assert_int_equal(answer->frame_count, 1);
	assert_string_equal(answer->frames->name, name);
}

static void ask(struct sample *s, unsigned n)
{
	struct dwarf_answer answer = {.ea = function_of(n) + 3};

	dwarf_lookup(s->dwarf, &answer, 1);
	check_name(&answer, n);
}

/* How many units are there as a whole; of the others at most the beginning is. */
static unsigned units_there(const struct sample *s)
{
	struct bytes have = s->dwarf->main.at[SECTION_INFO];
	unsigned count = 0;

	assert_int_equal(have.len, s->info.len);
	for (unsigned n = 0; n < UNITS; n++) {
		uint64_t off = s->begin[n], len = s->begin[n + 1] - off, tail = off + len - 64;

		if (memcmp(have.at + off, s->info.at + off, len) == 0)
			count++;
		else
			assert_int_equal(have.at[tail], 0);
	}
	return count;
}

static void check_only_what_is_asked(void **state)
{
	static const unsigned flags[] = {ARANGES, 0, ARANGES | DAMAGED_END};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct sample s = {0};

		sample_make(&s, flags[i]);
		ask(&s, UNITS / 2);
		assert_int_equal(units_there(&s), 1);
		assert_null(dwarf_problem(s.dwarf));
		arena_free(&s.arena);
	}
}

/* What lies ahead, what was passed, what is there already; then everything. */
static void check_again_and_again(void **state)
{
	static const unsigned order[] = {20, 30, 20, 5, 39, 1};

	(void)state;
	for (unsigned flags = 0; flags < 4; flags++) {
		struct sample s = {0};

		sample_make(&s, flags);
		for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
			ask(&s, order[i]);
		assert_int_equal(units_there(&s), UNITS);
		for (unsigned n = 0; n < UNITS; n++)
			ask(&s, n);
		assert_null(dwarf_problem(s.dwarf));
		arena_free(&s.arena);
	}
}

static void check_all_at_once(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags < 4; flags++) {
		struct dwarf_answer answers[UNITS] = {{0}};
		struct sample s = {0};

		sample_make(&s, flags);
		for (unsigned n = 0; n < UNITS; n++)
			answers[n].ea = function_of(n);
		dwarf_lookup(s.dwarf, answers, UNITS);
		for (unsigned n = 0; n < UNITS; n++)
			check_name(&answers[n], n);
		arena_free(&s.arena);
	}
}

/* An address that no unit claims: the run goes to the end and nothing is kept. */
static void check_unclaimed(void **state)
{
	struct dwarf_answer answer = {.ea = function_of(UNITS) + 1};
	struct sample s = {0};

	(void)state;
	sample_make(&s, ARANGES);
	dwarf_lookup(s.dwarf, &answer, 1);
	assert_int_equal(answer.frame_count, 0);
	assert_int_equal(units_there(&s), 0);
	arena_free(&s.arena);
}

/* Who reads to the damage gets nothing. */
static void check_damage(void **state)
{
	struct dwarf_answer answer = {.ea = function_of(UNITS - 1)};
	struct sample s = {0};

	(void)state;
	sample_make(&s, DAMAGED_END);
	dwarf_lookup(s.dwarf, &answer, 1);
	assert_int_equal(answer.frame_count, 0);
	assert_string_equal(dwarf_problem(s.dwarf),
			    "test: section .debug_info: damaged zlib data");
	dwarf_lookup(s.dwarf, &answer, 1);
	assert_int_equal(answer.frame_count, 0);
	arena_free(&s.arena);
}

/* Units are answered while the section is still read: at its end it shows that they may not be. */
static void check_damage_behind_answers(void **state)
{
	struct dwarf_answer answers[UNITS] = {{0}};
	struct sample s = {0};

	(void)state;
	sample_make(&s, ARANGES | DAMAGED_END);
	for (unsigned n = 0; n < UNITS; n++)
		answers[n].ea = function_of(n);
	dwarf_lookup(s.dwarf, answers, UNITS);
	for (unsigned n = 0; n < UNITS; n++)
		assert_int_equal(answers[n].frame_count, 0);
	assert_string_equal(dwarf_problem(s.dwarf),
			    "test: section .debug_info: damaged zlib data");
	arena_free(&s.arena);
}

/* A megabyte of zeros, in a kilobyte: a quarter of a million units without contents, if one likes. */
static void check_zeros(void **state)
{
	static uint8_t zeros[1 << 20];
	struct dwarf_answer answer = {.ea = 0x1008};
	struct image_section sections[3] = {image_code(".text", 0x1000, 0x1000)};
	struct image image = {.sections = sections, .section_count = 3};
	struct arena arena = {0};
	struct dwarf *dwarf;
	struct elf elf;

	(void)state;
	sections[1] = image_packed(&arena, ".debug_info", (struct bytes){zeros, sizeof zeros});
	sections[2] = image_plain(".debug_abbrev", (struct bytes){zeros, 1});
	assert_true(elf_open(&elf, &arena, image_make(&arena, &image), "zeros", NULL));
	dwarf = dwarf_open(&arena, &elf, NULL);
	dwarf_lookup(dwarf, &answer, 1);
	assert_int_equal(answer.frame_count, 0);
	assert_in_range(dwarf->main.extents.count, 0, 5000);
	arena_free(&arena);
}

/* ---- Points ---- */

#define STEP 40000
#define WINDOWS_MAX 64

static uint8_t windows[WINDOWS_MAX][STREAM_WINDOW];

static bool window_put(void *context, uint32_t number, const uint8_t *window)
{
	(void)context;
	assert_in_range(number, 0, WINDOWS_MAX - 1);
	memcpy(windows[number], window, STREAM_WINDOW);
	return true;
}

static bool window_get(void *context, uint32_t number, uint8_t *window)
{
	(void)context;
	memcpy(window, windows[number], STREAM_WINDOW);
	return true;
}

/* One run: it learns the points, or is given them, and is asked for these units. */
static void run_with(struct sample *s, struct points *points, const unsigned *units,
		     size_t count)
{
	struct dwarf_answer answers[UNITS] = {{0}};

	points->step = STEP;
	points->put = window_put;
	points->get = window_get;
	sample_make(s, ARANGES);
	dwarf_use_points(s->dwarf, points);
	for (size_t i = 0; i < count; i++)
		answers[i].ea = function_of(units[i]);
	dwarf_lookup(s->dwarf, answers, count);
	for (size_t i = 0; i < count; i++)
		check_name(&answers[i], units[i]);
	assert_null(dwarf_problem(s->dwarf));
}

static struct points_section *learned(struct points *points)
{
	return &points->sections[SECTION_INFO];
}

static void check_points(void **state)
{
	static const unsigned first[] = {5, 38}, other[] = {7, 21}, same[] = {21, 22};
	struct points points = {0};
	struct sample a = {0}, b = {0};

	(void)state;
	run_with(&a, &points, first, 2);
	assert_in_range(learned(&points)->at.count, 5, WINDOWS_MAX);
	assert_int_equal(learned(&points)->end, a.info.len); /* which is near */
	points.given = true;
	run_with(&b, &points, other, 2);
	assert_false(points.failed);
	/* The pieces that hold them, and not all. */
	assert_non_null(b.dwarf->main.lazy[SECTION_INFO]);
	assert_int_equal(b.dwarf->main.at[SECTION_INFO].at[b.begin[30]], 0);
	for (size_t i = 0; i < 2; i++)
		ask(&b, same[i]);
	for (unsigned n = 0; n < UNITS; n++)
		ask(&b, n);
	assert_false(points.failed);
	assert_memory_equal(b.dwarf->main.at[SECTION_INFO].at, b.info.at, b.info.len);
	arena_free(&a.arena);
	arena_free(&b.arena);
}

/* A run that did not come far knows no more than that; the next one adds to it. */
static void check_points_beyond(void **state)
{
	static const unsigned near[] = {9}, far[] = {3, 25}, between[] = {1, 24};
	struct sample samples[3] = {0};
	struct points points = {0};
	uint64_t end;

	(void)state;
	run_with(&samples[0], &points, near, 1);
	end = learned(&points)->end;
	assert_in_range(end, samples[0].begin[10], samples[0].begin[20]);
	points.given = true;
	run_with(&samples[1], &points, far, 2);
	assert_null(samples[1].dwarf->main.lazy[SECTION_INFO]);
	assert_in_range(learned(&points)->end, samples[1].begin[26], samples[1].begin[36]);
	run_with(&samples[2], &points, between, 2);
	assert_non_null(samples[2].dwarf->main.lazy[SECTION_INFO]);
	assert_false(points.failed);
	for (size_t i = 0; i < 3; i++)
		arena_free(&samples[i].arena);
}

static void lie_place(struct points_section *s)
{
	s->at.at[2].at.bit += 8;
}

static void lie_offset(struct points_section *s)
{
	s->at.at[2].at.off++;
}

static void lie_checksum(struct points_section *s)
{
	for (size_t i = 0; i < s->at.count; i++)
		s->at.at[i].at.checksum ^= 1;
}

static void lie_check(struct points_section *s)
{
	for (size_t i = 0; i < s->checks.count; i++)
		s->checks.at[i].checksum ^= 1;
}

static void lie_end(struct points_section *s)
{
	s->at.count = 3;
	s->end = s->at.at[2].at.off - 100; /* in the middle of a unit */
}

/* Points that are not true cost time and change no answer. */
static void check_lying_points(void **state)
{
	static void (*const lies[])(struct points_section *) = {lie_place, lie_offset,
								lie_checksum, lie_check,
								lie_end};
	unsigned all[UNITS];

	(void)state;
	for (unsigned n = 0; n < UNITS; n++)
		all[n] = n;
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		struct sample a = {0}, b = {0};
		struct points points = {0};

		run_with(&a, &points, all, UNITS);
		lies[i](learned(&points));
		points.given = true;
		run_with(&b, &points, all + 1, 5);
		for (unsigned n = 0; n < UNITS; n++)
			ask(&b, n);
		assert_null(dwarf_problem(b.dwarf));
		if (lies[i] != lie_end)
			assert_true(points.failed);
		arena_free(&a.arena);
		arena_free(&b.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_zeros),
		cmocka_unit_test(check_only_what_is_asked),
		cmocka_unit_test(check_again_and_again),
		cmocka_unit_test(check_all_at_once),
		cmocka_unit_test(check_unclaimed),
		cmocka_unit_test(check_damage),
		cmocka_unit_test(check_damage_behind_answers),
		cmocka_unit_test(check_points),
		cmocka_unit_test(check_points_beyond),
		cmocka_unit_test(check_lying_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
