/*
 * unwind/plan_cache: the plans of all pcs that were met, by pc. Its size is that of what is distinct.
 */
#ifndef STACKER_UNWIND_PLAN_CACHE_H
#define STACKER_UNWIND_PLAN_CACHE_H

#include "unwind/plan.h"

struct plan_cache {
	struct plan *slots; /* open addressing; a power of two */
	size_t slot_count, used;
	unsigned shift; /* 64 - log2(slot_count) */
};

/* Never NULL: what is not there yet is made. Valid until the next call. */
const struct plan *plan_cached_slow(struct plan_cache *cache, const struct planner *planner,
				    struct pc pc);

static inline size_t plan_cache_slot(const struct plan_cache *cache, uint64_t va)
{
	/* Fibonacci hashing: the high bits of the product depend on all bits of the pc. */
	return (size_t)(va * UINT64_C(0x9e3779b97f4a7c15) >> cache->shift);
}

static inline const struct plan *plan_cached(struct plan_cache *cache,
					     const struct planner *planner, struct pc pc)
{
	const struct plan *plan = &cache->slots[plan_cache_slot(cache, pc.va)];

	if (plan->pc.va == pc.va && plan->pc.kind == pc.kind && plan->kind != PLAN_EMPTY)
		return plan;
	return plan_cached_slow(cache, planner, pc);
}

void plan_cache_begin(struct plan_cache *cache, struct arena *arena);

#endif
