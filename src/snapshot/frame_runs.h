/*
 * snapshot/frame_runs: how a capture says what kind its frames are and how they were found,
 * without saying it for each frame. Neighbours that are alike form a run; the usual stack, one
 * frame from the registers and all others by call frame information, needs no runs at all.
 */
#ifndef STACKER_SNAPSHOT_FRAME_RUNS_H
#define STACKER_SNAPSHOT_FRAME_RUNS_H

#include "snapshot/snapshot.h"

/* "exact" or "return". */
const char *pc_kind_text(enum pc_kind kind);
bool pc_kind_named(const char *text, enum pc_kind *out);

/* Kind and found_by of the frame at `index` of the usual stack, without its pc. */
struct frame frame_usual(size_t index);
bool frames_are_usual(const struct stack *stack);

/* Number of frames from `at` (< count) that are of the same kind and found alike. */
size_t frame_run_length(const struct stack *stack, size_t at);

#endif
