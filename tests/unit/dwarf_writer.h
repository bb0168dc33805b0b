/*
 * Debug sections written by hand, for tests: bytes in the order the format has them.
 */
#ifndef STACKER_TEST_DWARF_WRITER_H
#define STACKER_TEST_DWARF_WRITER_H

#include "base/arena.h"
#include "base/bytes.h"
#include "dwarf/form.h"

struct writer {
	struct arena *arena;
	struct encoding encoding;
	VEC(uint8_t) out;
};

struct writer writer_begin(struct arena *arena, uint16_t version, uint8_t offset_size);
struct bytes writer_bytes(const struct writer *w);

void put_bytes(struct writer *w, const void *at, size_t len);
void put_u8(struct writer *w, uint64_t value);
void put_u16(struct writer *w, uint64_t value);
void put_u32(struct writer *w, uint64_t value);
void put_u64(struct writer *w, uint64_t value);
void put_uleb(struct writer *w, uint64_t value);
void put_sleb(struct writer *w, int64_t value);
void put_string(struct writer *w, const char *text);
/* 4 or 8 bytes, as the encoding says. */
void put_offset(struct writer *w, uint64_t value);
void put_address(struct writer *w, uint64_t value);

/* A length that counts from behind it to where length_end is called. */
size_t length_begin(struct writer *w);
void length_end(struct writer *w, size_t begin);
/* The same without the escape of 64-bit DWARF, as header_length is. */
size_t plain_length_begin(struct writer *w);
void plain_length_end(struct writer *w, size_t begin);

/* An abbreviation: its (attribute, form) pairs follow as varargs, ended by 0. DW_FORM_implicit_const
 * has its value after it. */
void put_abbrev(struct writer *w, unsigned code, unsigned tag, int children, ...);

/* A unit's header up to its root entry, for units without an id. */
size_t unit_begin(struct writer *w, uint64_t abbrev_off);
void unit_end(struct writer *w, size_t begin);

#endif
