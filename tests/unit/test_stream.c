/*
 * elf/stream: points in the middle of a zlib stream, from which the rest reads as from the beginning.
 *
 * The streams are made here: blocks of all lengths, stored ones and such with the fixed codes (RFC 1951, 3.2.6),
 * which end in the middle of bytes, with matches that reach back as far as they can.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "elf/stream.h"

#define CONTENTS_MAX ((size_t)3 << 20)
#define BLOCK_SYMBOLS 5000
#define MATCH_LENGTH 258
#define POINTS_MAX 64

struct sample {
	struct arena arena;
	uint8_t *contents, *packed;
	size_t len, packed_len;
	uint64_t bits;
	unsigned bit_count;
	uint32_t dice;
	struct {
		struct stream_point at;
		uint8_t window[STREAM_WINDOW];
	} points[POINTS_MAX];
	size_t point_count;
};

static uint32_t roll(struct sample *s, uint32_t sides)
{
	s->dice = s->dice * 1664525 + 1013904223;
	return (s->dice >> 8) % sides;
}

static void put_bits(struct sample *s, uint32_t value, unsigned count)
{
	s->bits |= (uint64_t)value << s->bit_count;
	for (s->bit_count += count; s->bit_count >= 8; s->bit_count -= 8) {
		s->packed[s->packed_len++] = (uint8_t)s->bits;
		s->bits >>= 8;
	}
}

/* Codes begin with their highest bit. */
static void put_code(struct sample *s, uint32_t code, unsigned count)
{
	while (count--)
		put_bits(s, code >> count & 1, 1);
}

static void put_to_byte(struct sample *s)
{
	if (s->bit_count)
		put_bits(s, 0, 8 - s->bit_count);
}

static void put_literal(struct sample *s, uint8_t value)
{
	s->contents[s->len++] = value;
	if (value < 144)
		put_code(s, 0x30u + value, 8);
	else
		put_code(s, 0x190u + value - 144, 9);
}

/* Distances from 24577 to 32768 have code 29 and 13 bits more. */
static void put_far_match(struct sample *s)
{
	size_t distance = 24577 + roll(s, 8192);

	put_code(s, 0xc0 + 285 - 280, 8);
	put_code(s, 29, 5);
	put_bits(s, (uint32_t)distance - 24577, 13);
	for (int i = 0; i < MATCH_LENGTH; i++, s->len++)
		s->contents[s->len] = s->contents[s->len - distance];
}

static void put_fixed_block(struct sample *s, bool last)
{
	put_bits(s, last, 1);
	put_bits(s, 1, 2);
	for (size_t i = roll(s, BLOCK_SYMBOLS); i; i--) {
		if (s->len > STREAM_WINDOW && roll(s, 8) == 0)
			put_far_match(s);
		else
			put_literal(s, (uint8_t)roll(s, 256));
	}
	put_code(s, 0, 7);
}

static void put_stored_block(struct sample *s)
{
	uint32_t len = roll(s, 60000);

	put_bits(s, 0, 3);
	put_to_byte(s);
	put_bits(s, len, 16);
	put_bits(s, len ^ 0xffff, 16);
	for (; len; len--) {
		s->contents[s->len] = (uint8_t)roll(s, 256);
		put_bits(s, s->contents[s->len++], 8);
	}
}

