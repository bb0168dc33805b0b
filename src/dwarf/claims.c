#include "dwarf/claims.h"

#include "base/sort.h"
#include "dwarf/context.h"
#include "dwarf/ranges.h"

/* More units than this for one address are not looked at: 2 or 3 are seen in practice. */
#define CLAIMS_PER_ADDRESS 32

/* What looking at a unit's root entry makes resident: a page and those the kernel maps around it. */
#define ROOT_TOUCH ((uint64_t)64 << 10)

struct claims claims_begin(struct sections *sections, const struct hits *asked,
			   struct arena *arena)
{
	return (struct claims){.sections = sections,
			       .asked = asked,
			       .arena = arena,
			       .counts = arena_array(arena, uint8_t, asked->count)};
}

static void claim_range(struct claims *claims, uint64_t unit_off, uint64_t low, uint64_t high)
{
	const struct hits *asked = claims->asked;
	size_t i = hits_from(asked, low);

	if (i == asked->count || asked->at[i].ea >= high ||
	    !dwarf_is_code(claims->sections->dwarf, low))
		return;
	for (; i < asked->count && asked->at[i].ea < high; i++) {
		if (claims->counts[i] == CLAIMS_PER_ADDRESS ||
		    !dwarf_work(claims->sections->dwarf, 1))
			continue;
		claims->counts[i]++;
		*vec_push(claims->arena, &claims->list) = (struct claim){unit_off, i};
	}
}

/* One set: (address, length) pairs, aligned to their size from the set's beginning; zeros end it,
 * but some linkers leave such a pair in the middle too. */
static void arange_set(struct claims *claims, struct reader *r, struct encoding encoding)
{
	size_t begin = reader_offset(r) - (encoding.offset_size == 8 ? 12 : 4);
	uint16_t version = read_u16(r);
	uint64_t unit_off = read_offset(r, encoding), low, high;
	size_t pair;

	encoding.address_size = read_u8(r);
	if (read_u8(r) != 0 || version != 2 || /* segments are not of these architectures */
	    (encoding.address_size != 4 && encoding.address_size != 8))
		return;
	pair = 2u * encoding.address_size;
	reader_skip(r, (pair - (reader_offset(r) - begin) % pair) % pair);
	while (reader_left(r) >= pair) {
		low = read_address(r, encoding);
		high = low + read_address(r, encoding);
		if (low < high)
			claim_range(claims, unit_off, low, high);
	}
}

void claims_by_aranges(struct claims *claims)
{
	struct reader r = reader_over(section_bytes(claims->sections, SECTION_ARANGES));

	while (reader_more(&r)) {
		struct reader set = r;
		struct encoding encoding = {0};

		if (!unit_length_read(&set, &encoding.offset_size) ||
		    !dwarf_work(claims->sections->dwarf, (uint64_t)(set.end - r.at)))
			break;
		r.at = set.end;
		arange_set(claims, &set, encoding);
	}
}

static void unit_claim(struct claims *claims, struct unit *unit)
{
	struct range_walk walk = range_walk(unit, &unit->code);
	struct range range;
	bool any = false;

	for (; range_next(&walk, &range); any = true)
		claim_range(claims, unit->off, range.low, range.high);
	if (!any && unit->stmt_list.form)
		*vec_push(claims->arena, &claims->vague) = unit->off;
}

void claims_by_units(struct claims *claims)
{
	struct sections *sections = claims->sections;
	struct unit unit;

	units_index(sections);
	for (size_t i = 0; i < sections->extents.count && dwarf_work(sections->dwarf, 1); i++) {
		if (unit_read(sections, sections->extents.at[i].off, &unit))
			unit_claim(claims, &unit);
		sections_touched(sections, ROOT_TOUCH);
	}
}

static int claim_compare(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->unit_off != y->unit_off)
		return x->unit_off < y->unit_off ? -1 : 1;
	return x->hit < y->hit ? -1 : x->hit > y->hit;
}

void claims_sort(struct claims *claims)
{
	struct claim *at = claims->list.at;
	size_t kept = 0;

	sort(claims->arena, at, claims->list.count, sizeof *at, claim_compare);
	for (size_t i = 0; i < claims->list.count; i++)
		if (kept == 0 || claim_compare(&at[kept - 1], &at[i]) != 0)
			at[kept++] = at[i];
	claims->list.count = kept;
}
