/*
 * dwarf/form: values as they are stored (DWARF 5, 7.5.4 to 7.5.6), without their meaning: strings
 * and addresses that are indexes or offsets are resolved by the unit (unit_string, unit_address).
 */
#ifndef STACKER_DWARF_FORM_H
#define STACKER_DWARF_FORM_H

#include "base/bytes.h"
#include "dwarf/constants.h"

/* What decides the size of values. */
struct encoding {
	uint16_t version;
	uint8_t address_size; /* 4 or 8 */
	uint8_t offset_size;  /* 4: 32-bit DWARF, 8: 64-bit */
};

enum layout {
	LAYOUT_UNKNOWN,
	LAYOUT_FIXED,
	LAYOUT_ADDRESS,
	LAYOUT_OFFSET,
	LAYOUT_REFERENCE,
	LAYOUT_ULEB,
	LAYOUT_SLEB,
	LAYOUT_STRING,
	LAYOUT_BLOCK1,
	LAYOUT_BLOCK2,
	LAYOUT_BLOCK4,
	LAYOUT_BLOCKU,
	LAYOUT_IMPLICIT,
	LAYOUT_INDIRECT,
};

struct form_layout {
	enum layout layout;
	uint8_t size; /* of LAYOUT_FIXED */
};

struct form_value {
	uint32_t form; /* 0: there is no such attribute */
	uint64_t u; /* integers, offsets, indexes, addresses; signed ones in two's complement */
	struct bytes block; /* blocks, data16; a string in place, without its NUL */
};

struct form_layout form_layout(uint64_t form);

/* Bytes of a value whose size does not depend on its contents, else -1. */
int form_fixed_size(struct form_layout layout, struct encoding encoding);

/* Reads one value. `implicit` is the abbreviation's constant. An unknown form fails the reader:
 * nothing after it can be found. */
void form_read(struct reader *r, struct encoding encoding, uint64_t form, int64_t implicit,
	       struct form_value *out);

/* Reads the beginning of a unit, line program or address table: its length, and so whether it is
 * 32- or 64-bit DWARF (7.4). Limits the reader to that length, or to what is there when the length
 * says more. False when there is not even a length, or a reserved one. */
bool unit_length_read(struct reader *r, uint8_t *offset_size);

static inline uint64_t read_offset(struct reader *r, struct encoding encoding)
{
	return encoding.offset_size == 8 ? read_u64(r) : read_u32(r);
}

static inline uint64_t read_address(struct reader *r, struct encoding encoding)
{
	return encoding.address_size == 8 ? read_u64(r) : read_u32(r);
}

#endif
