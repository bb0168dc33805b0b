#include "unwind/elision.h"

#include <string.h>

enum { FIRST_CAPACITY = 128 };

void elision_begin(struct elision *elision, struct arena *arena, size_t kept)
{
	*elision = (struct elision){.arena = arena, .kept = kept < 2 ? 2 : kept};
}

void elision_grow(struct elision *elision)
{
	size_t capacity = elision->capacity ? 2 * elision->capacity : FIRST_CAPACITY;
	struct frame *room;

	if (capacity > elision->kept)
		capacity = elision->kept;
	room = arena_array(elision->arena, struct frame, capacity);
	if (elision->capacity)
		memcpy(room, elision->room, elision->capacity * sizeof *room);
	elision->room = room;
	elision->capacity = capacity;
}

void elision_finish(struct elision *elision, struct stack *stack)
{
	bool deep = elision->total > elision->kept;
	size_t half = elision->kept / 2;

	stack->count = deep ? elision->kept : (size_t)elision->total;
	stack->elided = elision->total - stack->count;
	stack->elided_at = deep ? half : 0;
	stack->frames = arena_array(elision->arena, struct frame, stack->count);
	for (size_t i = 0; i < stack->count; i++) {
		uint64_t number = deep && i >= half ? i + stack->elided : i;

		stack->frames[i] = elision->room[elision_place(elision, number)];
	}
	elision->total = 0;
}
