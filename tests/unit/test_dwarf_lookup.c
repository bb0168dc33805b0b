/* Whole lookups: the same small program in every encoding gives the same answers; companions that
 * are missing cost what they would have said; damage costs no more than its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dwarf/constants.h"
#include "dwarf_program.h"
#include "elf_image.h"

static const struct program_shape shapes[] = {
	{"version 2", 2, 4, HIGH_ADDRESS},
	{"version 2, other unit", 2, 4, HIGH_ADDRESS | CROSS},
	{"version 3", 3, 4, STRP | HIGH_ADDRESS | LISTS},
	{"version 3, 64-bit", 3, 8, STRP | HIGH_ADDRESS | LISTS},
	{"version 4", 4, 4, 0},
	{"version 4, siblings", 4, 4, SIBLINGS | STRP},
	{"version 4, 64-bit", 4, 8, STRP | SIBLINGS},
	{"version 4, lists", 4, 4, LISTS},
	{"version 4, aranges", 4, 4, ARANGES},
	{"version 4, aranges, 64-bit", 4, 8, ARANGES | LISTS},
	{"version 4, other unit", 4, 4, CROSS},
	{"version 4, other unit, 64-bit", 4, 8, CROSS},
	{"version 4, dwz", 4, 4, ALTERNATE},
	{"version 4, dwz, 64-bit", 4, 8, ALTERNATE},
	{"version 4, split", 4, 4, SPLIT | STRX | ADDRX},
	{"version 4, split, lists", 4, 4, SPLIT | STRX | ADDRX | LISTS},
	{"version 4, package", 4, 4, PACKAGE | STRX | ADDRX},
	{"version 4, package, siblings", 4, 4, PACKAGE | STRX | ADDRX | SIBLINGS},
	{"version 4, unit without ranges", 4, 4, NO_RANGES},
	{"version 4, function in a type", 4, 4, DIES_IN_TYPE},
	{"version 4, function in a type, siblings", 4, 4, DIES_IN_TYPE | SIBLINGS},
	{"version 4, tombstones", 4, 4, DECOYS},
	{"version 5", 5, 4, 0},
	{"version 5, siblings", 5, 4, SIBLINGS},
	{"version 5, strp", 5, 4, STRP},
	{"version 5, indexes", 5, 4, STRX | ADDRX},
	{"version 5, indexes, 64-bit", 5, 8, STRX | ADDRX},
	{"version 5, indexes, high_pc as address", 5, 4, STRX | ADDRX | HIGH_ADDRESS},
	{"version 5, lists", 5, 4, LISTS},
	{"version 5, lists, indexes", 5, 4, LISTS | STRX | ADDRX},
	{"version 5, lists by index", 5, 4, LISTX | STRX | ADDRX},
	{"version 5, lists by index, 64-bit", 5, 8, LISTX | STRX | ADDRX},
	{"version 5, aranges", 5, 4, ARANGES | SIBLINGS},
	{"version 5, other unit", 5, 4, CROSS},
	{"version 5, other unit, 64-bit", 5, 8, CROSS},
	{"version 5, dwz", 5, 4, ALTERNATE},
	{"version 5, split", 5, 4, SPLIT | STRX | ADDRX},
	{"version 5, split, lists by index", 5, 4, SPLIT | STRX | ADDRX | LISTX},
	{"version 5, split, 64-bit", 5, 8, SPLIT | STRX | ADDRX | LISTX},
	{"version 5, package", 5, 4, PACKAGE | STRX | ADDRX},
	{"version 5, package, lists by index", 5, 4, PACKAGE | STRX | ADDRX | LISTX},
	{"version 5, unit without ranges", 5, 4, NO_RANGES},
	{"version 5, function in a type", 5, 4, DIES_IN_TYPE},
	{"version 5, tombstones", 5, 4, DECOYS | ARANGES | SIBLINGS},
};

#define SHAPE_COUNT (sizeof shapes / sizeof shapes[0])

static void check_encoding(const struct program_shape *shape)
{
	struct program program = {0};
	const char *wrong;

	program_make(&program, shape);
	program_open(&program);
	wrong = program_check(&program);
	if (wrong)
		fail_msg("%s: %s", shape->name, wrong);
	if (dwarf_problem(program.dwarf))
		fail_msg("%s: %s", shape->name, dwarf_problem(program.dwarf));
	program_free(&program);
}

static struct program_shape packed(const struct program_shape *shape)
{
	struct program_shape packed = *shape;

	packed.flags |= PACKED;
	return packed;
}

static void check_encodings(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		struct program_shape compressed = packed(&shapes[i]);

		check_encoding(&shapes[i]);
		check_encoding(&compressed);
	}
}

/* What a companion would have said is missing, and so is said; the rest is there. */
static void check_missing_companions(void **state)
{
	static const struct {
		struct program_shape shape;
		const char *name; /* of the function at 0x1110, if it is known */
		const char *problem;
	} cases[] = {
		{{"dwo", 5, 4, SPLIT | STRX | ADDRX},
		 NULL,
		 "main: split debug file a.dwo not found"},
		{{"dwo 4", 4, 4, SPLIT | STRX | ADDRX},
		 NULL,
		 "main: split debug file a.dwo not found"},
		{{"dwp", 5, 4, PACKAGE | STRX | ADDRX},
		 NULL,
		 "main: split debug file a.dwo not found"},
		{{"dwz", 4, 4, ALTERNATE}, NULL, "main: supplementary file alt not found"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct program program = {.companions_missing = true};
		struct dwarf_answer answer = {.ea = 0x1110};
		const char *problem;

		program_make(&program, &cases[i].shape);
		program_open(&program);
		dwarf_lookup(program.dwarf, &answer, 1);
		problem = dwarf_problem(program.dwarf);
		assert_true(answer.frame_count >= 1);
		assert_int_equal(answer.frames[0].line, 5);
		assert_string_equal(answer.frames[0].file, "/src/a.c");
		assert_null(answer.frames[0].name);
		assert_non_null(problem);
		assert_string_equal(problem, cases[i].problem);
		assert_true(program.opened >= 1);
		program_free(&program);
	}
}

/* Companions are asked for once, however often one looks up; and only when they are needed. */
static void check_companions_opened_once(void **state)
{
	struct program program = {0};
	struct dwarf_answer outside = {.ea = 0x1800}, inside = {.ea = 0x1110};

	(void)state;
	program_make(&program, &(struct program_shape){"", 5, 4, SPLIT | STRX | ADDRX});
	program_open(&program);
	dwarf_lookup(program.dwarf, &outside, 1);
	assert_int_equal(program.opened, 0);
	dwarf_lookup(program.dwarf, &inside, 1);
	assert_int_equal(program.opened, 2); /* a package, then the .dwo */
	dwarf_lookup(program.dwarf, &inside, 1);
	assert_int_equal(program.opened, 2);
	program_free(&program);
}

static void check_duplicates(void **state)
{
	struct program program = {0};
	struct dwarf_answer answers[5] = {
		{.ea = 0x1110}, {.ea = 0x1110}, {.ea = 0x1200}, {.ea = 0x1200}, {.ea = 0x1200}};

	(void)state;
	program_make(&program, &(struct program_shape){"", 4, 4, 0});
	program_open(&program);
	dwarf_lookup(program.dwarf, answers, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(answers[i].frame_count, i < 2 ? 2 : 1);
	assert_string_equal(answers[4].frames->name, "plain");
	dwarf_lookup(program.dwarf, answers, 0);
	program_free(&program);
}

/* Many units, so that several threads answer them; each address is claimed by two, of which only
 * the second one has the function. */
#define UNITS 96

static void put_unit(struct writer *info, unsigned n, bool has_function)
{
	size_t begin = unit_begin(info, 0);
	char name[16];

	put_u8(info, 1);
	put_address(info, 0x1000 + 16 * n);
	put_u8(info, 16);
	if (has_function) {
		snprintf(name, sizeof name, "function %u", n);
		put_u8(info, 2);
		put_string(info, name);
		put_address(info, 0x1000 + 16 * n);
		put_u8(info, 16);
	}
	put_u8(info, 0);
	unit_end(info, begin);
}

static void check_many_units(void **state)
{
	struct arena arena = {0};
	struct writer info = writer_begin(&arena, 4, 4), abbrev = writer_begin(&arena, 4, 4);
	struct image_section sections[3] = {image_code(".text", 0x1000, 0x1000)};
	struct image image = {.sections = sections, .section_count = 3};
	struct dwarf_answer answers[UNITS] = {{0}};
	struct dwarf *dwarf;
	struct elf elf;

	(void)state;
	put_abbrev(&abbrev, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr,
		   DW_AT_high_pc, DW_FORM_data1, 0);
	put_abbrev(&abbrev, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string,
		   DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0);
	put_u8(&abbrev, 0);
	for (unsigned n = 0; n < UNITS; n++) {
		put_unit(&info, n, false);
		put_unit(&info, UNITS - 1 - n, true);
		answers[n].ea = 0x1000 + 16 * n + n % 16;
	}
	sections[1] = image_plain(".debug_info", writer_bytes(&info));
	sections[2] = image_plain(".debug_abbrev", writer_bytes(&abbrev));
	assert_true(elf_open(&elf, &arena, image_make(&arena, &image), "test", NULL));
	dwarf = dwarf_open(&arena, &elf, NULL);
	dwarf_lookup(dwarf, answers, UNITS);
	for (unsigned n = 0; n < UNITS; n++) {
		char name[16];

		snprintf(name, sizeof name, "function %u", n);
		assert_int_equal(answers[n].frame_count, 1);
		assert_string_equal(answers[n].frames->name, name);
		assert_int_equal(answers[n].frames->function_ea, 0x1000 + 16 * n);
		assert_null(answers[n].frames->file);
	}
	arena_free(&arena);
}

/* Asks for all of the program; the sanitizers watch. */
static void ask_all(struct program *program)
{
	struct dwarf_answer answers[64];

	program_open(program);
	if (!program->dwarf)
		return;
	for (size_t i = 0; i < 64; i++)
		answers[i] = (struct dwarf_answer){.ea = 0x1100 + 8 * i};
	dwarf_lookup(program->dwarf, answers, 64);
	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < answers[i].frame_count; j++)
			assert_true(j + 1 == answers[i].frame_count ||
				    answers[i].frames[j].inlined);
}

/* A copy of the file that is hurt: its memory ends where the copy ends. */
static void hurt(const struct program *from, size_t at, uint8_t with, size_t len)
{
	struct program copy = {.split = from->split,
			       .package = from->package,
			       .alternate = from->alternate};
	uint8_t *data = malloc(len ? len : 1);

	memcpy(data, from->main.at, len);
	if (at < len)
		data[at] = with;
	copy.main = (struct bytes){data, len};
	ask_all(&copy);
	program_free(&copy);
	free(data);
}

/* Of the shapes, those that differ most: all would take a minute. */
#define SHAPE_STEP 11

static uint8_t changed(uint8_t byte, size_t at)
{
	switch (at % 3) {
	case 0:
		return 0;
	case 1:
		return 0xff;
	default:
		return byte ^ 0x80;
	}
}

/* Every byte in turn. */
static void check_each_byte_changed(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHAPE_COUNT; i += SHAPE_STEP) {
		struct program_shape shape = i % 2 ? packed(&shapes[i]) : shapes[i];
		struct program program = {0};

		program_make(&program, &shape);
		for (size_t at = 64 + i % 2; at < program.main.len; at += 2)
			hurt(&program, at, changed(program.main.at[at], at / 2),
			     program.main.len);
		program_free(&program);
	}
}

