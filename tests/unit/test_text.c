/* base/text and base/sink: escapes there and back, numbers, durations, base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/sink.h"
#include "base/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define BYTES(literal)                                          \
	{                                                       \
		(const uint8_t *)(literal), sizeof(literal) - 1 \
	}

static struct bytes bytes_of(const char *s)
{
	return (struct bytes){(const uint8_t *)s, strlen(s)};
}

static void utf8_is_told_from_other_bytes(void **state)
{
	static const struct {
		struct bytes bytes;
		size_t length;
		uint32_t code;
	} cases[] = {
		{BYTES("a"), 1, 'a'},
		{BYTES("\0"), 1, 0},
		{BYTES("\x7f"), 1, 0x7f},
		{BYTES("\xc2\x80"), 2, 0x80},
		{BYTES("\xdf\xbf"), 2, 0x7ff},
		{BYTES("\xe0\xa0\x80"), 3, 0x800},
		{BYTES("\xed\x9f\xbf"), 3, 0xd7ff},
		{BYTES("\xee\x80\x80"), 3, 0xe000},
		{BYTES("\xef\xbf\xbf"), 3, 0xffff},
		{BYTES("\xf0\x90\x80\x80"), 4, 0x10000},
		{BYTES("\xf4\x8f\xbf\xbf"), 4, 0x10ffff},
		/* malformed */
		{BYTES(""), 0, 0},
		{BYTES("\x80"), 0, 0},
		{BYTES("\xc0\x80"), 0, 0},         /* overlong NUL */
		{BYTES("\xc1\xbf"), 0, 0},         /* overlong */
		{BYTES("\xe0\x9f\xbf"), 0, 0},     /* overlong */
		{BYTES("\xed\xa0\x80"), 0, 0},     /* surrogate */
		{BYTES("\xf0\x8f\xbf\xbf"), 0, 0}, /* overlong */
		{BYTES("\xf4\x90\x80\x80"), 0, 0}, /* above U+10FFFF */
		{BYTES("\xf5\x80\x80\x80"), 0, 0},
		{BYTES("\xff"), 0, 0},
		{BYTES("\xc2"), 0, 0}, /* cut short */
		{BYTES("\xe2\x82"), 0, 0},
		{BYTES("\xf0\x9f\x98"), 0, 0},
		{BYTES("\xe2\x28\xa1"), 0, 0}, /* no continuation */
		{BYTES("\xe2\x82\x28"), 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint32_t code = 0;

		assert_int_equal(utf8_sequence(cases[i].bytes, &code), cases[i].length);
		assert_int_equal(code, cases[i].code);
	}
}

static void invalid_utf8_is_found_where_it_is(void **state)
{
	char text[40];

	(void)state;
	for (size_t length = 0; length < sizeof text; length++) {
		memset(text, 'a', sizeof text);
		assert_int_equal(utf8_invalid_at((struct bytes){(uint8_t *)text, length}),
				 length);
		for (size_t at = 0; at < length; at++) {
			memset(text, 'a', sizeof text);
			text[at] = (char)0xe9;
			assert_int_equal(utf8_invalid_at(
						 (struct bytes){(uint8_t *)text, length}),
					 at);
		}
	}
}

static void escape_is_as_documented(void **state)
{
	static const struct {
		struct bytes bytes;
		const char *text;
	} cases[] = {
		{BYTES(""), ""},
		{BYTES("plain"), "plain"},
		{BYTES("caf\xc3\xa9"), "caf\xc3\xa9"},
		{BYTES("caf\xe9"), "caf\\xe9"},
		{BYTES("a\0b"), "a\\x00b"},
		{BYTES("C:\\dir"), "C:\\dir"},
		{BYTES("a\\x41"), "a\\x5cx41"},
		{BYTES("a\\xZZ"), "a\\xZZ"},
		{BYTES("a\\xAB"), "a\\xAB"}, /* upper case is never an escape */
		{BYTES("a\\\\x41"), "a\\\\x5cx41"},
		{BYTES("\\\xff"), "\\\\xff"},
		{BYTES("\\x4\xff"), "\\x4\\xff"},
		{BYTES("\\x5cxff"), "\\x5cx5cxff"},
		{BYTES("\xed\xa0\x80"), "\\xed\\xa0\\x80"},
		{BYTES("\n\x1b[31m"), "\n\x1b[31m"}, /* JSON's own matter */
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const char *text = text_escape(&arena, cases[i].bytes);

		assert_string_equal(text, cases[i].text);
		assert_true(bytes_equal(text_unescape(&arena, bytes_of(text)), cases[i].bytes));
	}
	arena_free(&arena);
}

