/*
 * dwarf/split: split units: what a skeleton left in a .dwo file or a .dwp package (DWARF 5, 7.3.2
 * and 7.3.5; before version 5 the GNU extension "Fission" with its package format version 2).
 */
#ifndef STACKER_DWARF_SPLIT_H
#define STACKER_DWARF_SPLIT_H

#include "dwarf/unit.h"

/* The full unit of a skeleton, looked for once. NULL when `unit` is no skeleton, or when neither
 * the package nor the .dwo can be had (which is noted): the skeleton's lines remain. */
struct unit *split_unit(struct unit *unit);

/* The contributions of a unit by its id in .debug_cu_index, into `out[SECTION_COUNT]`. */
bool package_find(struct bytes index, uint64_t id, struct contribution *out);

#endif
