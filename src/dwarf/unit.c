#include "dwarf/unit.h"

#include "dwarf/context.h"
#include "dwarf/sparse.h"

/* Of an address or string offset table before its entries: length, version, and two bytes more;
 * range lists have their offset count in addition (DWARF 5, 7.26 to 7.28). */
#define TABLE_HEADER(offset_size) ((offset_size) == 8 ? 16u : 8u)

/* Of a lazy section: most strings are shorter. */
#define STRING_USUAL 256
/* And most tables of abbreviations. */
#define ABBREVS_USUAL 16384

static uint64_t contribution_off(const struct unit *unit, enum section_id id)
{
	return unit->contributions && unit->contributions[id].present
		       ? unit->contributions[id].off
		       : 0;
}

/* Version 5 puts the type first and may add an id; the older ones end in the address size. */
static bool header_read(struct reader *r, struct unit *unit)
{
	unit->encoding.version = read_u16(r);
	unit->type = DW_UT_compile;
	if (unit->encoding.version >= 5) {
		unit->type = read_u8(r);
		unit->encoding.address_size = read_u8(r);
		unit->abbrev_off = read_offset(r, unit->encoding);
	} else {
		unit->abbrev_off = read_offset(r, unit->encoding);
		unit->encoding.address_size = read_u8(r);
	}
	if (unit->type == DW_UT_skeleton || unit->type == DW_UT_split_compile) {
		unit->has_dwo_id = true;
		unit->dwo_id = read_u64(r);
	}
	unit->abbrev_off += contribution_off(unit, SECTION_ABBREV);
	unit->die_off = reader_offset(r);
	return !reader_failed(r) && unit->encoding.version >= 2 &&
	       unit->encoding.version <= 5 &&
	       (unit->encoding.address_size == 4 || unit->encoding.address_size == 8) &&
	       unit->type != DW_UT_type && unit->type != DW_UT_split_type;
}

static void root_attribute(struct unit *unit, const struct die_attributes *a)
{
	switch (a->name) {
	case DW_AT_comp_dir:
		unit->comp_dir = a->value;
		break;
	case DW_AT_stmt_list:
		unit->stmt_list = a->value;
		break;
	case DW_AT_low_pc:
		unit->code.low_pc = a->value;
		break;
	case DW_AT_high_pc:
		unit->code.high_pc = a->value;
		break;
	case DW_AT_ranges:
		unit->code.ranges = a->value;
		break;
	case DW_AT_language:
		unit->language = (uint16_t)a->value.u;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		unit->dwo_name = a->value;
		break;
	case DW_AT_GNU_dwo_id:
		unit->has_dwo_id = true;
		unit->dwo_id = a->value.u;
		break;
	case DW_AT_str_offsets_base:
		unit->str_offsets_base = a->value;
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		unit->addr_base = a->value;
		break;
	case DW_AT_rnglists_base:
		unit->rnglists_base = a->value;
		break;
	case DW_AT_GNU_ranges_base:
		unit->gnu_ranges_base = a->value;
		break;
	default:
		break;
	}
}

/* Of a header, to where its length has been read. */
#define LENGTH_SIZE 12

static bool unit_need_lazy(struct sections *sections, uint64_t off)
{
	struct reader r = reader_at(section_bytes(sections, SECTION_INFO), off);
	uint8_t offset_size;

	section_need(sections, SECTION_INFO, off, LENGTH_SIZE);
	if (!unit_length_read(&r, &offset_size))
		return false;
	section_need(sections, SECTION_INFO, off, (uint64_t)(r.end - r.begin) - off);
	return true;
}

/* The unit's entries are going to be read. */
static bool unit_need(struct sections *sections, uint64_t off)
{
	struct err e;

	if (sections->lazy[SECTION_INFO])
		return unit_need_lazy(sections, off);
	if (!sections->sparse || sparse_need(sections->sparse, off, &e))
		return true;
	dwarf_note(sections->dwarf, "%s: section .debug_info: %s", sections->elf->name, e.text);
	return false;
}

