#include "dwarf/fetch.h"

#include <pthread.h>

#include "dwarf/context.h"
#include "dwarf/sparse.h"

struct errand {
	struct sparse *sparse;
	struct sparse_wish wish;
	bool good;
	struct err why;
};

static void *errand_run(void *argument)
{
	struct errand *errand = argument;

	errand->good = sparse_fetch(errand->sparse, &errand->wish, &errand->why);
	return NULL;
}

static void fetch(struct sections *sections, struct sparse_wish wish)
{
	struct errand errand = {.sparse = sections->sparse, .wish = wish};
	pthread_t thread;
	bool started = pthread_create(&thread, NULL, errand_run, &errand) == 0;

	for (int id = 0; id < SECTION_COUNT; id++)
		section_bytes(sections, (enum section_id)id);
	if (started)
		pthread_join(thread, NULL);
	else
		errand_run(&errand);
	if (errand.good)
		return;
	dwarf_note(sections->dwarf, "%s: section .debug_info: %s", sections->elf->name,
		   errand.why.text);
	/* Damaged debugging information is worse than none. */
	sections->at[SECTION_INFO] = (struct bytes){NULL, 0};
}

void fetch_claimed(struct claims *claims)
{
	struct sparse_wish wish = {0};
	uint64_t *units;

	if (!claims->sections->sparse)
		return;
	claims_sort(claims);
	units = arena_array(claims->arena, uint64_t, claims->list.count);
	for (size_t i = 0; i < claims->list.count; i++)
		if (i == 0 || claims->list.at[i].unit_off != claims->list.at[i - 1].unit_off)
			units[wish.count++] = claims->list.at[i].unit_off;
	for (size_t i = 0; i < claims->asked->count; i++)
		wish.all_roots |= claims->counts[i] == 0;
	wish.units = units;
	if (sparse_use_points(claims->sections, &wish))
		return;
	fetch(claims->sections, wish);
}

void fetch_roots(struct sections *sections)
{
	const struct sparse_wish wish = {.all_roots = true};

	if (sections->sparse && !sparse_use_points(sections, &wish))
		fetch(sections, wish);
}
