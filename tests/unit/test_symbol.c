/*
 * symbol/symbol on files without debugging information, with damaged one, and without any file:
 * what is known stays, and what is missing is said. (Files with debugging information are
 * compared with other symbolizers in tests/cli.)
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "elf_image.h"
#include "symbol/symbol.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct image_symbol symbols[] = {
	{"crt.c", 0, 0, STT_FILE, STB_LOCAL, SHN_ABS},
	{"_ZL6helperi", 0x1100, 0x10, STT_FUNC, STB_LOCAL, 1},
	{"main@@V1", 0x1200, 0x20, STT_FUNC, STB_GLOBAL, 1},
};

static const uint8_t build_id[] = {0x12, 0x34, 0x56, 0x78};

/* A module with the symbols above and a section of this name and contents. */
static struct module module_of(struct arena *arena, const char *section, struct bytes contents)
{
	const struct image_section sections[] = {image_code(".text", 0x1000, 0x1000),
						 image_plain(section, contents)};
	struct image image = {.sections = sections,
			      .section_count = COUNT(sections),
			      .symbols = symbols,
			      .symbol_count = COUNT(symbols),
			      .build_id = {build_id, sizeof build_id}};
	struct module module = {.path = "/nowhere/prog",
				.name = "prog",
				.build_id = "12345678"};
	struct err e = {0};

	module.elf = arena_new(arena, struct elf);
	if (!elf_open(module.elf, arena, image_make(arena, &image), "/nowhere/prog", &e))
		fail_msg("%s", e.text);
	return module;
}

static struct module plain_module(struct arena *arena)
{
	return module_of(arena, ".comment", (struct bytes){NULL, 0});
}

static const char *function_of(const struct symbol_answer *answer)
{
	return answer->frame_count ? answer->frames[answer->frame_count - 1].function : NULL;
}

static void test_any_order_and_duplicates(void **state)
{
	static const uint64_t asked[] = {0x1210, 0x1100, 0x9999, 0x1210, 0x1100, 0x0, 0x1210};
	struct arena arena = {0};
	struct module module = plain_module(&arena);
	struct symbolizer *s =
		symbolizer_new(&arena, &(struct symbol_options){.demangle = true});
	struct symbol_answer answers[COUNT(asked)];

	(void)state;
	memset(answers, 0xff, sizeof answers); /* the caller sets no more than ea */
	for (size_t i = 0; i < COUNT(asked); i++)
		answers[i].ea = asked[i];
	symbolize(s, &module, answers, COUNT(asked));
	symbolizer_done(s, &module);
	for (size_t i = 0; i < COUNT(asked); i++) {
		const char *want = asked[i] == 0x1210   ? "main"
				   : asked[i] == 0x1100 ? "helper(int)"
							: NULL;

		assert_int_equal(answers[i].ea, asked[i]);
		if (!want) {
			assert_int_equal(answers[i].frame_count, 0);
			continue;
		}
		assert_int_equal(answers[i].frame_count, 1);
		assert_string_equal(function_of(&answers[i]), want);
		assert_true(answers[i].frames[0].has_function_ea);
		assert_int_equal(answers[i].frames[0].function_ea, asked[i] & ~UINT64_C(0xff));
		assert_null(answers[i].frames[0].file);
		assert_false(answers[i].frames[0].inlined);
	}
	arena_free(&arena);
}

static struct symbol_answer ask(struct arena *arena, struct module *module,
				const struct symbol_options *options, uint64_t ea)
{
	struct symbolizer *s = symbolizer_new(arena, options);
	struct symbol_answer answer = {.ea = ea};

	symbolize(s, module, &answer, 1);
	symbolizer_done(s, module);
	return answer;
}

static void test_no_demangle(void **state)
{
	struct arena arena = {0};
	struct module module = plain_module(&arena);
	struct symbol_answer answer = ask(&arena, &module, &(struct symbol_options){0}, 0x1104);

	(void)state;
	assert_string_equal(function_of(&answer), "_ZL6helperi");
	arena_free(&arena);
}