static uint32_t adler(const uint8_t *at, size_t len)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < len; i++) {
		a = (a + at[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static void sample_make(struct sample *s, uint32_t seed)
{
	*s = (struct sample){.dice = seed};
	s->contents = arena_alloc(&s->arena, CONTENTS_MAX + (4 << 20), 1);
	s->packed = arena_alloc(&s->arena, CONTENTS_MAX + (4 << 20), 1);
	put_bits(s, 0x78, 8);
	put_bits(s, 0x01, 8);
	while (s->len < CONTENTS_MAX)
		if (roll(s, 4))
			put_fixed_block(s, false);
		else
			put_stored_block(s);
	put_fixed_block(s, true);
	put_to_byte(s);
	for (uint32_t sum = adler(s->contents, s->len), i = 0; i < 4; i++)
		put_bits(s, sum >> (24 - 8 * i) & 255, 8);
}

static struct bytes packed(const struct sample *s)
{
	return (struct bytes){s->packed, s->packed_len};
}

/* Reads all of it in pieces of many sizes and keeps every point. */
static void points_collect(struct sample *s, uint8_t *to)
{
	struct stream *stream = stream_open(STREAM_ZLIB, packed(s), false, s->len, NULL);
	const uint8_t *window;

	assert_non_null(stream);
	for (size_t at = 0, len; at < s->len; at += len) {
		struct stream_point *point = &s->points[s->point_count].at;

		len = 1 + roll(s, roll(s, 3) ? 200000 : 300);
		len = len < s->len - at ? len : s->len - at;
		if (s->point_count < POINTS_MAX)
			stream_mark(stream);
		assert_true(stream_read(stream, to + at, len, NULL));
		if (s->point_count == POINTS_MAX || !stream_marked(stream, point, &window))
			continue;
		assert_false(stream_marked(stream, point, &window));
		assert_in_range(point->off, STREAM_WINDOW, at + len);
		memcpy(s->points[s->point_count++].window, window, STREAM_WINDOW);
	}
	stream_close(stream);
	assert_memory_equal(to, s->contents, s->len);
}

static uint32_t checksum_at(const struct sample *s, uint64_t off)
{
	uint32_t sum = adler(s->contents, off);

	return (sum & 0xffff0000) | ((sum & 0xffff) + 65520) % 65521;
}

static void reads_from(const struct sample *s, size_t i, uint8_t *to)
{
	const struct stream_point *point = &s->points[i].at;
	uint64_t len = s->len - point->off;
	struct stream *stream =
		stream_open_at(packed(s), false, s->len, point, s->points[i].window, NULL);

	assert_non_null(stream);
	assert_int_equal(point->checksum, checksum_at(s, point->off));
	assert_memory_equal(s->points[i].window, s->contents + point->off - STREAM_WINDOW,
			    STREAM_WINDOW);
	assert_true(stream_read(stream, to, len / 2, NULL));
	assert_int_equal(stream_checksum(stream), checksum_at(s, point->off + len / 2));
	assert_true(stream_read(stream, to + len / 2, len - len / 2, NULL));
	assert_memory_equal(to, s->contents + point->off, len);
	stream_close(stream);
}

static void test_points(void **state)
{
	size_t count = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= 4; seed++) {
		struct sample s;
		uint8_t *to;

		sample_make(&s, seed);
		to = arena_alloc(&s.arena, s.len, 1);
		points_collect(&s, to);
		for (size_t i = 0; i < s.point_count; i++)
			reads_from(&s, i, to);
		count += s.point_count;
		arena_free(&s.arena);
	}
	assert_in_range(count, 20, 4 * POINTS_MAX);
}

/* Whether reading from a point gives other contents than there are, and neither an error nor the checksum
 * tells. */
static bool lies(const struct sample *s, const struct stream_point *point,
		 const uint8_t *window, uint64_t off, uint8_t *to)
{
	uint64_t len = (s->len - off) / 2;
	struct stream *stream = stream_open_at(packed(s), false, s->len, point, window, NULL);
	bool good = stream_read(stream, to, len, NULL) &&
		    stream_checksum(stream) == checksum_at(s, off + len);

	stream_close(stream);
	return good && memcmp(to, s->contents + off, len) != 0;
}

static void test_lying_points(void **state)
{
	struct sample s;
	uint8_t *to;

	(void)state;
	sample_make(&s, 5);
	to = arena_alloc(&s.arena, s.len, 1);
	points_collect(&s, to);
	assert_in_range(s.point_count, 2, POINTS_MAX);
	for (size_t i = 0; i + 1 < s.point_count; i++) {
		struct stream_point point = s.points[i].at;
		uint64_t off = point.off;

		assert_false(lies(&s, &point, s.points[i + 1].window, off, to));
		for (int bit = -9; bit <= 9; bit++) {
			point.bit = s.points[i].at.bit + (uint64_t)bit;
			assert_false(lies(&s, &point, s.points[i].window, off, to));
		}
		point.bit = UINT64_MAX;
		assert_false(lies(&s, &point, s.points[i].window, off, to));
		point = s.points[i + 1].at;
		point.off = off;
		assert_false(lies(&s, &point, s.points[i + 1].window, off, to));
	}
	arena_free(&s.arena);
}

/* Whoever wants no points, and zstd, has none. */
static void test_no_points(void **state)
{
	struct stream_point point;
	const uint8_t *window;
	struct sample s;
	uint8_t *to;

	(void)state;
	sample_make(&s, 6);
	to = arena_alloc(&s.arena, s.len, 1);
	struct stream *stream = stream_open(STREAM_ZLIB, packed(&s), false, s.len, NULL);

	assert_true(stream_read(stream, to, s.len, NULL));
	assert_false(stream_marked(stream, &point, &window));
	stream_close(stream);
	stream = stream_open(STREAM_ZSTD, packed(&s), false, s.len, NULL);
	stream_mark(stream);
	assert_false(stream_marked(stream, &point, &window));
	assert_int_equal(stream_checksum(stream), 0);
	stream_close(stream);
	arena_free(&s.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_lying_points),
		cmocka_unit_test(test_no_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
