/* symbol/names: each text once, in memory of its own, whatever becomes of where it came from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/names.h"

static void test_demangled_once(void **state)
{
	struct arena arena = {0};
	struct names names = {.arena = &arena};
	const char *first = names_demangled(&names, "_Z3fooi");

	(void)state;
	assert_string_equal(first, "foo(int)");
	for (int i = 0; i < 5000; i++) {
		const char *name = arena_printf(&arena, "_Z1fILi%dEEvv", i);

		assert_string_equal(names_demangled(&names, name),
				    arena_printf(&arena, "void f<%d>()", i));
	}
	assert_ptr_equal(names_demangled(&names, arena_string(&arena, "_Z3fooi")), first);
	assert_int_equal(names.all.count, 5001);
	arena_free(&arena);
}

static void test_kept_once(void **state)
{
	static const char *const texts[] = {"",        "a",        "main",      "_Z3fooi",
					    "seven..", "eight...", "nine.....", "_Z3fooj"};
	struct arena arena = {0}, source = {0};
	struct names names = {.arena = &arena};
	const char *kept[8];

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 8; i++) {
			const char *given = arena_string(&source, texts[i]);
			const char *got = names_kept(&names, given);

			assert_ptr_not_equal(got, given);
			assert_string_equal(got, texts[i]);
			assert_ptr_equal(names_kept(&names, given), got);
			if (round)
				assert_ptr_equal(got, kept[i]);
			kept[i] = got;
		}
		names_forget(&names);
		arena_free(&source);
	}
	assert_string_equal(names_demangled(&names, kept[3]), "foo(int)");
	assert_string_equal(names_kept(&names, kept[3]), "_Z3fooi");
	assert_null(names_kept(&names, NULL));
	assert_null(names_demangled(&names, NULL));
	assert_false(names.borrowed);
	arena_free(&arena);
}

/* Memory that is used again for something else. */
static void test_forgotten(void **state)
{
	struct arena arena = {0};
	struct names names = {.arena = &arena};
	char place[16];

	(void)state;
	for (int i = 0; i < 100; i++) {
		const char *want = arena_printf(&arena, "f%d", i);

		memcpy(place, want, strlen(want) + 1);
		assert_string_equal(names_kept(&names, place), want);
		assert_string_equal(names_demangled(&names, place), want);
		names_forget(&names);
	}
	arena_free(&arena);
}

/* Every byte of a long text may begin a name; what is no name any more is not copied. */
static void test_text_without_end(void **state)
{
	enum { SIZE = 1 << 20 };
	struct arena arena = {0}, source = {0};
	struct names names = {.arena = &arena};
	char *text = arena_alloc(&source, SIZE + 1, 1);

	(void)state;
	memset(text, 'x', SIZE);
	for (size_t i = 0; i < SIZE / 2; i += 100) {
		names.borrowed = false;
		assert_ptr_equal(names_kept(&names, text + i), text + i);
		assert_true(names.borrowed);
	}
	assert_ptr_equal(names_demangled(&names, text), text);
	names.borrowed = false;
	/* These are names, but all of them together too much to be kept. */
	for (size_t i = SIZE - 65000; i < SIZE - 60000; i++)
		assert_int_equal(strlen(names_kept(&names, text + i)), SIZE - i);
	assert_true(names.borrowed);
	assert_string_equal(names_demangled(&names, "_Z3fooi"), "foo(int)");
	assert_true(arena_held(&arena) < (size_t)300 << 20);
	arena_free(&source);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangled_once),
		cmocka_unit_test(test_kept_once),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_text_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
