/*
 * Every word of a stack may be a return address, so every word counts. A program counter counts for
 * more: its frame is there for certain.
 */
#include "process/needed.h"

#include <stdlib.h>
#include <string.h>

#define PC_WEIGHT 1000

struct need {
	uint64_t weight;
	uint32_t module;
};

static void count(const struct snapshot *snapshot, struct need *needs, uint64_t va,
		  uint64_t weight)
{
	const struct map *map = snapshot_map_at(snapshot, va);

	if (map && map->module >= 0 && MAP_EXECUTABLE(map))
		needs[map->module].weight += weight;
}

static void count_words(const struct snapshot *snapshot, struct need *needs,
			const struct memory_piece *piece)
{
	for (size_t off = 0; off + sizeof(uint64_t) <= piece->bytes.len;
	     off += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, piece->bytes.at + off, sizeof word);
		count(snapshot, needs, word, 1);
	}
}

static int compare(const void *left, const void *right)
{
	const struct need *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->module < b->module ? -1 : a->module > b->module;
}

uint32_t *modules_by_need(struct arena *arena, const struct snapshot *snapshot, size_t *needed)
{
	struct arena scratch = {0};
	size_t modules = snapshot->module_count;
	struct need *needs = arena_array(&scratch, struct need, modules);
	uint32_t *order = arena_array(arena, uint32_t, modules);

	for (size_t i = 0; i < modules; i++)
		needs[i].module = (uint32_t)i;
	for (size_t i = 0; i < snapshot->thread_count; i++) {
		const struct thread *thread = &snapshot->threads[i];

		if (thread->has_registers)
			count(snapshot, needs, thread->registers.at[snapshot->arch->pc_slot],
			      PC_WEIGHT);
		for (size_t k = 0; k < thread->piece_count; k++)
			count_words(snapshot, needs, &thread->pieces[k]);
	}
	if (modules)
		qsort(needs, modules, sizeof *needs, compare);
	*needed = 0;
	for (size_t i = 0; i < modules; i++) {
		order[i] = needs[i].module;
		*needed += needs[i].weight != 0;
	}
	arena_free(&scratch);
	return order;
}
