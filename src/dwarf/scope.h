/*
 * dwarf/scope: the namespaces and classes that an entry stands in, as C++ writes them.
 *
 * A function without a linkage name (a lambda's operator(), what is private to its file) has but
 * a short name of its own; what it belongs to is only told by where its entry stands.
 */
#ifndef STACKER_DWARF_SCOPE_H
#define STACKER_DWARF_SCOPE_H

#include "dwarf/unit.h"

/* "shop::Box::wait" for the entry at `off` that is called `name`; a class that is local to a
 * function begins the chain. NULL: nothing to add, another language, damaged, nested too deep, or
 * more work than is left for this. In the arena of the unit's dwarf. */
const char *scope_qualified(struct unit *unit, uint64_t off, uint16_t language,
			    const char *name);

#endif
