#include "dwarf/ranges.h"

#include "dwarf/context.h"

/* Before the offsets of a .debug_rnglists table: length, version, sizes, offset count. */
#define RNGLISTS_HEADER(offset_size) ((offset_size) == 8 ? 20u : 12u)

static uint64_t address_max(struct encoding encoding)
{
	return encoding.address_size == 8 ? UINT64_MAX : UINT32_MAX;
}

/* A length as high_pc is any constant; version 2 and 3 had only the address. */
static bool single_range(struct unit *unit, const struct code_attributes *code,
			 struct range *out)
{
	if (!code->high_pc.form || !unit_address(unit, &code->low_pc, &out->low))
		return false;
	if (!unit_address(unit, &code->high_pc, &out->high) &&
	    __builtin_add_overflow(out->low, code->high_pc.u, &out->high))
		return false;
	return true;
}

/* DW_FORM_rnglistx is an index into the table's offsets, which count from the table's base. */
static bool list_5_offset(struct unit *unit, const struct form_value *ranges, uint64_t *off)
{
	uint64_t base = unit_table_base(unit, &unit->rnglists_base,
					RNGLISTS_HEADER(unit->encoding.offset_size));
	uint64_t slot;
	struct reader r;

	if (ranges->form != DW_FORM_rnglistx) {
		*off = ranges->u;
		return true;
	}
	if (__builtin_mul_overflow(ranges->u, unit->encoding.offset_size, &slot) ||
	    __builtin_add_overflow(slot, base, &slot))
		return false;
	r = reader_at(unit_section(unit, SECTION_RNGLISTS), slot);
	section_need(unit->sections, SECTION_RNGLISTS, slot, sizeof(uint64_t));
	*off = read_offset(&r, unit->encoding);
	return !reader_failed(&r) && !__builtin_add_overflow(*off, base, off);
}

struct range_walk range_walk(struct unit *unit, const struct code_attributes *code)
{
	struct range_walk walk = {.unit = unit, .kind = RANGES_END};
	uint64_t off = code->ranges.u;

	if (single_range(unit, code, &walk.single)) {
		walk.kind = RANGES_SINGLE;
		return walk;
	}
	if (!code->ranges.form)
		return walk;
	walk.base = unit_base_address(unit);
	if (unit->encoding.version >= 5) {
		if (!list_5_offset(unit, &code->ranges, &off))
			return walk;
		walk.kind = RANGES_LIST_5;
		walk.r = reader_at(unit_section(unit, SECTION_RNGLISTS), off);
		return walk;
	}
	/* Split units before version 5 share the program's section; the skeleton says where their
	 * part begins. The skeleton's own ranges do not count from there. */
	if (unit->skeleton && unit->skeleton->gnu_ranges_base.form &&
	    __builtin_add_overflow(off, unit->skeleton->gnu_ranges_base.u, &off))
		return walk;
	walk.kind = RANGES_LIST;
	walk.r = reader_at(unit_section(unit, SECTION_RANGES), off);
	return walk;
}

/* A pair of zeros ends the list; the largest address first makes the second the base. */
static bool list_next(struct range_walk *walk, struct range *out)
{
	struct encoding encoding = walk->unit->encoding;
	uint64_t low = read_address(&walk->r, encoding),
		 high = read_address(&walk->r, encoding);

	*out = (struct range){0, 0};
	if (low == 0 && high == 0)
		return false;
	if (low == address_max(encoding)) {
		walk->base = high;
	} else {
		out->low = walk->base + low;
		out->high = walk->base + high;
	}
	return !reader_failed(&walk->r);
}

static void base_set(struct range_walk *walk, uint64_t base)
{
	walk->base = base;
	walk->base_is_dead = base >= address_max(walk->unit->encoding) - 1;
}

static uint64_t indexed(struct range_walk *walk)
{
	uint64_t ea = 0;

	if (!unit_address_indexed(walk->unit, read_uleb(&walk->r), &ea))
		reader_fail(&walk->r);
	return ea;
}

static bool list_5_next(struct range_walk *walk, struct range *out)
{
	struct encoding encoding = walk->unit->encoding;
	struct reader *r = &walk->r;

	*out = (struct range){0, 0};
	switch (read_u8(r)) {
	case DW_RLE_base_addressx:
		base_set(walk, indexed(walk));
		break;
	case DW_RLE_base_address:
		base_set(walk, read_address(r, encoding));
		break;
	case DW_RLE_startx_endx:
		out->low = indexed(walk);
		out->high = indexed(walk);
		break;
	case DW_RLE_startx_length:
		out->low = indexed(walk);
		out->high = out->low + read_uleb(r);
		break;
	case DW_RLE_offset_pair:
		out->low = walk->base + read_uleb(r);
		out->high = walk->base + read_uleb(r);
		if (walk->base_is_dead)
			*out = (struct range){0, 0};
		break;
	case DW_RLE_start_end:
		out->low = read_address(r, encoding);
		out->high = read_address(r, encoding);
		break;
	case DW_RLE_start_length:
		out->low = read_address(r, encoding);
		out->high = out->low + read_uleb(r);
		break;
	case DW_RLE_end_of_list:
	default:
		return false;
	}
	return !reader_failed(r);
}

/* Of an entry: what it is, and two numbers of any kind. */
#define ENTRY_SIZE_MAX 32

static void entry_need(struct range_walk *walk)
{
	struct sections *sections = walk->unit->sections;
	uint64_t off = (uint64_t)(walk->r.at - walk->r.begin);

	if (walk->kind == RANGES_LIST_5)
		section_need(sections, SECTION_RNGLISTS, off, ENTRY_SIZE_MAX);
	else if (walk->kind == RANGES_LIST)
		section_need(walk->unit->skeleton ? walk->unit->skeleton->sections : sections,
			     SECTION_RANGES, off, ENTRY_SIZE_MAX);
}

static bool entry_next(struct range_walk *walk, struct range *out)
{
	if (!dwarf_work(walk->unit->sections->dwarf, 1))
		return false;
	entry_need(walk);
	switch (walk->kind) {
	case RANGES_SINGLE:
		*out = walk->single;
		walk->kind = RANGES_END;
		return true;
	case RANGES_LIST:
		return list_next(walk, out);
	case RANGES_LIST_5:
		return list_5_next(walk, out);
	case RANGES_END:
		break;
	}
	return false;
}

bool range_next(struct range_walk *walk, struct range *out)
{
	while (entry_next(walk, out))
		if (out->low < out->high)
			return true;
	walk->kind = RANGES_END;
	return false;
}
