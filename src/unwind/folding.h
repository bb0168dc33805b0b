/*
 * unwind/folding: the frames of a stack as they are found, both ends kept of one that is too deep.
 *
 * The first half of the room is filled once; the second half is a ring that always holds the last
 * frames. The room grows to what the deepest stack needs and is used for all stacks.
 */
#ifndef STACKER_UNWIND_FOLDING_H
#define STACKER_UNWIND_FOLDING_H

#include "snapshot/snapshot.h"

struct folding {
	struct arena *arena;
	size_t kept; /* the most frames to keep; at least 2 */
	struct frame *room;
	size_t capacity;
	uint64_t total; /* frames of the stack so far */
};

void folding_begin(struct folding *folding, struct arena *arena, size_t kept);

void folding_grow(struct folding *folding);

/* The place in the room of the frame with this number. */
static inline size_t folding_place(const struct folding *folding, uint64_t number)
{
	size_t half = folding->kept / 2;

	if (number < folding->kept)
		return (size_t)number;
	return half + (size_t)((number - half) % (folding->kept - half));
}

static inline void folding_add(struct folding *folding, struct frame frame)
{
	size_t place = folding_place(folding, folding->total++);

	if (place >= folding->capacity)
		folding_grow(folding);
	folding->room[place] = frame;
}

/* Moves the frames into a stack of their own and begins anew. */
void folding_finish(struct folding *folding, struct stack *stack);

#endif
