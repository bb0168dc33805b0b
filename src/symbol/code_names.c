#include "symbol/code_names.h"

#include <stdlib.h>

#include "base/search.h"
#include "symbol/perfmap.h"

typedef VEC(uint64_t) addresses;

static void addresses_of(const struct stack *stack, struct arena *arena,
			 const struct modules *modules, addresses *out)
{
	for (size_t i = 0; i < stack->count; i++) {
		uint64_t va = pc_lookup(stack->frames[i].pc);

		if (!module_range_at(modules, va))
			*vec_push(arena, out) = va;
	}
}

void code_names_record(struct snapshot *snapshot, struct arena *arena,
		       const struct modules *modules, struct bytes perf_map)
{
	VEC(struct code_name) names = {0};
	struct perfmap_place place;
	addresses wanted = {0};
	struct perfmap *map;

	if (perf_map.len == 0 && !snapshot->code_names_left_out)
		return;
	for (size_t i = 0; i < snapshot->thread_count; i++)
		addresses_of(&snapshot->threads[i].stack, arena, modules, &wanted);
	if (wanted.count == 0)
		snapshot->code_names_left_out = NULL;
	if (wanted.count == 0 || perf_map.len == 0)
		return;
	qsort(wanted.at, wanted.count, sizeof wanted.at[0], compare_u64);
	map = perfmap_parse(arena, perf_map);
	for (size_t i = 0; i < wanted.count; i++)
		if ((i == 0 || wanted.at[i] != wanted.at[i - 1]) &&
		    perfmap_find(map, wanted.at[i], &place))
			*vec_push(arena, &names) = (struct code_name){
				.va = wanted.at[i],
				.start = place.va,
				.function = place.function,
			};
	if (perfmap_is_cut(map))
		snapshot->code_names_left_out =
			"its perf map has more lines than there is room for (--max-memory)";
	snapshot->code_names = names.at;
	snapshot->code_name_count = names.count;
}
