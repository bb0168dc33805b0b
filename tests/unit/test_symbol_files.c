/*
 * symbol/files: a module that is done gives back what was read of its files, and loses nothing:
 * its answers stay, its note stays, and asked again it says the same. (That nothing points into
 * what is gone is for the sanitizers to find.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
#include "dwarf/constants.h"
#include "dwarf_program.h"
#include "elf/compress.h"
#include "elf_image.h"
#include "symbol/symbol.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- All kinds of files, on disk ---- */

/* dwarf_program.h says what is there. */
#define ASKED_BEGIN 0x10f0
#define ASKED_COUNT 0x220

struct place {
	char directory[64], file[96];
};

static void file_write(const struct place *place, const char *name, struct bytes contents)
{
	char path[128];
	FILE *file;

	if (!contents.len)
		return;
	snprintf(path, sizeof path, "%s/%s", place->directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(contents.at, 1, contents.len, file), contents.len);
	assert_int_equal(fclose(file), 0);
}

/* `companions`: the files that main needs are there too. */
static void place_make(struct place *place, const struct program_shape *shape, bool companions)
{
	struct program program = {0};

	strcpy(place->directory, "/tmp/stacker-files-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	snprintf(place->file, sizeof place->file, "%s/prog", place->directory);
	program_make(&program, shape);
	file_write(place, "prog", program.main);
	if (companions) {
		file_write(place, "a.dwo", program.split);
		file_write(place, "prog.dwp", program.package);
		file_write(place, "alt", program.alternate);
	}
	program_free(&program);
}

static void place_remove(const struct place *place)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", place->directory);
	assert_int_equal(system(command), 0);
}

/* Mappings of files whose name begins so; the program's own is one of them. */
static size_t mapped(const char *begin)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	size_t count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof line, maps))
		count += strstr(line, begin) != NULL;
	fclose(maps);
	return count;
}

static const char *text_of(struct arena *arena, const struct symbol_answer *answer)
{
	const char *text = arena_printf(arena, "%llx:", (unsigned long long)answer->ea);

	for (size_t i = 0; i < answer->frame_count; i++) {
		const struct symbol_frame *f = &answer->frames[i];

		text = arena_printf(arena, "%s %s+%llx %s:%u:%u%s", text,
				    f->function ? f->function : "-",
				    (unsigned long long)f->function_ea, f->file ? f->file : "-",
				    f->line, f->column, f->inlined ? " inlined" : "");
	}
	return text;
}

static void ask(struct symbolizer *s, struct module *module, struct symbol_answer *answers)
{
	for (size_t i = 0; i < ASKED_COUNT; i++)
		answers[i].ea = ASKED_BEGIN + i;
	symbolize(s, module, answers, ASKED_COUNT);
}

struct wanted {
	const char *note;  /* part of it; NULL: none */
	size_t companions; /* that are found */
	const char *text;  /* part of what is said of 0x1134 */
};

static void check(const struct program_shape *shape, bool companions,
		  const struct wanted *wanted)
{
	struct arena arena = {0};
	struct symbolizer *s = symbolizer_new(&arena, &(struct symbol_options){0});
	struct symbol_answer answers[ASKED_COUNT], again[ASKED_COUNT];
	const char *texts[ASKED_COUNT], *note;
	struct module module;
	struct place place;
	uint64_t opened; /* section headers stay as long as the module */

	budget_allow(UINT64_C(1) << 30);
	place_make(&place, shape, companions);
	assert_true(module_open_file(&module, &arena, place.file, NULL));
	opened = budget_held();
	ask(s, &module, answers);
	for (size_t i = 0; i < ASKED_COUNT; i++)
		texts[i] = text_of(&arena, &answers[i]);
	assert_non_null(strstr(texts[0x1134 - ASKED_BEGIN], wanted->text));
	assert_int_equal(mapped(place.directory), 1 + wanted->companions);
	assert_true(budget_held() > opened || !(shape->flags & PACKED));
	note = symbolizer_note(s, &module);
	assert_int_equal(note != NULL, wanted->note != NULL);
	if (note)
		assert_non_null(strstr(note, wanted->note));
	for (unsigned round = 0; round < 3; round++) {
		symbolizer_done(s, &module);
		symbolizer_done(s, &module);
		assert_int_equal(budget_held(), opened);
		assert_int_equal(mapped(place.directory), 1);
		ask(s, &module, again);
		for (size_t i = 0; i < ASKED_COUNT; i++) {
			assert_string_equal(text_of(&arena, &answers[i]), texts[i]);
			assert_string_equal(text_of(&arena, &again[i]), texts[i]);
		}
		symbolizer_done(s, &module);
		if (note)
			assert_string_equal(symbolizer_note(s, &module), note);
		else
			assert_null(symbolizer_note(s, &module));
	}
	place_remove(&place);
	arena_free(&arena);
}