/* .debug_info is the first section after .text: each length of it. */
static void check_cut_short(void **state)
{
	(void)state;
	for (size_t i = 1; i < SHAPE_COUNT; i += SHAPE_STEP) {
		struct program program = {0};
		struct elf_section *info;
		struct bytes whole;

		program_make(&program, &shapes[i]);
		program_open(&program);
		info = elf_section(&program.main_elf, ".debug_info");
		assert_non_null(info);
		whole = bytes_part(program.main, info->off, info->size);
		for (size_t len = 0; len < whole.len; len++) {
			uint8_t *data = malloc(len ? len : 1);
			struct elf *elf = &program.main_elf;
			struct dwarf_answer answers[2] = {{.ea = 0x1110}, {.ea = 0x1200}};
			struct dwarf *dwarf;

			memcpy(data, whole.at, len);
			info->plain = (struct bytes){data, len};
			info->loaded = true;
			dwarf = dwarf_open(&program.arena, elf, NULL);
			dwarf_lookup(dwarf, answers, 2);
			free(data);
		}
		program_free(&program);
	}
}

/* The same for what is not in the file itself. */
static void check_companions_changed(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		struct program program = {0};
		struct bytes *companion, whole;

		if (!(shapes[i].flags & (SPLIT | PACKAGE | ALTERNATE)) ||
		    shapes[i].flags & SIBLINGS)
			continue;
		program_make(&program, &shapes[i]);
		companion = program.split.len     ? &program.split
			    : program.package.len ? &program.package
						  : &program.alternate;
		whole = *companion;
		for (size_t at = 64 + i % 7; at < whole.len; at += 7) {
			uint8_t *data = malloc(whole.len);
			struct program copy;

			memcpy(data, whole.at, whole.len);
			data[at] = changed(data[at], at / 7);
			companion->at = data;
			copy = (struct program){.main = program.main,
						.split = program.split,
						.package = program.package,
						.alternate = program.alternate};
			ask_all(&copy);
			program_free(&copy);
			free(data);
		}
		program_free(&program);
	}
}

/* Many bytes at once, by a generator whose seed is known. */
static void check_random_damage(void **state)
{
	uint64_t random = 42;

	(void)state;
	for (size_t round = 0; round < 200; round++) {
		struct program program = {0};
		uint8_t *data;

		program_make(&program, &shapes[round % SHAPE_COUNT]);
		data = malloc(program.main.len);
		memcpy(data, program.main.at, program.main.len);
		for (int i = 0; i < 6; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			data[64 + (random >> 33) % (program.main.len - 64)] =
				(uint8_t)(random >> 24);
		}
		program.main.at = data;
		ask_all(&program);
		program_free(&program);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_encodings),
		cmocka_unit_test(check_missing_companions),
		cmocka_unit_test(check_companions_opened_once),
		cmocka_unit_test(check_duplicates),
		cmocka_unit_test(check_many_units),
		cmocka_unit_test(check_each_byte_changed),
		cmocka_unit_test(check_cut_short),
		cmocka_unit_test(check_companions_changed),
		cmocka_unit_test(check_random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
