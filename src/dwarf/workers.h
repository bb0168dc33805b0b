/*
 * dwarf/workers: units are answered independently of each other, so several threads can do it.
 *
 * Each worker has a `struct dwarf` of its own, which shares the loaded sections (nobody writes to
 * them) and nothing else; what it allocates is handed over at the end. Units in split files are
 * left to the caller's thread: their files are opened by functions that are not ours.
 */
#ifndef STACKER_DWARF_WORKERS_H
#define STACKER_DWARF_WORKERS_H

#include "dwarf/answer.h"
#include "dwarf/claims.h"

/* Each unit answers all that it claims at once. */
void claims_answer(struct lookup *lookup, struct claims *claims);

#endif