static void test_all_kinds_of_files(void **state)
{
	enum { SPLIT_5 = SPLIT | STRX | ADDRX | LISTX };
	static const char full[] =
		" _inner+1130 /src/a.c:5:0 inlined _outer+1100 /src/a.c:43:0";
	static const char lines[] = " -+0 /src/a.c:5:0",
			  nameless[] = " _outer+1100 /src/a.c:43:0";
	static const struct {
		struct program_shape shape;
		bool companions;
		struct wanted wanted;
	} cases[] = {
		{{"plain", 5, 4, STRP}, true, {NULL, 0, full}},
		{{"packed", 5, 4, STRP | PACKED}, true, {NULL, 0, full}},
		{{"old, packed", 3, 4, STRP | ARANGES | PACKED}, true, {NULL, 0, full}},
		{{"split", 5, 4, SPLIT_5}, true, {NULL, 1, full}},
		{{"split, packed", 5, 4, SPLIT_5 | PACKED}, true, {NULL, 1, full}},
		{{"split, missing", 5, 4, SPLIT_5 | PACKED},
		 false,
		 {"split debug file a.dwo not found", 0, lines}},
		{{"package", 5, 4, SPLIT_5 | PACKAGE}, true, {NULL, 1, full}},
		{{"package, packed", 5, 4, SPLIT_5 | PACKAGE | PACKED}, true, {NULL, 1, full}},
		{{"alternate, packed", 5, 4, ALTERNATE | PACKED},
		 true,
		 {"alt refused: it has no build-id", 0, nameless}},
		{{"alternate, missing", 4, 4, ALTERNATE | PACKED},
		 false,
		 {"supplementary file alt not found", 0, nameless}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		check(&cases[i].shape, cases[i].companions, &cases[i].wanted);
}

/* ---- Memory ---- */

#define STRINGS_SIZE ((size_t)1 << 20)

/* A module whose function at 0x1000 has this name, which lies in compressed strings of
 * STRINGS_SIZE. */
static struct module packed_module(struct arena *arena, const char *name)
{
	struct writer info = writer_begin(arena, 4, 4), abbrev = writer_begin(arena, 4, 4);
	struct image_section sections[4] = {image_code(".text", 0x1000, 0x1000)};
	struct image image = {.sections = sections, .section_count = COUNT(sections)};
	uint8_t *strings = arena_alloc(arena, STRINGS_SIZE + strlen(name) + 1, 1);
	size_t begin = unit_begin(&info, 0);
	struct module module = {.path = "packed", .name = "packed"};

	memcpy(strings + STRINGS_SIZE, name, strlen(name));
	put_abbrev(&abbrev, 1, DW_TAG_compile_unit, true, DW_AT_low_pc, DW_FORM_addr,
		   DW_AT_high_pc, DW_FORM_data1, 0);
	put_abbrev(&abbrev, 2, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_strp, DW_AT_low_pc,
		   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0);
	put_u8(&abbrev, 0);
	put_u8(&info, 1);
	put_address(&info, 0x1000);
	put_u8(&info, 16);
	put_u8(&info, 2);
	put_offset(&info, STRINGS_SIZE);
	put_address(&info, 0x1000);
	put_u8(&info, 16);
	put_u8(&info, 0);
	unit_end(&info, begin);
	sections[1] = image_packed(arena, ".debug_info", writer_bytes(&info));
	sections[2] = image_packed(arena, ".debug_abbrev", writer_bytes(&abbrev));
	sections[3] = image_packed(arena, ".debug_str",
				   (struct bytes){strings, STRINGS_SIZE + strlen(name) + 1});
	module.elf = arena_new(arena, struct elf);
	assert_true(elf_open(module.elf, arena, image_make(arena, &image), "packed", NULL));
	return module;
}

/* What the modules are made in does not count. */
struct stock {
	struct arena images, arena;
	struct module modules[8];
	struct symbolizer *symbolizer;
	struct symbol_answer answers[8];
};

static void stock_make(struct stock *stock)
{
	*stock = (struct stock){0};
	for (size_t i = 0; i < COUNT(stock->modules); i++)
		stock->modules[i] =
			packed_module(&stock->images,
				      arena_printf(&stock->images, "function %zu", i));
	stock->symbolizer = symbolizer_new(&stock->arena, &(struct symbol_options){0});
}

static const char *name_told(struct stock *stock, size_t i)
{
	struct symbol_answer *answer = &stock->answers[i];

	answer->ea = 0x1008;
	symbolize(stock->symbolizer, &stock->modules[i], answer, 1);
	return answer->frame_count ? answer->frames[0].function : NULL;
}

static void stock_free(struct stock *stock)
{
	budget_allow(UINT64_C(1) << 30);
	arena_free(&stock->images);
	arena_free(&stock->arena);
}

/* The allowance is for what is there at one time. */
static void test_one_module_at_a_time(void **state)
{
	struct stock stock;

	(void)state;
	stock_make(&stock);
	budget_allow(STRINGS_SIZE * 3 / 2);
	for (size_t i = 0; i < COUNT(stock.modules); i++) {
		assert_non_null(name_told(&stock, i));
		assert_true(budget_held() > STRINGS_SIZE);
		symbolizer_done(stock.symbolizer, &stock.modules[i]);
		assert_int_equal(budget_held(), 0);
		assert_null(symbolizer_note(stock.symbolizer, &stock.modules[i]));
	}
	assert_true(arena_held(&stock.arena) < STRINGS_SIZE);
	for (size_t i = 0; i < COUNT(stock.modules); i++)
		assert_string_equal(stock.answers[i].frames[0].function,
				    arena_printf(&stock.images, "function %zu", i));
	stock_free(&stock);
}

/* What is not done is still held, and counts. */
static void test_modules_that_are_not_done(void **state)
{
	struct stock stock;

	(void)state;
	stock_make(&stock);
	budget_allow(STRINGS_SIZE * 3 / 2);
	assert_string_equal(name_told(&stock, 0), "function 0");
	assert_null(name_told(&stock, 1));
	symbolizer_done(stock.symbolizer, &stock.modules[0]);
	symbolizer_done(stock.symbolizer, &stock.modules[1]);
	assert_string_equal(name_told(&stock, 2), "function 2");
	assert_string_equal(name_told(&stock, 2), "function 2");
	assert_non_null(strstr(symbolizer_note(stock.symbolizer, &stock.modules[1]),
			       ".debug_str: needs"));
	symbolizer_done(stock.symbolizer, &stock.modules[2]);
	stock_free(&stock);
}

/* Two at a time, done in either order: names of one do not answer for the other, though
 * memory is used again. */
static void test_two_at_a_time(void **state)
{
	struct stock stock;

	(void)state;
	stock_make(&stock);
	budget_allow(UINT64_C(1) << 30);
	for (size_t round = 0; round < 4; round++) {
		for (size_t i = 0; i < COUNT(stock.modules); i++) {
			const char *want = arena_printf(&stock.images, "function %zu", i);

			assert_string_equal(name_told(&stock, i), want);
			if (i)
				symbolizer_done(stock.symbolizer, &stock.modules[i - 1]);
			assert_string_equal(name_told(&stock, i), want);
		}
		symbolizer_done(stock.symbolizer, &stock.modules[COUNT(stock.modules) - 1]);
		assert_int_equal(budget_held(), 0);
	}
	stock_free(&stock);
}

/* Too long to be copied: the module keeps what the answer points to. */
static void test_name_without_end(void **state)
{
	struct arena images = {0}, arena = {0};
	char *name = arena_alloc(&images, 100001, 1);
	struct symbolizer *s = symbolizer_new(&arena, &(struct symbol_options){0});
	struct symbol_answer answer = {.ea = 0x1008};
	struct module module;

	(void)state;
	memset(name, 'x', 100000);
	module = packed_module(&images, name);
	symbolize(s, &module, &answer, 1);
	symbolizer_done(s, &module);
	assert_int_not_equal(budget_held(), 0);
	assert_string_equal(answer.frames[0].function, name);
	arena_free(&images);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds_of_files),
		cmocka_unit_test(test_one_module_at_a_time),
		cmocka_unit_test(test_modules_that_are_not_done),
		cmocka_unit_test(test_two_at_a_time),
		cmocka_unit_test(test_name_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
