/*
 * symbol/code_names: names for the frames of code made at run time.
 */
#ifndef STACKER_SYMBOL_CODE_NAMES_H
#define STACKER_SYMBOL_CODE_NAMES_H

#include "module/module.h"

/* Looks every frame that lies in no module up in a perf map's text (symbol/perfmap) and records what
 * is found in snapshot->code_names, so that a capture carries it, or in
 * code_names_left_out why it is not there. */
void code_names_record(struct snapshot *snapshot, struct arena *arena,
		       const struct modules *modules, struct bytes perf_map);

#endif
