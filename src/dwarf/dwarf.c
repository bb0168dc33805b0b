#include "dwarf/dwarf.h"

#include <stdlib.h>

#include "dwarf/claims.h"
#include "dwarf/context.h"
#include "dwarf/function.h"
#include "dwarf/line.h"
#include "dwarf/split.h"

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

const char *dwarf_problem(const struct dwarf *dwarf)
{
	return dwarf->problem;
}

/* How much is known of an address: where several units claim it, more is better, and of two that
 * know as much the first in the file is believed. */
enum knowledge { KNOWN_NOTHING, KNOWN_LINE, KNOWN_FUNCTION };

struct found {
	struct dwarf_frame *frames;
	size_t count;
	enum knowledge knowledge;
};

struct lookup {
	struct dwarf *dwarf;
	struct arena arena;  /* until the lookup ends */
	struct hits asked;   /* each address once */
	struct found *found; /* of asked.at[i] */
};

static size_t chain_length(const struct function *function)
{
	size_t length = 0;

	for (; function; function = function->parent)
		length++;
	return length;
}

static void frame_name(struct dwarf_frame *frame, struct function *function)
{
	function_describe(function);
	frame->linkage_name = function->name.linkage;
	frame->name = function->name.name;
	frame->language = function->name.language;
	frame->function_ea = function->ea;
	frame->inlined = function->inlined && function->parent;
}

/* The innermost frame is where the line table says; each further one where the inner was called. */
static void frames_fill(struct dwarf_frame *frames, const struct hit *hit,
			struct line_table *table, struct arena *arena)
{
	struct function *function = hit->function, *inner = NULL;

	if (hit->has_row) {
		frames->file = line_table_path(table, hit->row.file, arena);
		frames->line = hit->row.line;
		frames->column = hit->row.column;
	}
	for (; function; inner = function, function = function->parent, frames++) {
		frame_name(frames, function);
		if (!inner)
			continue;
		if (inner->has_call_file && table)
			frames->file = line_table_path(table, inner->call_file, arena);
		frames->line = inner->call_line;
		frames->column = inner->call_column;
	}
}

static void hit_answer(struct lookup *lookup, const struct hit *hit, struct line_table *table)
{
	struct found *found = &lookup->found[hit->asked];
	enum knowledge knowledge = hit->function  ? KNOWN_FUNCTION
				   : hit->has_row ? KNOWN_LINE
						  : KNOWN_NOTHING;
	size_t count = hit->function ? chain_length(hit->function) : 1;

	if (knowledge <= found->knowledge ||
	    !dwarf_work(lookup->dwarf, count * sizeof *found->frames))
		return;
	found->knowledge = knowledge;
	found->count = count;
	found->frames = arena_array(lookup->dwarf->arena, struct dwarf_frame, count);
	frames_fill(found->frames, hit, table, lookup->dwarf->arena);
}

static void hits_keep_with_row(struct hits *hits)
{
	size_t kept = 0;

	for (size_t i = 0; i < hits->count; i++)
		if (hits->at[i].has_row)
			hits->at[kept++] = hits->at[i];
	hits->count = kept;
}

static void unit_done(struct dwarf *dwarf, struct unit *unit)
{
	struct sections *sections = unit->sections;

	sections_touched(sections, unit->end - unit->off);
	abbrev_cache_trim(&sections->abbrevs);
	if (sections->alternate)
		abbrev_cache_trim(&sections->alternate->abbrevs);
	arena_reset(&dwarf->scratch);
}

/* `vague`: the unit does not say what its code is, so only its lines can tell. */
static void unit_answer(struct lookup *lookup, struct unit *unit, struct hits *hits, bool vague)
{
	struct dwarf *dwarf = lookup->dwarf;
	struct unit *full = split_unit(unit);
	struct line_table table;
	bool has_table = line_table_of(&table, unit, &dwarf->scratch);

	if (!full)
		full = unit;
	if (has_table)
		line_table_run(&table, hits);
	if (vague)
		hits_keep_with_row(hits);
	if (hits->count)
		functions_find(full, hits, &dwarf->scratch);
	for (size_t i = 0; i < hits->count; i++)
		hit_answer(lookup, &hits->at[i], has_table ? &table : NULL);
	unit_done(dwarf, full);
}

/* Claims are sorted by unit: each unit answers all that it claims at once. */
static void claims_answer(struct lookup *lookup, struct claims *claims)
{
	struct dwarf *dwarf = lookup->dwarf;
	size_t end;

	claims_sort(claims);
	for (size_t i = 0; i < claims->list.count; i = end) {
		struct unit *unit = unit_at(claims->sections, claims->list.at[i].unit_off);
		struct hits hits = {0};

		for (end = i; end < claims->list.count &&
			      claims->list.at[end].unit_off == claims->list.at[i].unit_off;
		     end++)
			;
		hits.at = arena_array(&dwarf->scratch, struct hit, end - i);
		for (size_t j = i; j < end; j++)
			hits.at[hits.count++] = claims->asked->at[claims->list.at[j].hit];
		if (unit)
			unit_answer(lookup, unit, &hits, false);
	}
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

static void units_answer(struct lookup *lookup)
{
	struct dwarf *dwarf = lookup->dwarf;
	struct claims claims = claims_begin(&dwarf->main, &lookup->asked, &lookup->arena);
	struct hits rest;

	claims_by_aranges(&claims);
	claims_answer(lookup, &claims);
	rest = unanswered(lookup, &lookup->arena);
	if (rest.count == 0)
		return;
	claims = claims_begin(&dwarf->main, &rest, &lookup->arena);
	claims_by_units(&claims);
	claims_answer(lookup, &claims);
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
	section_bytes(&dwarf->main, SECTION_INFO);
	dwarf_work_begin(dwarf, lookup.asked.count);
	if (dwarf->main.at[SECTION_INFO].len)
		units_answer(&lookup);
	else
		lines_answer(&lookup);
	for (size_t i = 0, at = 0; i < count; i++) {
		at += i && answers[i].ea != answers[i - 1].ea;
		answers[i].frames = lookup.found[at].frames;
		answers[i].frame_count = lookup.found[at].count;
	}
	arena_free(&lookup.arena);
	scratch_free(dwarf);
}
