/*
 * process/needed: which modules the frames of a capture will ask for. Pure.
 */
#ifndef STACKER_PROCESS_NEEDED_H
#define STACKER_PROCESS_NEEDED_H

#include "snapshot/snapshot.h"

/* The numbers of all modules, the most needed first: by how many program counters and words of
 * the captured stacks point into their code. A word that does may be a return address; a module
 * that none points into is in no frame. `*needed`: so many are pointed into at all. */
uint32_t *modules_by_need(struct arena *arena, const struct snapshot *snapshot, size_t *needed);

#endif
