#include "dwarf/names.h"

#include "dwarf/context.h"
#include "dwarf/scope.h"

/* An instance, its abstract origin, a declaration: 3, some producers add one or two. */
#define HOPS_MAX 16

struct hop {
	struct unit *unit;
	uint64_t off;
	struct form_value linkage, name, origin, specification;
};

static bool hop_read(struct hop *hop)
{
	const struct abbrev *abbrev;
	struct die_cursor c;
	struct die_attributes a;

	if (!die_cursor_at(&c, hop->unit, hop->off) || !die_next(&c, &abbrev) || !abbrev)
		return false;
	a = die_attributes(&c, abbrev, hop->unit->encoding);
	while (die_attribute_next(&a)) {
		switch (a.name) {
		case DW_AT_linkage_name:
		case DW_AT_MIPS_linkage_name:
			hop->linkage = a.value;
			break;
		case DW_AT_name:
			hop->name = a.value;
			break;
		case DW_AT_abstract_origin:
			hop->origin = a.value;
			break;
		case DW_AT_specification:
			hop->specification = a.value;
			break;
		default:
			break;
		}
	}
	return true;
}

/* The next entry to look at; false when the chain ends here. */
static bool hop_follow(const struct hop *hop, struct hop *next)
{
	const struct form_value *reference =
		hop->specification.form ? &hop->specification : &hop->origin;

	*next = (struct hop){0};
	return unit_reference(hop->unit, reference, &next->unit, &next->off);
}

struct function_name function_name(struct unit *unit, uint64_t off)
{
	struct function_name found = {0};
	struct hop hop = {.unit = unit, .off = off}, named = hop, next;

	for (int i = 0; i < HOPS_MAX && hop_read(&hop); i++) {
		if (hop.unit->language)
			found.language = hop.unit->language;
		if (!found.linkage)
			found.linkage = unit_string(hop.unit, &hop.linkage);
		if (!found.name) {
			found.name = unit_string(hop.unit, &hop.name);
			named = hop;
		}
		if (found.name && found.linkage)
			break;
		if (!hop_follow(&hop, &next))
			break;
		hop = next;
	}
	if (found.name && !found.linkage && unit->sections->dwarf->qualifies)
		found.qualified =
			scope_qualified(named.unit, named.off, found.language, found.name);
	return found;
}
