/*
 * dwarf/claims: which units say that an address is theirs.
 *
 * .debug_aranges (DWARF 5, 6.1.2) tells without touching .debug_info, but producers leave units out
 * of it, or leave it out. So what it does not know is looked for in the ranges of all units' root
 * entries; and units that give no range at all are kept as `vague`: their lines will tell.
 * Several units may claim an address.
 */
#ifndef STACKER_DWARF_CLAIMS_H
#define STACKER_DWARF_CLAIMS_H

#include "dwarf/hits.h"
#include "dwarf/unit.h"

struct claim {
	uint64_t unit_off;
	size_t hit; /* index into the addresses asked */
};

struct claims {
	struct sections *sections;
	const struct hits *asked;
	struct arena *arena;
	VEC(struct claim) list;
	VEC(uint64_t) vague; /* offsets of units */
	uint8_t *counts;     /* claims for each address, up to a limit */
};

struct claims claims_begin(struct sections *sections, const struct hits *asked,
			   struct arena *arena);
void claims_by_aranges(struct claims *claims);
void claims_by_units(struct claims *claims);
/* By unit, then by address, each claim once. */
void claims_sort(struct claims *claims);

#endif
