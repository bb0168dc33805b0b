#include "process/threads.h"

#include "process/ready.h"

/* Threads that may be new; as many again as are known there is room for. */
#define NEW_EXPECTED 64

static uint32_t *slot_of(const struct thread_table *table, uint32_t tid)
{
	size_t at = tid * UINT32_C(2654435761);

	for (;; at++) {
		uint32_t *slot = &table->slots[at & (table->slot_count - 1)];

		if (*slot == 0 || table->threads[*slot - 1].tid == tid)
			return slot;
	}
}

size_t thread_index(const struct thread_table *table, uint32_t tid)
{
	uint32_t slot = *slot_of(table, tid);

	return slot ? slot - 1 : table->count;
}

bool thread_add(struct thread_table *table, uint32_t tid)
{
	uint32_t *slot = slot_of(table, tid);

	if (*slot)
		return false;
	if (table->count == table->capacity) {
		table->overflow = true;
		return false;
	}
	table->threads[table->count] = (struct held_thread){.tid = tid, .call = {.number = -1}};
	*slot = (uint32_t)table->count + 1;
	__atomic_store_n(&table->count, table->count + 1, __ATOMIC_RELEASE);
	return true;
}

void thread_table_prepare(struct thread_table *table, struct arena *arena, const uint32_t *tids,
			  size_t count)
{
	*table = (struct thread_table){.capacity = count * 2 + NEW_EXPECTED, .slot_count = 256};
	while (table->slot_count < table->capacity * 2)
		table->slot_count *= 2;
	table->threads = arena_array(arena, struct held_thread, table->capacity);
	table->owners = arena_array(arena, struct stack_owner, table->capacity);
	table->slots = arena_array(arena, uint32_t, table->slot_count);
	memory_ready(table->threads, (count + NEW_EXPECTED) * sizeof table->threads[0]);
	memory_ready(table->owners, (count + NEW_EXPECTED) * sizeof table->owners[0]);
	memory_ready(table->slots, table->slot_count * sizeof table->slots[0]);
	for (size_t i = 0; i < count; i++)
		thread_add(table, tids[i]);
}
