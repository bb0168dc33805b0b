/*
 * dwarf/names: what a function is called.
 *
 * A concrete or inlined instance has no name of its own: its abstract origin has, or the
 * declaration which that one completes (DW_AT_specification). Both may lie in another unit (link-
 * time optimization) or in the dwz file.
 */
#ifndef STACKER_DWARF_NAMES_H
#define STACKER_DWARF_NAMES_H

#include "dwarf/unit.h"

struct function_name {
	const char *linkage; /* NULL: none */
	const char *name;
	const char *qualified; /* where `linkage` is NULL: see dwarf/scope; or NULL */
	uint16_t language;     /* DW_LANG_* of the unit the name stands in; 0: not known */
};

/* The first linkage name and the first name on the way from the entry at `off`. */
struct function_name function_name(struct unit *unit, uint64_t off);

#endif
