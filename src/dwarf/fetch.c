#include "dwarf/fetch.h"

#include "dwarf/context.h"
#include "dwarf/sparse.h"

static void *fetch_run(void *argument)
{
	struct fetch *fetch = argument;

	fetch->good = sparse_run(fetch->sections->sparse, &fetch->why);
	return NULL;
}

static void fetch_begin(struct fetch *fetch, const struct sparse_wish *wish)
{
	struct sections *sections = fetch->sections;

	sparse_run_begin(sections->sparse, wish);
	fetch->started = pthread_create(&fetch->thread, NULL, fetch_run, fetch) == 0;
	for (int id = 0; id < SECTION_COUNT; id++)
		section_bytes(sections, (enum section_id)id);
	if (!fetch->started)
		fetch_run(fetch);
}

bool fetch_end(struct fetch *fetch)
{
	struct sections *sections = fetch->sections;

	if (fetch->started)
		pthread_join(fetch->thread, NULL);
	fetch->started = false;
	if (fetch->good)
		return true;
	dwarf_note(sections->dwarf, "%s: section .debug_info: %s", sections->elf->name,
		   fetch->why.text);
	/* Damaged debugging information is worse than none. */
	sections->at[SECTION_INFO] = (struct bytes){NULL, 0};
	return false;
}

void fetch_claimed(struct fetch *fetch, struct claims *claims)
{
	struct sparse_wish wish = {0};
	uint64_t *units;

	*fetch = (struct fetch){.sections = claims->sections, .good = true};
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
	if (!sparse_use_points(claims->sections, &wish))
		fetch_begin(fetch, &wish);
}

void fetch_roots(struct sections *sections)
{
	const struct sparse_wish wish = {.all_roots = true};
	struct fetch fetch = {.sections = sections};

	if (!sections->sparse || sparse_use_points(sections, &wish))
		return;
	fetch_begin(&fetch, &wish);
	fetch_end(&fetch);
}