/* Strings of the bytes that matter, in every order. */
static void escape_gives_the_same_bytes_back(void **state)
{
	static const uint8_t alphabet[] = {'\\', 'x', '5', 'c', 0x00, 0xff, 0xc3, 0xa9};
	enum { LENGTH = 5 };
	struct arena arena = {0};
	size_t total = 1;

	(void)state;
	for (size_t i = 0; i < LENGTH; i++)
		total *= sizeof alphabet;
	for (size_t n = 0; n < total; n++) {
		uint8_t raw[LENGTH];
		struct bytes bytes = {raw, LENGTH}, text;

		for (size_t i = 0, rest = n; i < LENGTH; i++, rest /= sizeof alphabet)
			raw[i] = alphabet[rest % sizeof alphabet];
		text = bytes_of(text_escape(&arena, bytes));
		assert_int_equal(utf8_invalid_at(text), text.len);
		assert_true(bytes_equal(text_unescape(&arena, text), bytes));
		arena_reset(&arena);
	}
	arena_free(&arena);
}

static void terminals_are_shown_nothing_harmful(void **state)
{
	static const struct {
		const char *from, *shown;
	} cases[] = {
		{"plain text", "plain text"},
		{"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
		{"\x1b[2J", "\\x1b[2J"},
		{"a\nb\rc\td", "a\\x0ab\\x0dc\\x09d"},
		{"\x7f", "\\x7f"},
		{"\xc2\x9b", "\\u{9b}"}, /* C1: CSI */
		{"\x9b", "\\x9b"},
		{"\xff\xfe", "\\xff\\xfe"},
		{"\xe2\x80\xae"
		 "cod.exe",
		 "\\u{202e}cod.exe"}, /* right-to-left override */
		{"\xe2\x81\xa6", "\\u{2066}"},
		{"\xe2\x80\xa8", "\\u{2028}"},
		{"back\\slash", "back\\slash"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char *out = NULL, message[64];
		size_t size = 0;
		FILE *stream = open_memstream(&out, &size);
		struct sink sink;

		sink_init(&sink, stream);
		sink_foreign(&sink, cases[i].from);
		sink_flush(&sink);
		fclose(stream);
		assert_string_equal(out, cases[i].shown);
		free(out);
		assert_string_equal(text_for_message(message, sizeof message, cases[i].from),
				    cases[i].shown);
	}
}

static void messages_are_cut_at_whole_characters(void **state)
{
	char buf[8];

	(void)state;
	assert_string_equal(text_for_message(buf, sizeof buf, "1234567"), "1234567");
	assert_string_equal(text_for_message(buf, sizeof buf, "12345678"), "1234567");
	assert_string_equal(text_for_message(buf, sizeof buf, "123456\xc3\xa9"), "123456");
	assert_string_equal(text_for_message(buf, sizeof buf, "1234\n"), "1234");
	assert_string_equal(text_for_message(buf, 1, "1"), "");
}

static void numbers_are_read_within_64_bits(void **state)
{
	static const struct {
		const char *text;
		bool valid;
		uint64_t value;
	} cases[] = {
		{"0", true, 0},
		{"0x0", true, 0},
		{"42", true, 42},
		{"0042", true, 42},
		{"0x7fFF", true, 0x7fff},
		{"0XFF", true, 0xff},
		{"0xffffffffffffffff", true, UINT64_MAX},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"0x10000000000000000", false, 0},
		{"99999999999999999999", false, 0},
		{"", false, 0},
		{"0x", false, 0},
		{"x1", false, 0},
		{"ff", false, 0},
		{"-1", false, 0},
		{"+1", false, 0},
		{" 1", false, 0},
		{"1 ", false, 0},
		{"0x1g", false, 0},
		{"1.5", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		uint64_t value = 0;
		bool valid = number_parse(cases[i].text, strlen(cases[i].text), &value);

		if (valid != cases[i].valid || value != cases[i].value)
			fail_msg("%s", cases[i].text);
	}
}

static void numbers_are_written(void **state)
{
	static const struct {
		uint64_t value;
		size_t width;
		const char *hex, *decimal;
	} cases[] = {
		{0, 1, "0", "0"},
		{0, 0, "0", "0"},
		{15, 2, "0f", "15"},
		{0xabc, 1, "abc", "2748"},
		{0xabc, 16, "0000000000000abc", "2748"},
		{UINT64_MAX, 1, "ffffffffffffffff", "18446744073709551615"},
		{UINT64_MAX, 99, "ffffffffffffffff", "18446744073709551615"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char hex[HEX_SIZE + 1] = "", decimal[DECIMAL_SIZE + 1] = "";

		hex[hex_format(hex, cases[i].value, cases[i].width)] = '\0';
		decimal[decimal_format(decimal, cases[i].value)] = '\0';
		assert_string_equal(hex, cases[i].hex);
		assert_string_equal(decimal, cases[i].decimal);
	}
}

static void durations_choose_their_unit(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0ns"},
		{999, "999ns"},
		{1000, "1.000µs"},
		{1234, "1.234µs"},
		{999999, "999.999µs"},
		{1000000, "1.000ms"},
		{2345000, "2.345ms"},
		{2345499, "2.345ms"},
		{2345500, "2.346ms"},
		{999999499, "999.999ms"},
		{999999500, "1.0s"},
		{1200000000, "1.2s"},
		{1249999999, "1.2s"},
		{1250000000, "1.3s"},
		{UINT64_MAX, "18446744073.7s"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char buf[DURATION_SIZE];

		assert_string_equal(duration_format(buf, cases[i].ns), cases[i].text);
	}
}

/* RFC 4648, section 10. */
static void base64_goes_there_and_back(void **state)
{
	static const struct {
		struct bytes bytes;
		const char *text;
	} cases[] = {
		{BYTES(""), ""},
		{BYTES("f"), "Zg=="},
		{BYTES("fo"), "Zm8="},
		{BYTES("foo"), "Zm9v"},
		{BYTES("foob"), "Zm9vYg=="},
		{BYTES("fooba"), "Zm9vYmE="},
		{BYTES("foobar"), "Zm9vYmFy"},
		{BYTES("\0\xff\xfe\x3e\x3f"), "AP/+Pj8="},
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char text[32] = "";
		struct bytes bytes;

		text[base64_encode(text, cases[i].bytes)] = '\0';
		assert_string_equal(text, cases[i].text);
		assert_int_equal(strlen(text), BASE64_SIZE(cases[i].bytes.len));
		assert_true(base64_decode(&arena, text, strlen(text), &bytes));
		assert_true(bytes_equal(bytes, cases[i].bytes));
	}
	arena_free(&arena);
}

static void base64_that_is_not_canonical_is_refused(void **state)
{
	static const char *const cases[] = {
		"Z",    "Zg",   "Zg=",      "=",    "====",    "Z===",   "Zh==", "Zm9=",
		"Zm9*", "Zm 9", "Zg==Zg==", "Z=g=", "Zm9vYg=", "Zm9v\n", "Z-_v",
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct bytes bytes;

		if (base64_decode(&arena, cases[i], strlen(cases[i]), &bytes))
			fail_msg("%s", cases[i]);
	}
	arena_free(&arena);
}

/* Pieces shorter, as long as and longer than the buffer arrive whole and in order. */
static void sink_loses_nothing(void **state)
{
	static const size_t sizes[] = {1, SINK_SIZE - 1, 2, SINK_SIZE,
				       3, SINK_SIZE + 1, 0, 3 * SINK_SIZE};
	static char piece[3 * SINK_SIZE];
	char *out = NULL;
	size_t size = 0, at = 0;
	FILE *stream = open_memstream(&out, &size);
	struct sink sink;

	(void)state;
	sink_init(&sink, stream);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		memset(piece, (int)('a' + i), sizes[i]);
		sink_bytes(&sink, piece, sizes[i]);
	}
	sink_flush(&sink);
	fclose(stream);
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(out[at++], 'a' + i);
	assert_int_equal(at, size);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_told_from_other_bytes),
		cmocka_unit_test(invalid_utf8_is_found_where_it_is),
		cmocka_unit_test(escape_is_as_documented),
		cmocka_unit_test(escape_gives_the_same_bytes_back),
		cmocka_unit_test(terminals_are_shown_nothing_harmful),
		cmocka_unit_test(messages_are_cut_at_whole_characters),
		cmocka_unit_test(numbers_are_read_within_64_bits),
		cmocka_unit_test(numbers_are_written),
		cmocka_unit_test(durations_choose_their_unit),
		cmocka_unit_test(base64_goes_there_and_back),
		cmocka_unit_test(base64_that_is_not_canonical_is_refused),
		cmocka_unit_test(sink_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
