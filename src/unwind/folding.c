#include "unwind/folding.h"

#include <string.h>

enum { FIRST_CAPACITY = 128 };

void folding_begin(struct folding *folding, struct arena *arena, size_t kept)
{
	*folding = (struct folding){.arena = arena, .kept = kept < 2 ? 2 : kept};
}

void folding_grow(struct folding *folding)
{
	size_t capacity = folding->capacity ? 2 * folding->capacity : FIRST_CAPACITY;
	struct frame *room;

	if (capacity > folding->kept)
		capacity = folding->kept;
	room = arena_array(folding->arena, struct frame, capacity);
	if (folding->capacity)
		memcpy(room, folding->room, folding->capacity * sizeof *room);
	folding->room = room;
	folding->capacity = capacity;
}

void folding_finish(struct folding *folding, struct stack *stack)
{
	bool deep = folding->total > folding->kept;
	size_t half = folding->kept / 2;

	stack->count = deep ? folding->kept : (size_t)folding->total;
	stack->folded = folding->total - stack->count;
	stack->fold_at = deep ? half : 0;
	stack->frames = arena_array(folding->arena, struct frame, stack->count);
	for (size_t i = 0; i < stack->count; i++) {
		uint64_t number = deep && i >= half ? i + stack->folded : i;

		stack->frames[i] = folding->room[folding_place(folding, number)];
	}
	folding->total = 0;
}
