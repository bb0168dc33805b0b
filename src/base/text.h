/*
 * base/text: bytes of other people as text, and numbers as people read them.
 *
 * Names of threads, files and symbols are bytes: no encoding is promised and any of them may be
 * hostile. Two escapes exist, for two readers. The *reversible* one (captures) turns bytes into
 * valid UTF-8 that gives the same bytes back. The *terminal* one (text reports, messages) only
 * has to be harmless and readable.
 */
#ifndef STACKER_BASE_TEXT_H
#define STACKER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

/* Length (1 to 4) of the well-formed UTF-8 sequence at the beginning (Unicode 15, table 3-7: no
 * overlong forms, no surrogates, nothing above U+10FFFF), or 0. `code`, where given, gets the code
 * point. */
size_t utf8_sequence(struct bytes bytes, uint32_t *code);

/* Offset of the first byte that is not part of a well-formed sequence; bytes.len: none. */
size_t utf8_invalid_at(struct bytes bytes);

/*
 * The reversible escape. A byte that is not part of well-formed UTF-8, and NUL, becomes `\xNN`
 * (two lower-case hex digits). A backslash stays as it is, except where `xNN` follows it in the
 * bytes: that backslash becomes `\x5c`. So text without such bytes is unchanged.
 */
char *text_escape(struct arena *arena, struct bytes bytes);

/* The way back: every `\xNN` is one byte, all else stands for itself. */
struct bytes text_unescape(struct arena *arena, struct bytes text);

/* Whether a terminal may do something with the code point other than show it: C0, DEL and C1
 * controls, and what reorders or breaks the line (bidirectional controls, line and paragraph
 * separators). */
bool code_is_harmful(uint32_t code);

/* Room for one escaped code point and a NUL. */
#define TERMINAL_ESCAPE_SIZE 12

/* What a terminal may be shown for the first code point: its length in `bytes` is returned. `out`
 * becomes "" where the code point is harmless as it is, else `\xNN` or `\u{NNNN}`; bytes that are
 * not UTF-8 are escaped too. bytes must not be empty. */
size_t terminal_escape(struct bytes bytes, char out[TERMINAL_ESCAPE_SIZE]);

/* A string as one harmless line for a message, cut to `size` - 1 bytes. Returns buf. */
const char *text_for_message(char *buf, size_t size, const char *s);

/* "0x..." or decimal digits, the whole of text and within 64 bits. */
bool number_parse(const char *text, size_t len, uint64_t *out);

/* Hex digits without "0x", at least `width` (at most 16) of them. Returns how many; no NUL. */
#define HEX_SIZE 16
size_t hex_format(char out[HEX_SIZE], uint64_t value, size_t width);

/* Decimal digits. Returns how many; no NUL. */
#define DECIMAL_SIZE 20
size_t decimal_format(char out[DECIMAL_SIZE], uint64_t value);

/* "0ns", "812ns", "1.234µs", "2.345ms", "1.2s". Returns buf. */
#define DURATION_SIZE 32
const char *duration_format(char buf[DURATION_SIZE], uint64_t ns);

/* RFC 4648 base64 with padding. `out` has room for BASE64_SIZE(len) characters; no NUL. */
#define BASE64_SIZE(len) (((len) + 2) / 3 * 4)
size_t base64_encode(char *out, struct bytes bytes);
/* False for anything that is not canonical base64 (length, alphabet, padding, spare bits). */
bool base64_decode(struct arena *arena, const char *text, size_t len, struct bytes *out);

#endif