/* The next one of a table; false at its end. */
static bool abbrev_read(struct reader *r, struct abbrev *out)
{
	uint64_t name, form;

	out->code = read_uleb(r);
	if (out->code == 0)
		return false;
	out->tag = (uint16_t)read_uleb(r);
	out->children = read_u8(r) != 0;
	out->attributes = r->at;
	do {
		name = read_uleb(r);
		form = read_uleb(r);
		if (form == DW_FORM_implicit_const)
			read_sleb(r);
	} while (name || form);
	return !reader_failed(r);
}

/* Only its end says how long a table is. */
static void abbrevs_need(struct sections *sections, uint64_t off)
{
	struct bytes section = section_bytes(sections, SECTION_ABBREV);
	uint64_t have = ABBREVS_USUAL;
	struct abbrev abbrev;
	struct reader r;

	while (sections->lazy[SECTION_ABBREV] && off < section.len) {
		section_need(sections, SECTION_ABBREV, off, have);
		r = reader_at(section, off);
		while (abbrev_read(&r, &abbrev))
			;
		if (reader_offset(&r) - off <= have || have > section.len)
			break;
		have *= 4;
	}
}

/* A table is compiled only for units whose entries are walked: here just the root's abbreviation
 * is looked for, and it nearly always is the first. */
static bool root_abbrev(struct unit *unit, uint64_t code, struct abbrev *out,
			const uint8_t **end)
{
	struct reader r =
		reader_at(section_bytes(unit->sections, SECTION_ABBREV), unit->abbrev_off);
	const uint8_t *begin = r.at;
	bool paid, found = false;

	*end = r.end;
	while (!found && abbrev_read(&r, out))
		found = out->code == code;
	/* A search that finds nothing costs as much. */
	paid = dwarf_work(unit->sections->dwarf, (uint64_t)(r.at - begin));
	return paid && found;
}

static bool root_read(struct unit *unit, struct reader *r)
{
	struct abbrevs table = {.encoding = unit->encoding};
	struct abbrev abbrev = {0};
	struct die_cursor c = {.dwarf = unit->sections->dwarf,
			       .abbrevs = &table,
			       .r = *r,
			       .off = unit->die_off};
	struct die_attributes a;

	abbrevs_need(unit->sections, unit->abbrev_off);
	if (!root_abbrev(unit, read_uleb(&c.r), &abbrev, &table.end))
		return false;
	unit->tag = abbrev.tag;
	a = die_attributes(&c, &abbrev, unit->encoding);
	while (die_attribute_next(&a))
		root_attribute(unit, &a);
	*r = c.r;
	return !reader_failed(&c.r);
}

/* Root entries with long strings reach beyond what sparse keeps of every unit. */
static bool root_read_whole(struct unit *unit, struct reader *r)
{
	struct sparse *sparse = unit->sections->sparse;
	struct reader begin = *r;
	bool good = root_read(unit, r);

	if (!sparse || unit->sections->lazy[SECTION_INFO] ||
	    reader_offset(r) <= unit->off + SPARSE_ROOT_SIZE ||
	    !unit_need(unit->sections, unit->off))
		return good;
	return root_read(unit, &begin);
}

bool unit_read_contribution(struct sections *sections, uint64_t off,
			    const struct contribution *contributions, struct unit *unit)
{
	struct reader r = reader_at(section_bytes(sections, SECTION_INFO), off);

	*unit = (struct unit){.sections = sections, .off = off, .contributions = contributions};
	if (!unit_length_read(&r, &unit->encoding.offset_size))
		return false;
	unit->end = (uint64_t)(r.end - r.begin);
	return header_read(&r, unit) && root_read_whole(unit, &r);
}

bool unit_read(struct sections *sections, uint64_t off, struct unit *unit)
{
	return unit_read_contribution(sections, off, NULL, unit);
}

