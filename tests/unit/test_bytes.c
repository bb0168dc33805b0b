/* The reader: every way to run off the end, and the integers of ELF and DWARF. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

#define BYTES(...)                                                \
	(struct bytes)                                            \
	{                                                         \
		(const uint8_t[]){__VA_ARGS__}, sizeof(uint8_t[]) \
		{                                                 \
			__VA_ARGS__                               \
		}                                                 \
	}

struct leb_case {
	const char *name;
	struct bytes bytes;
	bool fails;
	uint64_t value;
};

static void check_uleb(void **state)
{
	const struct leb_case cases[] = {
		{"zero", BYTES(0x00), false, 0},
		{"one byte", BYTES(0x7f), false, 127},
		{"two bytes", BYTES(0x80, 0x01), false, 128},
		{"the standard's example", BYTES(0xb9, 0x64), false, 12857},
		{"64 bits", BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
		 false, UINT64_MAX},
		{"padded with zeros", BYTES(0x81, 0x80, 0x80, 0x00), false, 1},
		{"padded past 64 bits",
		 BYTES(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00),
		 false, 1},
		{"a 65th bit",
		 BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02), true, 0},
		{"no end", BYTES(0x80, 0x80), true, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reader r = reader_over(cases[i].bytes);

		print_message("%s\n", cases[i].name);
		assert_true(read_uleb(&r) == cases[i].value);
		assert_int_equal(reader_failed(&r), cases[i].fails);
		assert_false(reader_more(&r));
	}
}

static void check_sleb(void **state)
{
	const struct {
		struct bytes bytes;
		int64_t value;
	} cases[] = {
		{BYTES(0x02), 2},
		{BYTES(0x7e), -2},
		{BYTES(0xff, 0x00), 127},
		{BYTES(0x81, 0x7f), -127},
		{BYTES(0x80, 0x01), 128},
		{BYTES(0x80, 0x7f), -128},
		{BYTES(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f), INT64_MIN},
		{BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), INT64_MAX},
		{BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		 -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reader r = reader_over(cases[i].bytes);

		assert_true(read_sleb(&r) == cases[i].value);
		assert_false(reader_failed(&r));
		assert_false(reader_more(&r));
	}
}

static void check_fixed(void **state)
{
	struct reader r =
		reader_over(BYTES(1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0x80, 0xfe));

	(void)state;
	assert_int_equal(read_u8(&r), 1);
	assert_int_equal(read_u16(&r), 2);
	assert_int_equal(read_u32(&r), 3);
	assert_true(read_u64(&r) == UINT64_C(0x8000000000000004));
	assert_int_equal(read_sint(&r, 1), -2);
	assert_true(reader_ok(&r, "x", NULL));
	r = reader_over(BYTES(0x01, 0x02, 0x03));
	assert_int_equal(read_uint(&r, 3), 0x030201);
	assert_int_equal(read_uint(&r, 9), 0);
	assert_true(reader_failed(&r));
}

/* The first failure stays; all that follows is zeros, and loops over reader_more end. */
static void check_sticky(void **state)
{
	struct reader r = reader_over(BYTES(1, 2, 3, 4, 5));
	struct err e = {0};

	(void)state;
	assert_int_equal(read_u32(&r), 0x04030201);
	assert_int_equal(read_u32(&r), 0);
	assert_int_equal(read_u8(&r), 0);
	assert_string_equal(read_string(&r), "");
	assert_int_equal(read_block(&r, 1).len, 0);
	assert_false(reader_more(&r));
	assert_false(reader_ok(&r, "thing", &e));
	assert_string_equal(e.text, "thing: truncated at offset 0x4");
	assert_int_equal(e.kind, ERR_FORMAT);
}

static void check_lying_lengths(void **state)
{
	struct bytes bytes = BYTES(1, 2, 3, 4);
	struct reader r = reader_over(bytes);

	(void)state;
	reader_skip(&r, UINT64_MAX);
	assert_true(reader_failed(&r));
	r = reader_at(bytes, 5);
	assert_true(reader_failed(&r));
	r = reader_at(bytes, 4);
	assert_false(reader_failed(&r));
	reader_limit(&r, 1);
	assert_true(reader_failed(&r));
	assert_int_equal(bytes_part(bytes, 2, UINT64_MAX).len, 0);
	assert_int_equal(bytes_part(bytes, UINT64_MAX, 2).len, 0);
	assert_int_equal(bytes_part(bytes, 2, 2).len, 2);
	assert_int_equal(bytes_from(bytes, 4).len, 0);
	assert_int_equal(bytes_from(bytes, 3).len, 1);
}

static void check_strings(void **state)
{
	struct bytes bytes = BYTES('a', 'b', 0, 'c');
	struct reader r = reader_over(bytes);

	(void)state;
	assert_string_equal(read_string(&r), "ab");
	assert_string_equal(read_string(&r), ""); /* no NUL */
	assert_true(reader_failed(&r));
	assert_string_equal(bytes_string(bytes, 1), "b");
	assert_string_equal(bytes_string(bytes, 2), "");
	assert_null(bytes_string(bytes, 3));
	assert_null(bytes_string(bytes, 4));
}

static void check_err_words(void **state)
{
	struct err e = {0};

	(void)state;
	assert_false(err_set(&e, ERR_LIMIT, "%d is too much", 7));
	assert_false(err_within(&e, "FDE at 0x%x", 16));
	assert_string_equal(e.text, "FDE at 0x10: 7 is too much");
	assert_false(err_set(NULL, ERR_LIMIT, "nobody listens"));
	assert_false(err_within(NULL, "still"));
	for (int i = 0; i < 100; i++)
		err_within(&e, "ten bytes");
	assert_true(strlen(e.text) < sizeof e.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_uleb),          cmocka_unit_test(check_sleb),
		cmocka_unit_test(check_fixed),         cmocka_unit_test(check_sticky),
		cmocka_unit_test(check_lying_lengths), cmocka_unit_test(check_strings),
		cmocka_unit_test(check_err_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
