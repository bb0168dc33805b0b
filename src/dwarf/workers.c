#include "dwarf/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "dwarf/sparse.h"

/* Beyond this, memory is the limit and not the processors. */
#define WORKERS_MAX 8
/* A thread costs about 50 microseconds, a unit 200 to 500. */
#define UNITS_PER_WORKER 8
/* And one that is decompressed first some milliseconds. */
#define LAZY_UNITS_PER_WORKER 1

/* The claims of one unit. */
struct group {
	uint64_t unit_off;
	size_t begin, end; /* in claims->list */
	bool left;         /* by the workers, for the caller's thread */
};

/* What all workers share. */
struct shop {
	struct claims *claims;
	struct group *groups;
	size_t group_count;
	atomic_size_t next; /* turn that nobody has taken */
	size_t workers;
};

struct worker {
	struct shop *shop;
	struct lookup lookup;
	struct dwarf dwarf;
	struct arena answers;
	bool waits; /* leaves the processor to a run over .debug_info, as long as that is under way */
	pthread_t thread;
	bool started;
};

static void groups_make(struct shop *shop, struct arena *arena)
{
	const struct claim *at = shop->claims->list.at;
	size_t count = shop->claims->list.count;

	shop->groups = arena_array(arena, struct group, count);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || at[i].unit_off != at[i - 1].unit_off)
			shop->groups[shop->group_count++] =
				(struct group){.unit_off = at[i].unit_off, .begin = i};
		shop->groups[shop->group_count - 1].end = i + 1;
	}
}

static void group_answer(struct lookup *lookup, const struct claims *claims,
			 const struct group *group, struct unit *unit)
{
	struct hits hits = {0};

	hits.at = arena_array(&lookup->dwarf->scratch, struct hit, group->end - group->begin);
	for (size_t i = group->begin; i < group->end; i++)
		hits.at[hits.count++] = claims->asked->at[claims->list.at[i].hit];
	unit_answer(lookup, unit, &hits, false);
}

/* Neighbours lie in the same piece of a section that is decompressed piece by piece, and who needs it while
 * another one reads it must wait. So each worker begins at a place of its own. */
static size_t group_of_turn(const struct shop *shop, size_t turn)
{
	size_t stride = shop->group_count / shop->workers, regular = stride * shop->workers;

	if (turn >= regular || !shop->claims->sections->lazy[SECTION_INFO])
		return turn;
	return turn % shop->workers * stride + turn / shop->workers;
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;
	struct shop *shop = worker->shop;
	struct sparse *sparse = shop->claims->sections->sparse;
	size_t turn;

	if (worker->waits && sparse)
		sparse_run_wait(sparse);
	while ((turn = atomic_fetch_add(&shop->next, 1)) < shop->group_count) {
		struct group *group = &shop->groups[group_of_turn(shop, turn)];
		struct unit *unit = unit_at(&worker->dwarf.main, group->unit_off);

		if (unit && unit->has_dwo_id)
			group->left = true;
		else if (unit)
			group_answer(&worker->lookup, shop->claims, group, unit);
	}
	arena_free(&worker->dwarf.scratch);
	abbrev_cache_free(&worker->dwarf.main.abbrevs);
	return NULL;
}

static void worker_start(struct worker *worker, struct shop *shop, struct lookup *lookup,
			 uint64_t work)
{
	struct dwarf *dwarf = &worker->dwarf;

	worker->shop = shop;
	worker->lookup = (struct lookup){.dwarf = dwarf};
	worker->lookup.found = arena_array(&lookup->arena, struct found, lookup->asked.count);
	*dwarf = *lookup->dwarf;
	dwarf->work_left = work;
	dwarf_scope_work_begin(dwarf);
	lookup->dwarf->work_left -= work;
	dwarf->arena = &worker->answers;
	dwarf->scratch = (struct arena){0};
	dwarf->walk = NULL;
	dwarf->main.dwarf = dwarf;
	dwarf->main.abbrevs = (struct abbrev_cache){0};
	dwarf->main.units = NULL;
	dwarf->main.unit_count = dwarf->main.unit_slots = 0;
	worker->started = pthread_create(&worker->thread, NULL, worker_run, worker) == 0;
}

static void worker_finish(struct worker *worker, struct lookup *lookup)
{
	if (!worker->started) {
		lookup->dwarf->work_left += worker->dwarf.work_left;
		return;
	}
	pthread_join(worker->thread, NULL);
	for (size_t i = 0; i < lookup->asked.count; i++)
		found_merge(&lookup->found[i], &worker->lookup.found[i]);
	if (!lookup->dwarf->problem)
		lookup->dwarf->problem = worker->dwarf.problem;
	lookup->dwarf->work_left += worker->dwarf.work_left;
	arena_take(lookup->dwarf->arena, &worker->answers);
}

static size_t processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return (size_t)CPU_COUNT(&set);
}

/* Workers for so many units; 0: not worth it, or not possible: the dwz file is shared. */
static size_t worker_count(struct dwarf *dwarf, size_t units)
{
	bool lazy = dwarf->main.lazy[SECTION_INFO] != NULL;
	size_t count = units / (lazy ? LAZY_UNITS_PER_WORKER : UNITS_PER_WORKER);

	if (count > processors())
		count = processors();
	if (count > WORKERS_MAX)
		count = WORKERS_MAX;
	return count < 2 || sections_alternate(&dwarf->main) ? 0 : count;
}

static void workers_run(struct shop *shop, struct lookup *lookup, size_t count)
{
	struct worker *workers = arena_array(&lookup->arena, struct worker, count);
	uint64_t work = lookup->dwarf->work_left / (count + 1);

	shop->workers = count;
	/* Loading writes to what is shared, so it is done before. */
	for (int id = 0; id < SECTION_COUNT; id++)
		section_bytes(&lookup->dwarf->main, (enum section_id)id);
	workers[count - 1].waits = true;
	for (size_t i = 0; i < count; i++)
		worker_start(&workers[i], shop, lookup, work);
	for (size_t i = 0; i < count; i++)
		worker_finish(&workers[i], lookup);
}

void claims_answer(struct lookup *lookup, struct claims *claims)
{
	struct shop shop = {.claims = claims};
	size_t count, i;

	claims_sort(claims);
	groups_make(&shop, &lookup->arena);
	count = worker_count(lookup->dwarf, shop.group_count);
	if (count)
		workers_run(&shop, lookup, count);
	/* All of them when there were no workers, or none could be started. */
	for (i = 0; i < shop.group_count; i++) {
		struct group *group = &shop.groups[i];
		struct unit *unit = NULL;

		if (i >= shop.next || group->left)
			unit = unit_at(claims->sections, group->unit_off);
		if (unit)
			group_answer(lookup, claims, group, unit);
	}
}
