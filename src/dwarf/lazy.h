/*
 * dwarf/lazy: a compressed section of which those pieces are decompressed that are asked for, with the
 * help of points (dwarf/points) that an earlier run has learned.
 *
 * Contents stand at their place in a stretch of memory as large as the section, so that offsets and
 * pointers are those of the whole; what was not asked for is zeros there. A piece that does not have the
 * checksum it had shows that the points are of another file: then the section is decompressed from
 * its beginning, as if there were none. So they cost time at worst.
 */
#ifndef STACKER_DWARF_LAZY_H
#define STACKER_DWARF_LAZY_H

#include "dwarf/points.h"

struct lazy;

/* `room`: for all of its contents. NULL: no points are known. */
struct lazy *lazy_open(struct arena *arena, struct points *points, enum section_id id,
		       const struct packed *packed, uint8_t *room);

/* Contents [off, off + len), as far as the section reaches, are needed. Any thread may ask. False for
 * damage. */
bool lazy_need(struct lazy *lazy, uint64_t off, uint64_t len, struct err *e);

/* How far it can be had without reading all of it: a unit that begins below ends there at the latest. */
uint64_t lazy_end(const struct lazy *lazy);

#endif
