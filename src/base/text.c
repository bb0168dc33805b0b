#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

/*
 * UTF-8. One row per first byte range of Unicode table 3-7: the second byte's range is what tells
 * overlong forms, surrogates and too large values; all later bytes are 80..bf.
 */
static const struct utf8_row {
	uint8_t first_low, first_high, length, second_low, second_high;
} utf8_rows[] = {
	{0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf},
	{0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
	{0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static const struct utf8_row *utf8_row_of(uint8_t first)
{
	for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++)
		if (first >= utf8_rows[i].first_low && first <= utf8_rows[i].first_high)
			return &utf8_rows[i];
	return NULL;
}

size_t utf8_sequence(struct bytes bytes, uint32_t *code)
{
	uint32_t value;
	const struct utf8_row *row;

	if (!bytes.len)
		return 0;
	value = bytes.at[0];
	if (value < 0x80) {
		if (code)
			*code = value;
		return 1;
	}
	row = utf8_row_of(bytes.at[0]);
	if (!row || bytes.len < row->length || bytes.at[1] < row->second_low ||
	    bytes.at[1] > row->second_high)
		return 0;
	value &= 0x7fU >> row->length;
	for (size_t i = 1; i < row->length; i++) {
		if ((bytes.at[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (bytes.at[i] & 0x3f);
	}
	if (code)
		*code = value;
	return row->length;
}

size_t utf8_invalid_at(struct bytes bytes)
{
	size_t at = 0;

	while (at < bytes.len) {
		uint64_t eight;
		size_t length;

		/* Eight ASCII bytes at a time: captures are little else. */
		if (bytes.len - at >= sizeof eight) {
			memcpy(&eight, bytes.at + at, sizeof eight);
			if (!(eight & UINT64_C(0x8080808080808080))) {
				at += sizeof eight;
				continue;
			}
		}
		length = utf8_sequence(bytes_from(bytes, at), NULL);
		if (!length)
			return at;
		at += length;
	}
	return at;
}

/* The reversible escape. */

enum { ESCAPE_LENGTH = 4 }; /* \xNN */

static int hex_value(uint8_t digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return -1;
}

/* Whether the bytes begin with `\xNN` as text_escape writes it. */
static bool begins_with_escape(struct bytes bytes)
{
	return bytes.len >= ESCAPE_LENGTH && bytes.at[0] == '\\' && bytes.at[1] == 'x' &&
	       hex_value(bytes.at[2]) >= 0 && hex_value(bytes.at[3]) >= 0;
}

static char *put_escape(char *out, uint8_t byte)
{
	*out++ = '\\';
	*out++ = 'x';
	*out++ = hex_digits[byte >> 4];
	*out++ = hex_digits[byte & 15];
	return out;
}

char *text_escape(struct arena *arena, struct bytes bytes)
{
	char *text = arena_alloc(arena, bytes.len + 1, ESCAPE_LENGTH);
	char *out = text;

	while (bytes.len) {
		size_t length = utf8_sequence(bytes, NULL);

		if (!length || !bytes.at[0] || begins_with_escape(bytes)) {
			out = put_escape(out, bytes.at[0]);
			length = 1;
		} else {
			memcpy(out, bytes.at, length);
			out += length;
		}
		bytes = bytes_from(bytes, length);
	}
	return text; /* arena memory is zeroed: the NUL is there */
}

struct bytes text_unescape(struct arena *arena, struct bytes text)
{
	uint8_t *bytes = (uint8_t *)arena_alloc(arena, text.len + 1, 1);
	size_t count = 0;

	while (text.len) {
		size_t length = 1;

		bytes[count] = text.at[0];
		if (begins_with_escape(text)) {
			bytes[count] =
				(uint8_t)(hex_value(text.at[2]) << 4 | hex_value(text.at[3]));
			length = ESCAPE_LENGTH;
		}
		count++;
		text = bytes_from(text, length);
	}
	return (struct bytes){bytes, count};
}

/* The terminal escape. */

bool code_is_harmful(uint32_t code)
{
	static const struct {
		uint32_t low, high;
	} ranges[] = {
		{0x00, 0x1f},     {0x7f, 0x9f},     /* C0; DEL and C1 */
		{0x061c, 0x061c}, {0x200e, 0x200f}, /* marks of direction */
		{0x2028, 0x202e},                   /* separators; embeddings and overrides */
		{0x2066, 0x2069},                   /* isolates */
	};

	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if (code >= ranges[i].low && code <= ranges[i].high)
			return true;
	return false;
}

size_t terminal_escape(struct bytes bytes, char out[TERMINAL_ESCAPE_SIZE])
{
	uint32_t code = 0;
	size_t length = utf8_sequence(bytes, &code);

	if (!length || (length == 1 && code_is_harmful(code))) {
		*put_escape(out, bytes.at[0]) = '\0';
		return 1;
	}
	if (code_is_harmful(code))
		snprintf(out, TERMINAL_ESCAPE_SIZE, "\\u{%x}", code);
	else
		out[0] = '\0';
	return length;
}

const char *text_for_message(char *buf, size_t size, const char *s)
{
	struct bytes left = {(const uint8_t *)s, strlen(s)};
	size_t used = 0;

	while (left.len) {
		char escape[TERMINAL_ESCAPE_SIZE];
		size_t length = terminal_escape(left, escape);
		const void *from = escape[0] ? escape : (const void *)left.at;
		size_t count = escape[0] ? strlen(escape) : length;

		if (count >= size - used)
			break;
		memcpy(buf + used, from, count);
		used += count;
		left = bytes_from(left, length);
	}
	buf[used] = '\0';
	return buf;
}

/* Numbers. */

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

bool number_parse(const char *text, size_t len, uint64_t *out)
{
	unsigned base = 10;
	uint64_t value = 0;

	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
		len -= 2;
	}
	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = (unsigned)digit_value(text[i]);

		if (digit >= base || value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*out = value;
	return true;
}

size_t hex_format(char out[HEX_SIZE], uint64_t value, size_t width)
{
	size_t count = 1;

	while (count < HEX_SIZE && (count < width || value >> (4 * count)))
		count++;
	for (size_t i = count; i-- > 0; value >>= 4)
		out[i] = hex_digits[value & 15];
	return count;
}

size_t decimal_format(char out[DECIMAL_SIZE], uint64_t value)
{
	char digits[DECIMAL_SIZE];
	size_t count = 0;

	do {
		digits[DECIMAL_SIZE - ++count] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	memcpy(out, digits + DECIMAL_SIZE - count, count);
	return count;
}

const char *duration_format(char buf[DURATION_SIZE], uint64_t ns)
{
	/* Rounded before the unit is chosen, so that 999.9996ms is a second and not 1000.000ms. */
	uint64_t us = ns / 1000 + (ns % 1000 >= 500);
	uint64_t tenths = ns / 100000000 + (ns % 100000000 >= 50000000);

	if (ns < 1000)
		snprintf(buf, DURATION_SIZE, "%uns", (unsigned)ns);
	else if (ns < 1000000)
		snprintf(buf, DURATION_SIZE, "%u.%03uµs", (unsigned)(ns / 1000),
			 (unsigned)(ns % 1000));
	else if (us < 1000000)
		snprintf(buf, DURATION_SIZE, "%u.%03ums", (unsigned)(us / 1000),
			 (unsigned)(us % 1000));
	else
		snprintf(buf, DURATION_SIZE, "%llu.%us", (unsigned long long)(tenths / 10),
			 (unsigned)(tenths % 10));
	return buf;
}

/* Base64. */

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(char *out, struct bytes bytes)
{
	const char *begin = out;

	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t left = bytes.len - i;
		uint32_t three = (uint32_t)bytes.at[i] << 16;

		three |= left > 1 ? (uint32_t)bytes.at[i + 1] << 8 : 0;
		three |= left > 2 ? bytes.at[i + 2] : 0;
		*out++ = base64_digits[three >> 18];
		*out++ = base64_digits[three >> 12 & 63];
		*out++ = left > 1 ? base64_digits[three >> 6 & 63] : '=';
		*out++ = left > 2 ? base64_digits[three & 63] : '=';
	}
	return (size_t)(out - begin);
}

/* 0..63, or 64 for what is not a digit. */
static uint32_t base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Decodes four characters of which the last `padding` are '='. */
static bool base64_group(const char *four, size_t padding, uint8_t three[3])
{
	uint32_t value = 0;

	for (size_t i = 0; i < 4; i++) {
		uint32_t digit = i + padding < 4 ? base64_value(four[i]) : 0;

		if (digit > 63)
			return false;
		value = value << 6 | digit;
	}
	three[0] = (uint8_t)(value >> 16);
	three[1] = (uint8_t)(value >> 8);
	three[2] = (uint8_t)value;
	return (padding < 1 || !three[2]) && (padding < 2 || !three[1]);
}

bool base64_decode(struct arena *arena, const char *text, size_t len, struct bytes *out)
{
	size_t padding = 0;
	uint8_t *bytes;

	*out = (struct bytes){NULL, 0};
	if (len % 4)
		return false;
	if (!len)
		return true;
	padding =
		(size_t)(text[len - 1] == '=') + (text[len - 1] == '=' && text[len - 2] == '=');
	bytes = (uint8_t *)arena_alloc(arena, len / 4, 3);
	for (size_t i = 0; i < len / 4; i++)
		if (!base64_group(text + 4 * i, i + 1 == len / 4 ? padding : 0, bytes + 3 * i))
			return false;
	*out = (struct bytes){bytes, len / 4 * 3 - padding};
	return true;
}
