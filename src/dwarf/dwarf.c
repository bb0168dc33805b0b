#include "dwarf/dwarf.h"

#include <stdlib.h>

#include "dwarf/answer.h"
#include "dwarf/claims.h"
#include "dwarf/fetch.h"
#include "dwarf/sparse.h"
#include "dwarf/workers.h"

struct dwarf *dwarf_open(struct arena *arena, struct elf *elf,
			 const struct dwarf_companions *companions)
{
	struct dwarf *dwarf;

	if (!elf_section(elf, ".debug_info") && !elf_section(elf, ".debug_line"))
		return NULL;
	dwarf = arena_new(arena, struct dwarf);
	dwarf->arena = arena;
	if (companions)
		dwarf->companions = *companions;
	sections_init(&dwarf->main, dwarf, elf, false);
	dwarf_code_map(dwarf);
	return dwarf;
}

void dwarf_use_points(struct dwarf *dwarf, struct points *points)
{
	dwarf->main.points = points;
}

void dwarf_qualify_names(struct dwarf *dwarf)
{
	dwarf->qualifies = true;
}

const char *dwarf_problem(const struct dwarf *dwarf)
{
	return dwarf->problem;
}

/* The addresses nothing is known of yet. */
static struct hits unanswered(struct lookup *lookup, struct arena *arena)
{
	struct hits rest = {arena_array(arena, struct hit, lookup->asked.count), 0};

	for (size_t i = 0; i < lookup->asked.count; i++)
		if (lookup->found[i].knowledge == KNOWN_NOTHING)
			rest.at[rest.count++] = lookup->asked.at[i];
	return rest;
}

/* What the claimed units know. They are answered as they come. */
static void claimed_answer(struct lookup *lookup, struct claims *claims)
{
	struct fetch fetch;

	fetch_claimed(&fetch, claims);
	claims_answer(lookup, claims);
	if (!fetch_end(&fetch))
		memset(lookup->found, 0, lookup->asked.count * sizeof *lookup->found);
}

static void units_answer(struct lookup *lookup)
{
	struct dwarf *dwarf = lookup->dwarf;
	struct claims claims = claims_begin(&dwarf->main, &lookup->asked, &lookup->arena);
	struct hits rest;

	claims_by_aranges(&claims);
	claimed_answer(lookup, &claims);
	rest = unanswered(lookup, &lookup->arena);
	if (rest.count == 0)
		return;
	fetch_roots(&dwarf->main);
	claims = claims_begin(&dwarf->main, &rest, &lookup->arena);
	claims_by_units(&claims);
	claimed_answer(lookup, &claims);
	for (size_t i = 0; i < claims.vague.count; i++) {
		struct unit *unit = unit_at(&dwarf->main, claims.vague.at[i]);

		rest = unanswered(lookup, &dwarf->scratch);
		if (rest.count == 0)
			break;
		if (unit)
			unit_answer(lookup, unit, &rest, true);
	}
}

/* A file may have lines and nothing else. */
static void lines_answer(struct lookup *lookup)
{
	struct dwarf *dwarf = lookup->dwarf;
	struct line_table table;
	uint64_t off = 0, end;
	struct hits rest;

	do {
		rest = unanswered(lookup, &dwarf->scratch);
		if (!dwarf_work(dwarf, lookup->asked.count))
			break;
		if (line_table_read(&table, NULL, &dwarf->main, off, &dwarf->scratch, &end)) {
			line_table_run(&table, &rest);
			for (size_t i = 0; i < rest.count; i++)
				hit_answer(lookup, &rest.at[i], &table);
		}
		arena_reset(&dwarf->scratch);
		off = end;
	} while (rest.count && end);
}

static void asked_collect(struct lookup *lookup, const struct dwarf_answer *answers,
			  size_t count)
{
	struct hits *asked = &lookup->asked;

	asked->at = arena_array(&lookup->arena, struct hit, count);
	for (size_t i = 0; i < count; i++) {
		if (asked->count && asked->at[asked->count - 1].ea == answers[i].ea)
			continue;
		asked->at[asked->count] =
			(struct hit){.ea = answers[i].ea, .asked = asked->count};
		asked->count++;
	}
	lookup->found = arena_array(&lookup->arena, struct found, asked->count);
}

static void abbrevs_free(struct sections *sections)
{
	if (!sections)
		return;
	abbrev_cache_free(&sections->abbrevs);
	if (sections->alternate)
		abbrev_cache_free(&sections->alternate->abbrevs);
}

static void scratch_free(struct dwarf *dwarf)
{
	arena_free(&dwarf->scratch);
	abbrevs_free(&dwarf->main);
	abbrevs_free(dwarf->package);
	for (size_t i = 0; i < dwarf->split_files.count; i++)
		abbrevs_free(dwarf->split_files.at[i]);
}

void dwarf_lookup(struct dwarf *dwarf, struct dwarf_answer *answers, size_t count)
{
	struct lookup lookup = {.dwarf = dwarf};

	asked_collect(&lookup, answers, count);
	sparse_open(&dwarf->main);
	section_bytes(&dwarf->main, SECTION_INFO);
	dwarf_work_begin(dwarf, lookup.asked.count);
	if (dwarf->main.at[SECTION_INFO].len)
		units_answer(&lookup);
	if (!dwarf->main.at[SECTION_INFO].len) /* none, or damaged */
		lines_answer(&lookup);
	for (size_t i = 0, at = 0; i < count; i++) {
		at += i && answers[i].ea != answers[i - 1].ea;
		answers[i].frames = lookup.found[at].frames;
		answers[i].frame_count = lookup.found[at].count;
	}
	dwarf_work_end(dwarf);
	if (dwarf->main.sparse)
		sparse_pause(dwarf->main.sparse, dwarf->arena);
	arena_free(&lookup.arena);
	scratch_free(dwarf);
}
