/*
 * dwarf/ranges: what code an entry has, as address ranges.
 *
 * Either low_pc and high_pc, or a list: .debug_ranges up to version 4 (DWARF 4, 2.17.3),
 * .debug_rnglists since (DWARF 5, 2.17.3 and 7.25). Addresses in lists count from a base: the
 * unit's low_pc until the list names another one.
 */
#ifndef STACKER_DWARF_RANGES_H
#define STACKER_DWARF_RANGES_H

#include "dwarf/unit.h"

struct range {
	uint64_t low, high; /* [low, high), not empty */
};

struct range_walk {
	struct unit *unit;
	enum { RANGES_END, RANGES_SINGLE, RANGES_LIST, RANGES_LIST_5 } kind;
	struct range single;
	struct reader r;
	uint64_t base;
	bool base_is_dead; /* a linker's tombstone: what counts from it is dead too */
};

/* The entry belongs to `unit`. An entry without code gives a walk that is over at once. */
struct range_walk range_walk(struct unit *unit, const struct code_attributes *code);

/* The next range; empty and reversed ones are left out. What lies in no code is not:
 * see dwarf_is_code. */
bool range_next(struct range_walk *walk, struct range *out);

#endif