static size_t unit_slot(const struct sections *sections, uint64_t off)
{
	size_t slot = (size_t)((off * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
		      (sections->unit_slots - 1);

	while (sections->units[slot] && sections->units[slot]->off != off)
		slot = (slot + 1) & (sections->unit_slots - 1);
	return slot;
}

/* At most half full. */
static void units_grow(struct sections *sections)
{
	struct unit **old = sections->units;
	size_t old_slots = sections->unit_slots;

	if (sections->unit_count * 2 < old_slots)
		return;
	sections->unit_slots = old_slots ? old_slots * 2 : 64;
	sections->units =
		arena_array(sections->dwarf->arena, struct unit *, sections->unit_slots);
	for (size_t i = 0; i < old_slots; i++)
		if (old[i])
			sections->units[unit_slot(sections, old[i]->off)] = old[i];
}

struct unit *unit_at(struct sections *sections, uint64_t off)
{
	struct unit read, *unit;
	size_t slot;

	units_grow(sections);
	slot = unit_slot(sections, off);
	if (sections->units[slot])
		return sections->units[slot];
	if (!unit_need(sections, off) || !unit_read(sections, off, &read))
		return NULL;
	unit = arena_new(sections->dwarf->arena, struct unit);
	*unit = read;
	sections->units[slot] = unit;
	sections->unit_count++;
	return unit;
}

static void note_damaged_unit(struct sections *sections, uint64_t off)
{
	dwarf_note(sections->dwarf, "%s: damaged unit at 0x%llx", sections->elf->name,
		   (unsigned long long)off);
}

static void sparse_index(struct sections *sections)
{
	struct sparse_extents extents;
	struct err e;
	uint64_t end;

	if (!sparse_need_index(sections->sparse, &e)) {
		dwarf_note(sections->dwarf, "%s: section .debug_info: %s", sections->elf->name,
			   e.text);
		return;
	}
	extents = sparse_extents(sections->sparse);
	sections->extents.at = extents.at;
	sections->extents.count = sections->extents.capacity = extents.count;
	end = extents.count ? extents.at[extents.count - 1].end : 0;
	if (end < sections->at[SECTION_INFO].len)
		note_damaged_unit(sections, end);
}

void units_index(struct sections *sections)
{
	struct bytes info = section_bytes(sections, SECTION_INFO);
	struct reader r = reader_over(info);
	struct arena *arena = sections->dwarf->arena;
	size_t padding = 0;

	if (sections->indexed)
		return;
	sections->indexed = true;
	if (sections->sparse && !sections->lazy[SECTION_INFO]) {
		sparse_index(sections);
		return;
	}
	while (reader_more(&r)) {
		struct reader unit = r;
		uint64_t off = reader_offset(&r), end;
		uint8_t offset_size;

		section_need(sections, SECTION_INFO, off, LENGTH_SIZE);
		if (!unit_length_read(&unit, &offset_size)) {
			note_damaged_unit(sections, off);
			break;
		}
		end = (uint64_t)(unit.end - unit.begin);
		padding += end - off < UNIT_SIZE_MIN;
		if (padding > UNIT_PADDING_MAX || sections->extents.count == UNITS_MAX) {
			note_damaged_unit(sections, off);
			break;
		}
		*vec_push(arena, &sections->extents) = (struct unit_extent){off, end};
		r.at = unit.end;
		sections_touched(sections, (uint64_t)64 << 10);
	}
}

struct unit *unit_containing(struct sections *sections, uint64_t die_off)
{
	size_t low = 0, high;

	units_index(sections);
	high = sections->extents.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (die_off >= sections->extents.at[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == sections->extents.count || die_off < sections->extents.at[low].off)
		return NULL;
	return unit_at(sections, sections->extents.at[low].off);
}

const struct abbrevs *unit_abbrevs(struct unit *unit)
{
	struct sections *sections = unit->sections;

	if (!unit->abbrevs || unit->abbrevs_generation != sections->abbrevs.generation) {
		unit->abbrevs = abbrevs_at(&sections->abbrevs, sections->dwarf,
					   section_bytes(sections, SECTION_ABBREV),
					   unit->abbrev_off, unit->encoding);
		unit->abbrevs_generation = sections->abbrevs.generation;
	}
	return unit->abbrevs;
}

struct bytes unit_section(struct unit *unit, enum section_id id)
{
	const struct contribution *part;

	if (unit->skeleton && (id == SECTION_ADDR || id == SECTION_RANGES))
		return section_bytes(unit->skeleton->sections, id);
	if (!unit->contributions || !unit->contributions[id].present)
		return section_bytes(unit->sections, id);
	part = &unit->contributions[id];
	return bytes_part(section_bytes(unit->sections, id), part->off, part->size);
}

uint64_t unit_table_base(const struct unit *unit, const struct form_value *base,
			 unsigned header_size)
{
	if (base->form)
		return base->u;
	return unit->encoding.version >= 5 ? header_size : 0;
}

/* Where a string ends is seen when it has been read. */
static void string_need(struct sections *sections, enum section_id id, uint64_t off)
{
	struct bytes section = section_bytes(sections, id);
	uint64_t len = STRING_USUAL;

	while (sections->lazy[id] && off < section.len) {
		uint64_t have = len < section.len - off ? len : section.len - off;

		section_need(sections, id, off, have);
		if (have < len || memchr(section.at + off, 0, have))
			return;
		len *= 4;
	}
}

/* To look for the end is work: many may point
 * into one that is long. */
static const char *string_in(struct sections *sections, enum section_id id, uint64_t off)
{
	struct bytes section = section_bytes(sections, id), rest;
	const uint8_t *end;

	string_need(sections, id, off);
	rest = bytes_from(section, off);
	end = rest.len ? memchr(rest.at, 0, rest.len) : NULL;
	return dwarf_work(sections->dwarf, end ? (uint64_t)(end - rest.at) : rest.len) && end
		       ? (const char *)rest.at
		       : NULL;
}

static const char *indexed_string(struct unit *unit, uint64_t index)
{
	uint64_t base = unit_table_base(unit, &unit->str_offsets_base,
					TABLE_HEADER(unit->encoding.offset_size));
	uint64_t off;
	struct reader r;

	if (__builtin_mul_overflow(index, unit->encoding.offset_size, &off) ||
	    __builtin_add_overflow(off, base, &off))
		return NULL;
	r = reader_at(unit_section(unit, SECTION_STR_OFFSETS), off);
	off = read_offset(&r, unit->encoding);
	if (reader_failed(&r))
		return NULL;
	return string_in(unit->sections, SECTION_STR, off);
}

const char *unit_string(struct unit *unit, const struct form_value *value)
{
	struct sections *alternate;

	switch (value->form) {
	case DW_FORM_string:
		return (const char *)value->block.at;
	case DW_FORM_strp:
		return string_in(unit->sections, SECTION_STR, value->u);
	case DW_FORM_line_strp:
		return string_in(unit->sections, SECTION_LINE_STR, value->u);
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		alternate = sections_alternate(unit->sections);
		return alternate ? string_in(alternate, SECTION_STR, value->u) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return indexed_string(unit, value->u);
	default:
		return NULL;
	}
}

bool unit_address_indexed(struct unit *unit, uint64_t index, uint64_t *ea)
{
	/* The base is the skeleton's: the split file has no addresses. */
	const struct unit *owner = unit->skeleton ? unit->skeleton : unit;
	uint64_t base = unit_table_base(owner, &owner->addr_base,
					TABLE_HEADER(owner->encoding.offset_size));
	uint64_t off;
	struct reader r;

	if (__builtin_mul_overflow(index, unit->encoding.address_size, &off) ||
	    __builtin_add_overflow(off, base, &off))
		return false;
	r = reader_at(unit_section(unit, SECTION_ADDR), off);
	*ea = read_address(&r, unit->encoding);
	return !reader_failed(&r);
}

bool unit_address(struct unit *unit, const struct form_value *value, uint64_t *ea)
{
	switch (value->form) {
	case DW_FORM_addr:
		*ea = value->u;
		return true;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return unit_address_indexed(unit, value->u, ea);
	default:
		return false;
	}
}

uint64_t unit_base_address(struct unit *unit)
{
	struct unit *owner = unit->skeleton ? unit->skeleton : unit;
	uint64_t base;

	return unit_address(owner, &owner->code.low_pc, &base) ? base : 0;
}

/* References within a package count from the unit, as everywhere; those across units cannot be. */
bool unit_reference(struct unit *unit, const struct form_value *value, struct unit **target,
		    uint64_t *off)
{
	struct sections *sections = unit->sections;

	switch (value->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*target = unit;
		*off = unit->off + value->u;
		return value->u < unit->end - unit->off;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		sections = sections_alternate(sections);
		if (!sections)
			return false;
		break;
	case DW_FORM_ref_addr:
		break;
	default:
		return false;
	}
	*off = value->u;
	if (sections == unit->sections && *off >= unit->off && *off < unit->end)
		*target = unit;
	else
		*target = unit_containing(sections, *off);
	return *target != NULL;
}
