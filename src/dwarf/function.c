#include "dwarf/function.h"

#include "dwarf/context.h"
#include "dwarf/ranges.h"

/* Levels of nested entries. Heavily inlined C++ and Rust reach some 100. */
#define DEPTH_MAX 1024

#define NO_LEVEL SIZE_MAX

/* An entry on the way from the root to the cursor. */
struct level {
	uint64_t off;
	uint64_t ea;
	bool inlined;
	struct function *function; /* made when an address is found in it or below it */
	size_t enclosing;          /* nearest level at or above this one that is a function */
};

struct walk {
	struct unit *unit;
	struct hits *hits;
	struct arena *scratch;
	struct die_cursor c;
	bool thorough; /* look below everything */
	size_t depth;
	struct level levels[DEPTH_MAX];
};

static size_t enclosing_level(const struct walk *walk)
{
	return walk->depth ? walk->levels[walk->depth - 1].enclosing : NO_LEVEL;
}

/* The function of a level and those it is nested in, outermost first. */
static struct function *level_function(struct walk *walk, size_t at)
{
	struct function *inner = NULL, **link = &inner;

	while (at != NO_LEVEL) {
		struct level *level = &walk->levels[at];
		bool known = level->function != NULL;

		if (!known) {
			level->function = arena_new(walk->scratch, struct function);
			level->function->unit = walk->unit;
			level->function->off = level->off;
			level->function->ea = level->ea;
			level->function->inlined = level->inlined;
		}
		*link = level->function;
		if (known || !level->inlined)
			break;
		link = &level->function->parent;
		at = at ? walk->levels[at - 1].enclosing : NO_LEVEL;
	}
	return inner;
}

/* Gives the level's function to the hits in one of its ranges. */
static bool range_take(struct walk *walk, const struct range *range, size_t level)
{
	struct dwarf *dwarf = walk->unit->sections->dwarf;
	struct hits *hits = walk->hits;
	size_t i = hits_from(hits, range->low);

	if (i == hits->count || hits->at[i].ea >= range->high ||
	    !dwarf_is_code(dwarf, range->low))
		return false;
	for (; i < hits->count && hits->at[i].ea < range->high; i++) {
		struct hit *hit = &hits->at[i];

		if (!dwarf_work(dwarf, 1))
			break;
		if (hit->function && range->low < hit->function_low)
			continue;
		hit->function = level_function(walk, level);
		hit->function_low = range->low;
	}
	return true;
}

/* Opens a level; the cursor is behind the entry's attributes, before its children. */
static bool level_push(struct walk *walk, bool is_function, bool inlined)
{
	struct level *level = &walk->levels[walk->depth];

	if (walk->depth == DEPTH_MAX)
		return false;
	*level = (struct level){.off = walk->c.off, .inlined = inlined};
	level->enclosing = is_function ? walk->depth : enclosing_level(walk);
	walk->depth++;
	return true;
}

static void code_attributes_read(struct walk *walk, const struct abbrev *abbrev,
				 struct code_attributes *code, uint64_t *sibling)
{
	struct die_attributes a = die_attributes(&walk->c, abbrev, walk->unit->encoding);

	while (die_attribute_next(&a)) {
		switch (a.name) {
		case DW_AT_low_pc:
			code->low_pc = a.value;
			break;
		case DW_AT_high_pc:
			code->high_pc = a.value;
			break;
		case DW_AT_ranges:
			code->ranges = a.value;
			break;
		case DW_AT_sibling:
			*sibling = walk->unit->off + a.value.u;
			break;
		default:
			break;
		}
	}
}

/* A function with code: are hits in it? Its children are looked at only then. */
static bool function_visit(struct walk *walk, const struct abbrev *abbrev)
{
	struct code_attributes code = {0};
	struct range_walk ranges;
	struct range range;
	uint64_t sibling = 0;
	bool taken = false, first = true;
	struct level *level = &walk->levels[walk->depth];

	if (!level_push(walk, true, abbrev->tag == DW_TAG_inlined_subroutine))
		return false;
	code_attributes_read(walk, abbrev, &code, &sibling);
	ranges = range_walk(walk->unit, &code);
	while (range_next(&ranges, &range)) {
		if (first || range.low < level->ea)
			level->ea = range.low;
		first = false;
		taken |= range_take(walk, &range, walk->depth - 1);
	}
	if (level->function)
		level->function->ea = level->ea;
	if (abbrev->children && (taken || walk->thorough))
		return true;
	walk->depth--;
	if (abbrev->children)
		die_skip_children(&walk->c, sibling, walk->unit->off);
	return true;
}

