#include "base/budget.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/file.h"

#define MEMINFO_SIZE_MAX ((size_t)64 << 10)
#define GROWN_FIRST 16 /* vec_grown's */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t memory_left, memory_held, work_left;
static atomic_bool refused;

/* UINT64_MAX where /proc/meminfo does not say. */
static uint64_t machine_available(struct arena *arena)
{
	static const char word[] = "MemAvailable:";
	struct bytes text;
	const char *at = NULL;

	if (file_read_all(arena, AT_FDCWD, "/proc/meminfo", MEMINFO_SIZE_MAX, &text, NULL))
		at = strstr((const char *)text.at, word);
	return at ? (uint64_t)strtoull(at + sizeof word - 1, NULL, 10) << 10 : UINT64_MAX;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void set(uint64_t memory)
{
	uint64_t work;

	if (__builtin_mul_overflow(memory, BUDGET_WORK_PER_BYTE, &work))
		work = UINT64_MAX;
	memory_left = memory;
	memory_held = 0;
	work_left = work;
	refused = false;
}

static void set_by_machine(uint64_t wanted)
{
	struct arena scratch = {0};
	uint64_t room = lower(machine_available(&scratch), cgroup_memory_left(&scratch));

	arena_free(&scratch);
	set(lower(wanted ? wanted : BUDGET_MEMORY, room / 2));
}

static void set_first(void)
{
	set_by_machine(0);
}

static void nothing(void)
{
}

void budget_allow(uint64_t memory)
{
	pthread_once(&once, nothing);
	set(memory);
}

void budget_begin(uint64_t memory)
{
	pthread_once(&once, nothing);
	set_by_machine(memory);
}

static bool draw(_Atomic uint64_t *from, uint64_t amount)
{
	uint64_t left = atomic_load(from);

	do
		if (left < amount)
			return false;
	while (!atomic_compare_exchange_weak(from, &left, left - amount));
	return true;
}

bool budget_take(uint64_t bytes)
{
	pthread_once(&once, set_first);
	if (!draw(&memory_left, bytes)) {
		refused = true;
		return false;
	}
	memory_held += bytes;
	return true;
}

void budget_give_back(uint64_t bytes)
{
	memory_held -= bytes;
	memory_left += bytes;
}

uint64_t budget_held(void)
{
	return memory_held;
}

uint64_t budget_left(void)
{
	pthread_once(&once, set_first);
	return memory_left;
}

bool budget_has_room(size_t count, size_t capacity, size_t size)
{
	return count < capacity || budget_take((capacity ? 2 * capacity : GROWN_FIRST) * size);
}

bool budget_work(uint64_t amount)
{
	pthread_once(&once, set_first);
	if (draw(&work_left, amount))
		return true;
	work_left = 0;
	refused = true;
	return false;
}

uint64_t budget_work_left(void)
{
	pthread_once(&once, set_first);
	return work_left;
}

void budget_refuse(void)
{
	refused = true;
}

bool budget_refused(void)
{
	return refused;
}
