/*
 * unwind/cache: the plans of all pcs that were met, by pc. Its size is that of what is distinct.
 */
#ifndef STACKER_UNWIND_CACHE_H
#define STACKER_UNWIND_CACHE_H

#include "unwind/plan.h"

struct cache {
	struct plan *slots; /* open addressing; a power of two */
	size_t slot_count, used;
	unsigned shift; /* 64 - log2(slot_count) */
};

/* Never NULL: what is not there yet is made. Valid until the next call. */
const struct plan *cache_plan_slow(struct cache *cache, const struct planner *planner,
				   struct pc pc);

static inline size_t cache_slot(const struct cache *cache, uint64_t va)
{
	/* Fibonacci hashing: the high bits of the product depend on all bits of the pc. */
	return (size_t)(va * UINT64_C(0x9e3779b97f4a7c15) >> cache->shift);
}

static inline const struct plan *cache_plan(struct cache *cache, const struct planner *planner,
					    struct pc pc)
{
	const struct plan *plan = &cache->slots[cache_slot(cache, pc.va)];

	if (plan->pc.va == pc.va && plan->pc.kind == pc.kind && plan->kind != PLAN_EMPTY)
		return plan;
	return cache_plan_slow(cache, planner, pc);
}

void cache_begin(struct cache *cache, struct arena *arena);

#endif