/* addr2line's way: the symbol before, whatever its size, in the same section, and STT_FILE. */
static void test_as_binutils(void **state)
{
	static const struct {
		uint64_t ea;
		const char *function, *file;
	} cases[] = {
		{0x1104, "_ZL6helperi", "crt.c"},
		{0x1180, "_ZL6helperi", "crt.c"},
		{0x1200, "main", "crt.c"},
		{0x1fff, "main", "crt.c"},
		{0x10ff, NULL, NULL},
		{0x2000, NULL, NULL},
		{UINT64_MAX, NULL, NULL},
	};
	const struct symbol_options options = {.names = SYMBOL_NAMES_DEBUG};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct arena arena = {0};
		struct module module = plain_module(&arena);
		struct symbol_answer answer = ask(&arena, &module, &options, cases[i].ea);

		assert_int_equal(answer.frame_count, cases[i].function ? 1 : 0);
		if (cases[i].function) {
			assert_string_equal(function_of(&answer), cases[i].function);
			assert_string_equal(answer.frames[0].file, cases[i].file);
			assert_int_equal(answer.frames[0].line, 0);
		}
		arena_free(&arena);
	}
}

static void test_notes(void **state)
{
	struct arena arena = {0};
	struct module module = plain_module(&arena);
	struct symbolizer *s = symbolizer_new(&arena, &(struct symbol_options){0});
	struct symbol_answer answer = {.ea = 0x1200};

	(void)state;
	symbolize(s, &module, &answer, 1);
	for (int round = 0; round < 2; round++) {
		assert_string_equal(
			symbolizer_note(s, &module),
			"no debug information (build-id 12345678); --debuginfod may "
			"fetch it");
		symbolizer_done(s, &module);
	}
	arena_free(&arena);
}

static void test_module_without_a_file(void **state)
{
	struct arena arena = {0};
	struct module module = {.path = "/gone", .name = "gone", .why = "/gone: not there"};
	struct symbolizer *s = symbolizer_new(&arena, &(struct symbol_options){0});
	struct symbol_answer answer = {.ea = 0x1200, .frame_count = 7};

	(void)state;
	symbolize(s, &module, &answer, 1);
	assert_int_equal(answer.frame_count, 0);
	assert_string_equal(symbolizer_note(s, &module), "/gone: not there");
	symbolize(s, &module, NULL, 0);
	symbolizer_done(s, &module);
	arena_free(&arena);
}

/* Garbage in any of these costs the frame nothing. */
static void test_damage_never_costs_the_frame(void **state)
{
	static const char *const sections[] = {
		".debug_info",    ".debug_line",       ".zdebug_info",   ".debug_aranges",
		".gnu_debuglink", ".gnu_debugaltlink", ".gnu_debugdata", ".gopclntab",
	};
	static const char *const garbage[] = {"", "\xff", "\xff\xff\xff\xff\xff\xff\xff\xff",
					      "ZLIB\x7f",
					      "A garbage of some length, no format"};

	(void)state;
	for (size_t i = 0; i < COUNT(sections); i++) {
		for (size_t j = 0; j < COUNT(garbage); j++) {
			struct arena arena = {0};
			struct bytes contents = {(const uint8_t *)garbage[j],
						 strlen(garbage[j])};
			struct module module = module_of(&arena, sections[i], contents);
			struct symbol_answer answer =
				ask(&arena, &module, &(struct symbol_options){0}, 0x1200);

			assert_int_equal(answer.frame_count, 1);
			assert_string_equal(function_of(&answer), "main");
			arena_free(&arena);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order_and_duplicates),
		cmocka_unit_test(test_no_demangle),
		cmocka_unit_test(test_as_binutils),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_module_without_a_file),
		cmocka_unit_test(test_damage_never_costs_the_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
