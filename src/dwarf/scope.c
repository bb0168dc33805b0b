/*
 * Entries do not say what they stand in. So the unit is walked from its root to the entry, in
 * leaps where the producer left DW_AT_sibling, and the way there is kept.
 */
#include "dwarf/scope.h"

#include <stdio.h>
#include <string.h>

#include "dwarf/context.h"

#define LEVELS_MAX 64
#define LENGTH_MAX 1024

struct scope {
	uint64_t off;
	uint16_t tag;
};

/* The way from the root to the cursor. Levels beyond the limit are only counted. */
struct way {
	struct unit *unit;
	struct die_cursor c;
	size_t depth;
	struct scope levels[LEVELS_MAX];
};

/* DWARF 5, table 7.17, and those given since. */
static bool is_c_plus_plus(uint16_t language)
{
	static const uint16_t all[] = {0x04,          0x11 /* Objective C++ */,
				       0x19 /* 03 */, 0x1a /* 11 */,
				       0x21 /* 14 */, 0x2b /* 17 */,
				       0x2c /* 20 */, 0x3a /* 23 */};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (all[i] == language)
			return true;
	return false;
}

/* What a scope without a name is called; NULL: names are not qualified by such an entry. */
static const char *anonymous(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
		return "(anonymous namespace)";
	case DW_TAG_class_type:
		return "(anonymous class)";
	case DW_TAG_structure_type:
		return "(anonymous struct)";
	case DW_TAG_union_type:
		return "(anonymous union)";
	default:
		return NULL;
	}
}

static bool is_function(uint16_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* Walks to the entry at `target`; its levels are then on the way. Each step goes forward: a
 * sibling that does not is none. */
static bool way_find(struct way *way, uint64_t target)
{
	const struct abbrev *abbrev;
	uint64_t sibling;

	if (!die_cursor_at(&way->c, way->unit, way->unit->die_off))
		return false;
	while (die_next(&way->c, &abbrev) && way->c.off < target) {
		if (!abbrev) {
			if (way->depth-- <= 1)
				return false;
			continue;
		}
		sibling = die_skip(&way->c, abbrev, way->unit->off);
		if (!abbrev->children)
			continue;
		if (sibling > way->c.off && sibling <= target) {
			die_skip_children(&way->c, sibling, way->unit->off);
			continue;
		}
		if (way->depth < LEVELS_MAX)
			way->levels[way->depth] = (struct scope){way->c.off, abbrev->tag};
		way->depth++;
	}
	return way->c.off == target && !reader_failed(&way->c.r) && way->depth <= LEVELS_MAX;
}

/* NULL: its name stands in a type unit, which is not read. */
static const char *level_name(struct way *way, const struct scope *level)
{
	const struct abbrev *abbrev;
	struct die_attributes a;
	const char *name = anonymous(level->tag);

	if (!die_cursor_at(&way->c, way->unit, level->off) || !die_next(&way->c, &abbrev) ||
	    !abbrev)
		return NULL;
	a = die_attributes(&way->c, abbrev, way->unit->encoding);
	while (die_attribute_next(&a)) {
		if (a.name == DW_AT_name)
			return unit_string(way->unit, &a.value);
		if (a.name == DW_AT_signature || a.name == DW_AT_specification)
			name = NULL;
	}
	return name;
}

/* The innermost function's local scopes, or all there are. */
static size_t first_level(const struct way *way)
{
	size_t first = way->depth;

	while (first && !is_function(way->levels[first - 1].tag))
		first--;
	return first;
}

static const char *joined(struct way *way, const char *name)
{
	char text[LENGTH_MAX];
	size_t len = 0;

	for (size_t i = first_level(way); i < way->depth; i++) {
		const char *level;
		int more;

		if (!anonymous(way->levels[i].tag))
			continue;
		level = level_name(way, &way->levels[i]);
		if (!level)
			return NULL;
		more = snprintf(text + len, sizeof text - len, "%s::", level);
		if (more < 0 || (size_t)more >= sizeof text - len)
			return NULL;
		len += (size_t)more;
	}
	if (len == 0 || strlen(name) >= sizeof text - len)
		return NULL;
	return arena_printf(way->unit->sections->dwarf->arena, "%s%s", text, name);
}

const char *scope_qualified(struct unit *unit, uint64_t off, uint16_t language,
			    const char *name)
{
	struct dwarf *dwarf = unit->sections->dwarf;
	struct way way = {.unit = unit};
	uint64_t work = off - unit->off;

	if (!is_c_plus_plus(language) || off <= unit->die_off || off >= unit->end ||
	    work > dwarf->scope_work_left || !dwarf_work(dwarf, work))
		return NULL;
	dwarf->scope_work_left -= work;
	return way_find(&way, off) ? joined(&way, name) : NULL;
}
