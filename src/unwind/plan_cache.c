#include "unwind/plan_cache.h"

enum { FIRST_SHIFT = 64 - 10 };

static void set_size(struct plan_cache *cache, struct arena *arena, unsigned shift)
{
	cache->shift = shift;
	cache->slot_count = (size_t)1 << (64 - shift);
	cache->slots = arena_array(arena, struct plan, cache->slot_count);
}

void plan_cache_begin(struct plan_cache *cache, struct arena *arena)
{
	cache->used = 0;
	set_size(cache, arena, FIRST_SHIFT);
}

/* The slot of this pc, or the free one where it belongs. */
static struct plan *slot_for(const struct plan_cache *cache, struct pc pc)
{
	size_t i = plan_cache_slot(cache, pc.va);

	while (cache->slots[i].kind != PLAN_EMPTY &&
	       (cache->slots[i].pc.va != pc.va || cache->slots[i].pc.kind != pc.kind))
		i = (i + 1) & (cache->slot_count - 1);
	return &cache->slots[i];
}

/* Twice the size. The old slots stay in the arena: as much again at most. */
static void grow(struct plan_cache *cache, struct arena *arena)
{
	struct plan_cache old = *cache;

	set_size(cache, arena, old.shift - 1);
	for (size_t i = 0; i < old.slot_count; i++)
		if (old.slots[i].kind != PLAN_EMPTY)
			*slot_for(cache, old.slots[i].pc) = old.slots[i];
}

const struct plan *plan_cached_slow(struct plan_cache *cache, const struct planner *planner,
				    struct pc pc)
{
	struct plan *slot = slot_for(cache, pc);

	if (slot->kind != PLAN_EMPTY)
		return slot;
	if (cache->used >= cache->slot_count / 2) {
		grow(cache, planner->arena);
		slot = slot_for(cache, pc);
	}
	plan_make(planner, pc, slot);
	cache->used++;
	return slot;
}
