/*
 * symbol/demangle: what each language's names become, what stays as it is, and names made to
 * explode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "symbol/symbol.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct arena arena;

/* clang-format off */
static const struct {
	const char *name, *want;
} cases[] = {
	/* C++ */
	{"_Z3fooi", "foo(int)"},
	{"_ZN3Foo3barEv", "Foo::bar()"},
	{"_ZNKSt6vectorIiSaIiEE4sizeEv", "std::vector<int, std::allocator<int> >::size() const"},
	{"_ZN12_GLOBAL__N_15localEv", "(anonymous namespace)::local()"},
	{"_ZL6helperi", "helper(int)"},
	{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"},
	{"_Z3fooi.cold", "foo(int) [clone .cold]"},
	{"_Z3fooi.constprop.0", "foo(int) [clone .constprop.0]"},
	{"_ZTv0_n24_N3FooD1Ev", "virtual thunk to Foo::~Foo()"},
	/* Rust, legacy: the hash is not shown */
	{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
	{"_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h0123456789abcdefE",
	 "<alloc::vec::Vec<T> as core::ops::Drop>::drop"},
	/* Rust, v0 */
	{"_RNvC6_123foo3bar", "123foo::bar"},
	{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
	{"_RNCNvC4main4main0B3_", "main::main::{closure#0}"},
	{"_RINvC1a1fTllEE", "a::f::<(i32, i32)>"},
	/* D */
	{"_D3std5stdio4File5writeMFAyaZv", "std.stdio.File.write(immutable(char)[])"},
	{"_Dmain", "D main"},
	/* Others, and what only looks mangled */
	{"main", "main"},
	{"", ""},
	{"_", "_"},
	{"_start", "_start"},
	{"_Done", "_Done"},
	{"_D", "_D"},
	{"_R", "_R"},
	{"_Z", "_Z"},
	{"_Zebra", "_Zebra"},
	{"_ZN3Foo", "_ZN3Foo"},
	{"_ZN999999999999999999999Fo", "_ZN999999999999999999999Fo"},
	{"_D9999999999999999999999x", "_D9999999999999999999999x"},
	{"_RNvB_1a", "_RNvB_1a"},       /* a back reference to what contains it */
	{"_RNvXB0_ABCD", "_RNvXB0_ABCD"},
	{"runtime.goexit", "runtime.goexit"},
	{"i", "i"},                     /* not "int" */
};
/* clang-format on */

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *got = demangle(&arena, cases[i].name);

		if (strcmp(got, cases[i].want) != 0)
			fail_msg("%s: %s, not %s", cases[i].name, got, cases[i].want);
	}
}

/* Every beginning of every name gives something and breaks nothing. */
static void test_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t len = 0; len < strlen(cases[i].name); len++)
			assert_non_null(
				demangle(&arena, arena_copy(&arena, cases[i].name, len)));
}

static void test_every_byte_wrong(void **state)
{
	static const char letters[] = "_0ESTQBZI\x80";

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t at = 1; at < strlen(cases[i].name); at++) {
			char *name = arena_string(&arena, cases[i].name);

			for (size_t l = 0; l + 1 < sizeof letters; l++) {
				name[at] = letters[l];
				assert_non_null(demangle(&arena, name));
			}
		}
	}
}

/* ---- Names that describe texts of 2^60 bytes ---- */

static const char *base36(unsigned n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return n < 36 ? arena_printf(&arena, "%c", digits[n])
		      : arena_printf(&arena, "%c%c", digits[n / 36], digits[n % 36]);
}

static const char *base62(unsigned n)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return n < 62 ? arena_printf(&arena, "%c", digits[n])
		      : arena_printf(&arena, "%c%c", digits[n / 62], digits[n % 62]);
}

/* b<S0, S0>, then b<S1, S1> ... : each substitution is twice the one before. */
static const char *cxx_bomb(void)
{
	const char *name = "_Z1f1aIiiE1bIS0_S0_E";

	for (unsigned i = 0; i < 60; i++)
		name = arena_printf(&arena, "%sS1_IS%s_S%s_E", name, base36(i + 2),
				    base36(i + 2));
	return name;
}

static const char *rust_bomb(void)
{
	const char *name = "_RINvC1a1f";
	size_t tuple = strlen(name) - 2;

	name = arena_printf(&arena, "%sTllE", name);
	for (int i = 0; i < 60; i++) {
		size_t here = strlen(name) - 2;
		const char *back = base62((unsigned)tuple - 1);

		name = arena_printf(&arena, "%sTB%s_B%s_E", name, back, back);
		tuple = here;
	}
	return arena_printf(&arena, "%sE", name);
}

/* "Q" and the distance back in base 26, its last digit a small letter. */
static const char *d_back(size_t distance)
{
	return distance < 26 ? arena_printf(&arena, "Q%c", (char)('a' + distance))
			     : arena_printf(&arena, "Q%c%c", (char)('A' + distance / 26),
					    (char)('a' + distance % 26));
}

/* Tuples of two references to the tuple before. */
static const char *d_bomb(void)
{
	const char *name = "_D1a1fFB2ii";
	size_t tuple = 7;

	for (int i = 0; i < 60; i++) {
		size_t here = strlen(name);
		const char *first = d_back(here + 2 - tuple);

		name = arena_printf(&arena, "%sB2%s", name, first);
		name = arena_printf(&arena, "%s%s", name, d_back(strlen(name) - tuple));
		tuple = here;
	}
	return arena_printf(&arena, "%sZv", name);
}

static void test_bombs(void **state)
{
	const char *names[] = {cxx_bomb(), rust_bomb(), d_bomb()};
	clock_t begin = clock();

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *got = demangle(&arena, names[i]);

		assert_true(strlen(got) <= 65536);
	}
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
}

/* The start of the same D name is harmless and is demangled: the bound does not refuse too
 * much. */
static void test_d_back_references(void **state)
{
	const char *got = demangle(&arena, "_D1a1fFB2iiB2QeQgZv");

	(void)state;
	assert_string_not_equal(got, "_D1a1fFB2iiB2QeQgZv");
}

static void test_deep_and_long_names(void **state)
{
	(void)state;
	for (size_t len = 1000; len <= 20000; len += 1900) {
		char *deep = arena_alloc(&arena, len + 8, 1);
		char *nested = arena_alloc(&arena, len + 8, 1);

		memcpy(deep, "_Z1f", 4);
		memset(deep + 4, 'P', len);
		deep[4 + len] = 'i';
		assert_non_null(demangle(&arena, deep));
		memcpy(nested, "_Z1fI", 5);
		memset(nested + 5, 'I', len);
		assert_non_null(demangle(&arena, nested));
	}
}

/* Names of real templates are longer than libiberty's own limit of 1024 bytes. */
static void test_long_real_name(void **state)
{
	const char *name = "_Z1f", *got;

	(void)state;
	for (int i = 0; i < 300; i++)
		name = arena_printf(&arena, "%s10some_class", name);
	got = demangle(&arena, name);
	assert_true(strlen(name) > 3000);
	assert_int_equal(strncmp(got, "f(some_class, some_class, ", 26), 0);
}

static int end(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_every_byte_wrong),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_d_back_references),
		cmocka_unit_test(test_deep_and_long_names),
		cmocka_unit_test(test_long_real_name),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
