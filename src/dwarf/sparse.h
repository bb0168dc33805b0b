/*
 * dwarf/sparse: a compressed .debug_info of which only what is asked for is in memory.
 *
 * Deflate can be read from front to back only, and takes most of the time there is. So all units
 * that are wanted are fetched in one run over the section, which ends behind the last of them. What
 * is kept lands at its place in a stretch of memory as large as the section, whose untouched pages
 * cost nothing: offsets and pointers are those of the whole. Kept are the wanted units and of every
 * unit that was passed its beginning, which says what code it has.
 */
#ifndef STACKER_DWARF_SPARSE_H
#define STACKER_DWARF_SPARSE_H

#include "dwarf/sections.h"

/* How much of a unit's beginning is kept: header and root entry, unless that has long strings. */
#define SPARSE_ROOT_SIZE 1024

/* Makes sections->sparse if .debug_info is compressed and was not loaded yet. */
void sparse_open(struct sections *sections);

/* What a run is for. */
struct sparse_wish {
	const uint64_t *units; /* offsets, ascending */
	size_t count;
	bool all_roots; /* run to the end */
};

/* Decides whether the lookup that begins uses points: true when all that is wished for can be had by them,
 * unit by unit when it is needed. Not while others are reading. */
bool sparse_use_points(struct sections *sections, const struct sparse_wish *wish);

/* Fetches what is wished for and not there yet. The first time that a unit is wished for that was
 * passed already the section is run through once more, and the next time all of it is kept: who
 * asks again and again shall not wait again and again. False for damage. */
bool sparse_fetch(struct sparse *sparse, const struct sparse_wish *wish, struct err *e);

/* The same as a run by a thread of its own (sparse_run), which sparse_run_begin prepares in the caller's. Others
 * may ask sparse_need meanwhile: they wait until the run has brought the unit, or is over. What they
 * make of it is worth nothing if sparse_run then is false. */
void sparse_run_begin(struct sparse *sparse, const struct sparse_wish *wish);
bool sparse_run(struct sparse *sparse, struct err *e);
void sparse_run_wait(struct sparse *sparse);

/* The unit at `off`, or to know where all units lie, is needed now, by any thread. False for
 * damage; true also when there is no such unit. */
bool sparse_need(struct sparse *sparse, uint64_t off, struct err *e);
bool sparse_need_index(struct sparse *sparse, struct err *e);

/* Where the units lie: all of them after sparse_need_index or a wish for all_roots. */
struct sparse_extents {
	struct unit_extent *at;
	size_t count;
};
struct sparse_extents sparse_extents(const struct sparse *sparse);

/* No more is asked for the time being. What a run needs is given back, and what is known for later
 * ones moves to the arena. */
void sparse_pause(struct sparse *sparse, struct arena *arena);

#endif
