/*
 * dwarf/fetch: compressed sections, decompressed side by side: .debug_info as far as it is needed
 * (dwarf/sparse) by a thread of its own, the others by the caller's. Nothing to do where
 * .debug_info is not compressed.
 */
#ifndef STACKER_DWARF_FETCH_H
#define STACKER_DWARF_FETCH_H

#include "dwarf/claims.h"

/* The units that claim addresses, and if there are addresses that none claims, the roots of all. */
void fetch_claimed(struct claims *claims);

/* The roots of all units, for claims_by_units. */
void fetch_roots(struct sections *sections);

#endif
