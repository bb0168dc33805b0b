/*
 * process/map_modules: which mappings show one file, and so are one module. Pure.
 */
#ifndef STACKER_PROCESS_MAP_MODULES_H
#define STACKER_PROCESS_MAP_MODULES_H

#include "snapshot/snapshot.h"

struct map_modules {
	const struct map **firsts; /* per module: its first mapping that begins one */
	size_t count;
};

/* Sets `module` of all maps (-1: of none). Modules are numbered by where they begin. O(n log n). */
struct map_modules maps_group(struct arena *arena, struct map *maps, size_t count);

/* The vDSO is a module without a file. */
bool map_is_vdso(const struct map *map);

#endif
