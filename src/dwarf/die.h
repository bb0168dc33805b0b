/*
 * dwarf/die: a cursor over the debugging information entries (DIEs) of one unit.
 *
 * Entries stand in preorder: an entry, then its children if it has any, then a null entry
 * (DWARF 5, 2.3 and 7.5.3). The cursor does not count levels: its user does.
 */
#ifndef STACKER_DWARF_DIE_H
#define STACKER_DWARF_DIE_H

#include "dwarf/abbrev.h"

struct unit;

struct die_cursor {
	struct dwarf *dwarf;
	const struct abbrevs *abbrevs;
	struct reader r; /* over .debug_info from its beginning to the unit's end */
	uint64_t off;    /* in .debug_info, of the entry die_next gave last */
};

/* Places the cursor at an entry of the unit. False when `off` is not inside it or its
 * abbreviations cannot be read. Valid until the unit's file trims its abbreviations. */
bool die_cursor_at(struct die_cursor *c, struct unit *unit, uint64_t off);

/* Reads the code of the next entry; *abbrev is NULL for a null entry. The cursor then stands
 * before its attributes. False at the end of the unit and where it is damaged. */
bool die_next(struct die_cursor *c, const struct abbrev **abbrev);

/* Steps over the attributes. Returns the offset of DW_AT_sibling, 0: none. `unit_off` is what
 * references count from. */
uint64_t die_skip(struct die_cursor *c, const struct abbrev *abbrev, uint64_t unit_off);

/* Steps over all children of the entry whose attributes were just skipped or read: with its
 * `sibling` in one leap, else one by one. */
void die_skip_children(struct die_cursor *c, uint64_t sibling, uint64_t unit_off);

/* A walk over the attributes of the entry the cursor stands at; at its end, the cursor stands
 * behind them. */
struct die_attributes {
	struct die_cursor *cursor;
	struct reader specs;
	struct encoding encoding;
	uint64_t name; /* DW_AT_* */
	struct form_value value;
};

struct die_attributes die_attributes(struct die_cursor *c, const struct abbrev *abbrev,
				     struct encoding encoding);
bool die_attribute_next(struct die_attributes *a);

#endif
