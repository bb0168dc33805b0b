/*
 * symbol/perfmap: names of machine code made at run time, by the text file that the just-in-time
 * compilers of V8, .NET, LuaJIT, Java's perf-map-agent and others write for perf: one function a
 * line, "START SIZE NAME", numbers in hex (perf's tools/perf/Documentation/jit-interface.txt).
 *
 * The file only grows: where code was thrown away and its place used again, the line that was
 * written last is right. It may be written while it is read, and anybody can write anything into
 * it: lines that do not fit the form are left out.
 *
 * Addresses are the process's own (`va`). Where the file is, and in whose name space, is the
 * process room's knowledge.
 */
#ifndef STACKER_SYMBOL_PERFMAP_H
#define STACKER_SYMBOL_PERFMAP_H

#include "base/arena.h"
#include "base/bytes.h"

struct perfmap;

struct perfmap_place {
	const char *function; /* in the arena */
	uint64_t va;          /* where it begins */
};

/* `text` must outlive the map. O(n log n) in lines. */
struct perfmap *perfmap_parse(struct arena *arena, struct bytes text);

/* O(log n). */
bool perfmap_find(const struct perfmap *map, uint64_t va, struct perfmap_place *out);

/* Lines were left out, since so many are more than the run's budget has room for. */
bool perfmap_is_cut(const struct perfmap *map);

size_t perfmap_count(const struct perfmap *map);

#endif
