/*
 * base/bytes: a stretch of bytes somebody else wrote, and a reader over it that cannot run off.
 *
 * The reader fails stickily: the first read past the end is remembered, gives zeros and moves the
 * reader to its end, so that loops over `reader_more` stop and code can read like the format it
 * reads and check once per record. All integers are little-endian, as on both architectures
 * (elf_open refuses big-endian files). Only this room turns file bytes into integers.
 */
#ifndef STACKER_BASE_BYTES_H
#define STACKER_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct bytes {
	const uint8_t *at; /* NULL only when len is 0 */
	size_t len;
};

/* The part [off, off + len), or an empty one when it does not lie wholly inside. */
struct bytes bytes_part(struct bytes bytes, uint64_t off, uint64_t len);
/* The part [off, end of bytes); empty when off lies outside. */
struct bytes bytes_from(struct bytes bytes, uint64_t off);
/* The NUL-terminated string at off, or NULL when off or its end lies outside. */
const char *bytes_string(struct bytes bytes, uint64_t off);
/* A string table up to its last NUL: every offset in what is left begins a string. Tables are asked
 * for many strings, and looking for the end of each (bytes_string) would cost the whole table each
 * time where there is no NUL. */
struct bytes bytes_strings(struct bytes table);
/* The string at `off` of such a table; "" when out of bounds. */
static inline const char *strings_at(struct bytes strings, uint64_t off)
{
	return off < strings.len ? (const char *)strings.at + off : "";
}
bool bytes_equal(struct bytes a, struct bytes b);

struct reader {
	const uint8_t *begin, *at, *end;
	const uint8_t
		*failed; /* where the first read past the end began; NULL while all is well */
};

static inline struct reader reader_over(struct bytes bytes)
{
	/* A place in nothing is a place too: `failed` could not remember NULL. */
	const uint8_t *at = bytes.at ? bytes.at : (const uint8_t *)"";

	return (struct reader){at, at, at + bytes.len, NULL};
}

static inline struct reader reader_at(struct bytes bytes, uint64_t off)
{
	struct reader r = reader_over(bytes);

	if (off > bytes.len)
		r.failed = r.at = r.end;
	else
		r.at += off;
	return r;
}

static inline void reader_fail(struct reader *r)
{
	if (!r->failed)
		r->failed = r->at;
	r->at = r->end;
}

static inline size_t reader_left(const struct reader *r)
{
	return (size_t)(r->end - r->at);
}

static inline bool reader_more(const struct reader *r)
{
	return r->at < r->end;
}

static inline bool reader_failed(const struct reader *r)
{
	return r->failed != NULL;
}

/* Offset from the beginning of the bytes; after a failure: where it happened. */
static inline size_t reader_offset(const struct reader *r)
{
	return (size_t)((r->failed ? r->failed : r->at) - r->begin);
}

/* True while nothing failed; else "WHAT: truncated at offset 0xN". */
bool reader_ok(const struct reader *r, const char *what, struct err *e);

/* Ends the reader `len` bytes from here; fails when there are fewer. */
void reader_limit(struct reader *r, uint64_t len);

static inline bool reader_has(struct reader *r, uint64_t len)
{
	if (len <= reader_left(r))
		return true;
	reader_fail(r);
	return false;
}

static inline void reader_skip(struct reader *r, uint64_t len)
{
	if (reader_has(r, len))
		r->at += len;
}

static inline struct bytes read_block(struct reader *r, uint64_t len)
{
	struct bytes block = {NULL, 0};

	if (reader_has(r, len)) {
		block = (struct bytes){r->at, len};
		r->at += len;
	}
	return block;
}

#define READ_FIXED(name, type)                               \
	static inline type name(struct reader *r)            \
	{                                                    \
		type value = 0;                              \
                                                             \
		if (reader_has(r, sizeof value)) {           \
			memcpy(&value, r->at, sizeof value); \
			r->at += sizeof value;               \
		}                                            \
		return value;                                \
	}
READ_FIXED(read_u8, uint8_t)
READ_FIXED(read_u16, uint16_t)
READ_FIXED(read_u32, uint32_t)
READ_FIXED(read_u64, uint64_t)
#undef READ_FIXED

/* An unsigned integer of 1 to 8 bytes, zero-extended; any other size fails the reader. */
uint64_t read_uint(struct reader *r, unsigned size);
/* The same, sign-extended. */
int64_t read_sint(struct reader *r, unsigned size);

uint64_t read_uleb_long(struct reader *r);
/* ULEB128; one whose value does not fit in 64 bits or that has no end fails the reader. */
static inline uint64_t read_uleb(struct reader *r)
{
	struct reader copy;
	uint64_t value;

	if (r->at < r->end && *r->at < 0x80)
		return *r->at++;
	/* By a copy, so that the caller's reader has its address given away to nobody: a local one
	 * can then live in registers. */
	copy = *r;
	value = read_uleb_long(&copy);
	*r = copy;
	return value;
}

int64_t read_sleb_long(struct reader *r);
static inline int64_t read_sleb(struct reader *r)
{
	struct reader copy;
	int64_t value;

	if (r->at < r->end && *r->at < 0x80)
		return (int64_t)((uint64_t)*r->at++ << 57) >> 57;
	copy = *r;
	value = read_sleb_long(&copy);
	*r = copy;
	return value;
}
/* A NUL-terminated string in place; "" after failure, never NULL. */
const char *read_string(struct reader *r);

#endif
