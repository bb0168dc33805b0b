/*
 * snapshot/capture_split: finds the items of the top-level array `threads` in the text of a
 * capture, so that each can be parsed and given back on its own. The tree of a whole capture of
 * 10,000 threads takes 120 MB and most of the reading time goes into fetching that memory.
 *
 * It matches quotes and brackets and judges nothing: every stretch it cuts out, and what is left
 * of the document with an empty array in their place, is parsed by json-c.
 */
#ifndef STACKER_SNAPSHOT_CAPTURE_SPLIT_H
#define STACKER_SNAPSHOT_CAPTURE_SPLIT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/bytes.h"

struct capture_split {
	struct bytes before, after; /* of the array, brackets not included in either */
	VEC(struct bytes) threads;
};

/* False when there is no such array or the brackets do not match. */
bool capture_split(struct arena *arena, struct bytes text, struct capture_split *out);

#endif
