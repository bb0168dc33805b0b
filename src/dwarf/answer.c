#include "dwarf/answer.h"

#include "dwarf/function.h"
#include "dwarf/split.h"

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
	frame->qualified = function->name.qualified;
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

void hit_answer(struct lookup *lookup, const struct hit *hit, struct line_table *table)
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
	found->unit_off = hit->function ? hit->function->unit->off : 0;
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

/* What reading a unit makes resident at least: where the page cache has large folios, one of them. */
#define UNIT_TOUCH ((uint64_t)2 << 20)

static void unit_done(struct dwarf *dwarf, struct unit *unit)
{
	struct sections *sections = unit->sections;
	uint64_t size = unit->end - unit->off;

	sections_touched(sections, size < UNIT_TOUCH ? UNIT_TOUCH : size);
	abbrev_cache_trim(&sections->abbrevs);
	if (sections->alternate)
		abbrev_cache_trim(&sections->alternate->abbrevs);
	arena_reset(&dwarf->scratch);
}

void unit_answer(struct lookup *lookup, struct unit *unit, struct hits *hits, bool vague)
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

void found_merge(struct found *found, const struct found *other)
{
	if (other->knowledge > found->knowledge ||
	    (other->knowledge == found->knowledge && other->unit_off < found->unit_off))
		*found = *other;
}
