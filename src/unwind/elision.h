/*
 * unwind/elision: the frames of a stack as they are found, both ends kept of one that is too deep.
 *
 * The first half of the room is filled once; the second half is a ring that always holds the last
 * frames. The room grows to what the deepest stack needs and is used for all stacks.
 */
#ifndef STACKER_UNWIND_ELISION_H
#define STACKER_UNWIND_ELISION_H

#include "snapshot/snapshot.h"

struct elision {
	struct arena *arena;
	size_t kept; /* the most frames to keep; at least 2 */
	struct frame *room;
	size_t capacity;
	uint64_t total; /* frames of the stack so far */
};

void elision_begin(struct elision *elision, struct arena *arena, size_t kept);

void elision_grow(struct elision *elision);

/* The place in the room of the frame with this number. */
static inline size_t elision_place(const struct elision *elision, uint64_t number)
{
	size_t half = elision->kept / 2;

	if (number < elision->kept)
		return (size_t)number;
	return half + (size_t)((number - half) % (elision->kept - half));
}

static inline void elision_add(struct elision *elision, struct frame frame)
{
	size_t place = elision_place(elision, elision->total++);

	if (place >= elision->capacity)
		elision_grow(elision);
	elision->room[place] = frame;
}

/* Moves the frames into a stack of their own and begins anew. */
void elision_finish(struct elision *elision, struct stack *stack);

#endif
