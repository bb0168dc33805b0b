/*
 * snapshot/capture_modules: the modules of a capture that lists none, made from its memory maps.
 */
#ifndef STACKER_SNAPSHOT_CAPTURE_MODULES_H
#define STACKER_SNAPSHOT_CAPTURE_MODULES_H

#include "snapshot/snapshot.h"

/* One module for each run of mappings of one file of which at least one is executable; load bias
 * and build-id stay unknown. Fills modules and module_count, and `module` of the maps. */
void modules_from_maps(struct arena *arena, struct snapshot *snapshot);

#endif
