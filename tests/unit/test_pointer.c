/* Every pointer encoding, and what cannot be one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elf/pointer.h"

#define SECTION 0x1000 /* ea of the first byte */
#define TEXT 0x20000
#define DATA 0x300000
#define FUNCTION 0x4000000

static const struct pointer_bases all_bases = {
	.section = SECTION,
	.text = TEXT,
	.data = DATA,
	.function = FUNCTION,
	.has_text = true,
	.has_data = true,
	.has_function = true,
};

struct pointer_case {
	const char *name;
	uint8_t encoding;
	const char *bytes; /* from offset `at` */
	size_t at, size;
	uint64_t want;
};

/* clang-format off */
static const struct pointer_case cases[] = {
	{"absptr", 0x00, "\x88\x77\x66\x55\x44\x33\x22\x11", 0, 8, 0x1122334455667788},
	{"uleb128", 0x01, "\xe5\x8e\x26", 0, 3, 624485},
	{"udata2", 0x02, "\xfe\xff", 0, 2, 0xfffe},
	{"udata4", 0x03, "\xfe\xff\xff\xff", 0, 4, 0xfffffffe},
	{"udata8", 0x04, "\xfe\xff\xff\xff\xff\xff\xff\xff", 0, 8, 0xfffffffffffffffe},
	{"signed", 0x08, "\xfe\xff\xff\xff\xff\xff\xff\xff", 0, 8, 0xfffffffffffffffe},
	{"sleb128", 0x09, "\x80\x7f", 0, 2, (uint64_t)-128},
	{"sdata2", 0x0a, "\xfe\xff", 0, 2, (uint64_t)-2},
	{"sdata4", 0x0b, "\xfe\xff\xff\xff", 0, 4, (uint64_t)-2},
	{"sdata8", 0x0c, "\xfe\xff\xff\xff\xff\xff\xff\xff", 0, 8, (uint64_t)-2},
	{"pcrel sdata4", 0x1b, "\xf0\xff\xff\xff", 3, 4, SECTION + 3 - 16},
	{"pcrel absptr", 0x10, "\x10\0\0\0\0\0\0\0", 0, 8, SECTION + 16},
	{"textrel udata2", 0x22, "\x10\0", 0, 2, TEXT + 16},
	{"datarel sdata4", 0x3b, "\xfc\xff\xff\xff", 0, 4, DATA - 4},
	{"funcrel udata4", 0x43, "\x08\0\0\0", 0, 4, FUNCTION + 8},
	{"pcrel wraps around", 0x1c, "\0\0\0\0\0\0\0\x80", 0, 8, SECTION + (UINT64_C(1) << 63)},
	{"indirect: the address of it", 0x9b, "\x10\0\0\0", 0, 4, SECTION + 16},
	{"aligned, padded", 0x50, "\xaa\xaa\xaa\x88\x77\x66\x55\x44\x33\x22\x11", 5, 11, 0x1122334455667788},
	{"aligned, in place", 0x50, "\x88\x77\x66\x55\x44\x33\x22\x11", 8, 8, 0x1122334455667788},
	{"omitted", 0xff, "", 0, 0, 0},
};
/* clang-format on */

/* The case's bytes at its offset, cut to `size`. */
static struct reader reader_for(uint8_t *room, const struct pointer_case *c, size_t size)
{
	struct reader r;

	memcpy(room + c->at, c->bytes, size);
	r = reader_over((struct bytes){room, c->at + size});
	reader_skip(&r, c->at);
	return r;
}

static void test_encodings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct pointer_case *c = &cases[i];
		uint8_t room[64] = {0};
		struct reader r = reader_for(room, c, c->size);
		struct err e = {.kind = ERR_NONE};
		uint64_t value;

		print_message("%s\n", c->name);
		assert_true(pointer_read(&r, c->encoding, &all_bases, &value, &e));
		assert_false(reader_failed(&r));
		assert_false(reader_more(&r));
		assert_int_equal(value, c->want);
	}
}

static void test_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct pointer_case *c = &cases[i];

		for (size_t size = 0; size < c->size; size++) {
			uint8_t room[64] = {0};
			struct reader r = reader_for(room, c, size);
			uint64_t value;

			assert_true(pointer_read(&r, c->encoding, &all_bases, &value, NULL));
			assert_true(reader_failed(&r));
			assert_int_equal(value, 0);
		}
	}
}

static void test_refused(void **state)
{
	static const struct {
		uint8_t encoding;
		const char *error;
	} refused[] = {
		{0x05, "pointer encoding 0x05"},
		{0x0f, "pointer encoding 0x0f"},
		{0x1d, "pointer encoding 0x1d"},
		{0x60, "pointer encoding 0x60: unknown base"},
		{0x70, "pointer encoding 0x70: unknown base"},
		{0x2b, "pointer encoding 0x2b: unknown base"},
		{0x3b, "pointer encoding 0x3b: unknown base"},
		{0x4b, "pointer encoding 0x4b: unknown base"},
	};
	static const struct pointer_bases no_bases = {.section = SECTION};
	uint8_t room[16] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct reader r = reader_over((struct bytes){room, sizeof room});
		struct err e = {.kind = ERR_NONE};
		uint64_t value = 1;

		assert_false(pointer_read(&r, refused[i].encoding, &no_bases, &value, &e));
		assert_int_equal(e.kind, ERR_UNSUPPORTED);
		assert_string_equal(e.text, refused[i].error);
		assert_int_equal(value, 0);
	}
}

/* pointer_size says what pointer_read takes. */
static void test_size(void **state)
{
	(void)state;
	for (unsigned encoding = 0; encoding < 0x100; encoding++) {
		uint8_t room[16] = {0};
		struct reader r = reader_over((struct bytes){room, sizeof room});
		size_t size = pointer_size((uint8_t)encoding);
		uint64_t value;

		if (size && pointer_read(&r, (uint8_t)encoding, &all_bases, &value, NULL))
			assert_int_equal(reader_offset(&r), size);
	}
	assert_int_equal(pointer_size(0x01), 0);
	assert_int_equal(pointer_size(0x09), 0);
	assert_int_equal(pointer_size(0x50), 0);
	assert_int_equal(pointer_size(0xff), 0);
	assert_int_equal(pointer_size(0x3b), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
