#include "dwarf/split.h"

#include "dwarf/context.h"

/* The index: a hash table of ids, a parallel table of row numbers (from 1), a row of section
 * numbers, and for each unit a row of offsets and one of sizes (DWARF 5, 7.3.5.3). */
struct package_index {
	uint32_t version, columns, units, slots;
	struct bytes ids, rows, sections, offsets, sizes;
};

static bool index_read(struct bytes bytes, struct package_index *index)
{
	struct reader r = reader_over(bytes);
	uint64_t cells;

	/* Version 5 has 16 bits of version and 16 of padding, version 2 has 32. */
	index->version = read_u32(&r);
	index->columns = read_u32(&r);
	index->units = read_u32(&r);
	index->slots = read_u32(&r);
	if (index->version != 2 && (index->version & 0xffff) != 5)
		return false;
	if (index->slots == 0 || (index->slots & (index->slots - 1)) != 0 ||
	    __builtin_mul_overflow((uint64_t)index->units * index->columns, 4, &cells))
		return false;
	index->ids = read_block(&r, (uint64_t)index->slots * 8);
	index->rows = read_block(&r, (uint64_t)index->slots * 4);
	index->sections = read_block(&r, (uint64_t)index->columns * 4);
	index->offsets = read_block(&r, cells);
	index->sizes = read_block(&r, cells);
	return !reader_failed(&r);
}

static uint32_t word_at(struct bytes words, uint64_t index)
{
	struct reader r = reader_at(words, index * 4);

	return read_u32(&r);
}

/* Open addressing with a second hash as the step; an empty slot has row 0. */
static uint32_t row_find(const struct package_index *index, uint64_t id)
{
	uint64_t mask = index->slots - 1;
	uint64_t slot = id & mask, step = (id >> 32 & mask) | 1;

	for (uint32_t i = 0; i < index->slots; i++) {
		struct reader r = reader_at(index->ids, slot * 8);
		uint32_t row = word_at(index->rows, slot);

		if (row == 0)
			break;
		if (read_u64(&r) == id)
			return row <= index->units ? row : 0;
		slot = (slot + step) & mask;
	}
	return 0;
}

static enum section_id package_section(uint32_t version, uint32_t number)
{
	switch (number) {
	case DW_SECT_INFO:
		return SECTION_INFO;
	case DW_SECT_ABBREV:
		return SECTION_ABBREV;
	case DW_SECT_LINE:
		return SECTION_LINE;
	case DW_SECT_STR_OFFSETS:
		return SECTION_STR_OFFSETS;
	case DW_SECT_RNGLISTS: /* in version 2 the number of macros */
		return version == 2 ? SECTION_COUNT : SECTION_RNGLISTS;
	default:
		return SECTION_COUNT;
	}
}

bool package_find(struct bytes bytes, uint64_t id, struct contribution *out)
{
	struct package_index index;
	uint32_t row;

	if (!index_read(bytes, &index))
		return false;
	row = row_find(&index, id);
	if (row == 0)
		return false;
	for (uint32_t column = 0; column < index.columns; column++) {
		uint64_t cell = (uint64_t)(row - 1) * index.columns + column;
		enum section_id section =
			package_section(index.version, word_at(index.sections, column));

		if (section == SECTION_COUNT)
			continue;
		out[section] = (struct contribution){true, word_at(index.offsets, cell),
						     word_at(index.sizes, cell)};
	}
	return out[SECTION_INFO].present;
}

static struct sections *package_of(struct dwarf *dwarf)
{
	struct elf *elf;

	if (dwarf->package_tried)
		return dwarf->package;
	dwarf->package_tried = true;
	elf = dwarf->companions.open_dwp ? dwarf->companions.open_dwp(dwarf->companions.context)
					 : NULL;
	if (!elf)
		return NULL;
	dwarf->package = arena_new(dwarf->arena, struct sections);
	sections_init(dwarf->package, dwarf, elf, true);
	return dwarf->package;
}

static struct unit *unit_keep(struct dwarf *dwarf, const struct unit *read,
			      struct unit *skeleton)
{
	struct unit *unit = arena_new(dwarf->arena, struct unit);

	*unit = *read;
	unit->skeleton = skeleton;
	return unit;
}

static struct unit *package_unit(struct dwarf *dwarf, struct unit *skeleton)
{
	struct sections *package = package_of(dwarf);
	struct contribution *parts;
	struct unit unit;

	if (!package)
		return NULL;
	parts = arena_array(dwarf->arena, struct contribution, SECTION_COUNT);
	if (!package_find(section_bytes(package, SECTION_CU_INDEX), skeleton->dwo_id, parts) ||
	    !unit_read_contribution(package, parts[SECTION_INFO].off, parts, &unit))
		return NULL;
	return unit_keep(dwarf, &unit, skeleton);
}

static struct sections *dwo_open(struct dwarf *dwarf, struct unit *skeleton, const char *name)
{
	const struct dwarf_companions *companions = &dwarf->companions;
	const char *directory = unit_string(skeleton, &skeleton->comp_dir);
	struct sections *sections;
	struct elf *elf = companions->open_dwo
				  ? companions->open_dwo(companions->context, name, directory,
							 skeleton->dwo_id)
				  : NULL;

	if (!elf)
		return NULL;
	for (size_t i = 0; i < dwarf->split_files.count; i++)
		if (dwarf->split_files.at[i]->elf == elf)
			return dwarf->split_files.at[i];
	sections = arena_new(dwarf->arena, struct sections);
	sections_init(sections, dwarf, elf, true);
	*vec_push(dwarf->arena, &dwarf->split_files) = sections;
	return sections;
}

static struct unit *dwo_unit(struct dwarf *dwarf, struct unit *skeleton, const char *name)
{
	struct sections *sections = dwo_open(dwarf, skeleton, name);
	struct unit unit;

	if (!sections)
		return NULL;
	units_index(sections);
	for (size_t i = 0; i < sections->extents.count; i++)
		if (unit_read(sections, sections->extents.at[i].off, &unit) &&
		    unit.has_dwo_id && unit.dwo_id == skeleton->dwo_id)
			return unit_keep(dwarf, &unit, skeleton);
	return NULL;
}

struct unit *split_unit(struct unit *unit)
{
	struct dwarf *dwarf = unit->sections->dwarf;
	const char *name;

	if (unit->split_tried || !unit->has_dwo_id || unit->skeleton)
		return unit->split;
	unit->split_tried = true;
	name = unit_string(unit, &unit->dwo_name);
	unit->split = package_unit(dwarf, unit);
	if (!unit->split && name)
		unit->split = dwo_unit(dwarf, unit, name);
	if (!unit->split)
		dwarf_note(dwarf, "%s: split debug file %s not found", dwarf->main.elf->name,
			   name ? name : "(unnamed)");
	return unit->split;
}