/* One entry; false when the walk cannot go on. */
static bool entry_visit(struct walk *walk, const struct abbrev *abbrev)
{
	uint64_t unit_off = walk->unit->off, sibling;
	bool barren = abbrev->role == ROLE_BARREN;

	if (abbrev->role == ROLE_FUNCTION)
		return function_visit(walk, abbrev);
	sibling = die_skip(&walk->c, abbrev, unit_off);
	if (!abbrev->children)
		return true;
	if (abbrev->role == ROLE_SCOPE || walk->thorough)
		return level_push(walk, barren, abbrev->tag == DW_TAG_inlined_subroutine);
	die_skip_children(&walk->c, sibling, unit_off);
	return true;
}

static void tree_walk(struct walk *walk)
{
	const struct abbrev *abbrev;

	walk->depth = 0;
	if (!die_cursor_at(&walk->c, walk->unit, walk->unit->die_off))
		return;
	while (die_next(&walk->c, &abbrev)) {
		if (!abbrev && walk->depth)
			walk->depth--;
		else if (abbrev && !entry_visit(walk, abbrev))
			break;
		if (walk->depth == 0)
			break;
	}
	if (reader_failed(&walk->c.r))
		dwarf_note(walk->unit->sections->dwarf, "%s: damaged entry at 0x%llx",
			   walk->unit->sections->elf->name, (unsigned long long)walk->c.off);
}

/* The hits that are in no function yet, as hits of their own. */
static struct hits lost_hits(const struct hits *hits, struct arena *scratch)
{
	struct hits lost = {arena_array(scratch, struct hit, hits->count), 0};

	for (size_t i = 0; i < hits->count; i++)
		if (!hits->at[i].function)
			lost.at[lost.count++] = hits->at[i];
	return lost;
}

static void lost_merge(struct hits *hits, const struct hits *lost)
{
	for (size_t i = 0, at = 0; i < hits->count && at < lost->count; i++)
		if (hits->at[i].ea == lost->at[at].ea)
			hits->at[i] = lost->at[at++];
}

/*
 * The first pass does not look into what normally has no code below it: types, declarations, and
 * functions that do not hold an address. There are languages that nest functions in functions
 * (Ada, Fortran, GNU C) or in types (D, Rust); so an address that was not found is looked for
 * everywhere in a second pass.
 */
void functions_find(struct unit *unit, struct hits *hits, struct arena *scratch)
{
	struct dwarf *dwarf = unit->sections->dwarf;
	struct walk *walk = dwarf->walk;
	struct hits lost;

	if (!walk)
		walk = dwarf->walk = arena_new(dwarf->arena, struct walk);
	if (!dwarf_work(dwarf, unit->end - unit->off))
		return;
	walk->thorough = false;
	walk->unit = unit;
	walk->hits = hits;
	walk->scratch = scratch;
	tree_walk(walk);
	lost = lost_hits(hits, scratch);
	if (lost.count == 0 || !dwarf_work(dwarf, unit->end - unit->off))
		return;
	walk->hits = &lost;
	walk->thorough = true;
	tree_walk(walk);
	lost_merge(hits, &lost);
}

void function_describe(struct function *function)
{
	const struct abbrev *abbrev;
	struct die_cursor c;
	struct die_attributes a;

	if (function->described)
		return;
	function->described = true;
	function->name = function_name(function->unit, function->off);
	if (!die_cursor_at(&c, function->unit, function->off) || !die_next(&c, &abbrev) ||
	    !abbrev)
		return;
	a = die_attributes(&c, abbrev, function->unit->encoding);
	while (die_attribute_next(&a)) {
		if (a.name == DW_AT_call_file) {
			function->has_call_file = true;
			function->call_file = a.value.u;
		} else if (a.name == DW_AT_call_line) {
			function->call_line = (uint32_t)a.value.u;
		} else if (a.name == DW_AT_call_column) {
			function->call_column = (uint32_t)a.value.u;
		}
	}
}
