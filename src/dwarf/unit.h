/*
 * dwarf/unit: a unit's header, the attributes of its root entry, and values that mean something
 * only within it: strings, addresses, references (DWARF 5, 7.5.1, 7.26, 7.27).
 *
 * A split unit (in a .dwo or .dwp) takes from its skeleton what stays in the program's file:
 * addresses, the base of its ranges, the line table.
 */
#ifndef STACKER_DWARF_UNIT_H
#define STACKER_DWARF_UNIT_H

#include "dwarf/die.h"
#include "dwarf/sections.h"

/* The attributes that say what code an entry has. */
struct code_attributes {
	struct form_value low_pc, high_pc, ranges;
};

/* The part of a package's section that belongs to a unit. */
struct contribution {
	bool present;
	uint64_t off, size;
};

struct unit {
	struct sections *sections;
	uint64_t off, die_off, end; /* in .debug_info: header, root entry, end */
	struct encoding encoding;
	uint8_t type; /* DW_UT_*; before version 5 always DW_UT_compile */
	uint64_t abbrev_off;
	const struct contribution
		*contributions;        /* by enum section_id; NULL: not in a package */
	const struct abbrevs *abbrevs; /* cached: see unit_abbrevs */
	uint64_t abbrevs_generation;

	/* Of the root entry, as stored; form 0 where it is absent. */
	uint16_t tag;
	struct code_attributes code;
	struct form_value comp_dir, dwo_name, stmt_list;
	struct form_value str_offsets_base, addr_base, rnglists_base, gnu_ranges_base;
	uint16_t language;
	bool has_dwo_id;
	uint64_t dwo_id;

	struct unit *skeleton; /* of a split unit */
	struct unit *split;    /* of a skeleton, once `split_tried`: NULL: not to be had */
	bool split_tried;
};

/* Reads the header at `off` in .debug_info and the root entry into *unit, without keeping it in
 * the file's table. False for what is no unit we read: damaged, unknown version, type unit. */
bool unit_read(struct sections *sections, uint64_t off, struct unit *unit);
bool unit_read_contribution(struct sections *sections, uint64_t off,
			    const struct contribution *contributions, struct unit *unit);

/* The unit at `off`, read once and kept. NULL: see unit_read. */
struct unit *unit_at(struct sections *sections, uint64_t off);

/* The unit that an entry lies in, or NULL. */
struct unit *unit_containing(struct sections *sections, uint64_t die_off);

/* The largest programs have some hundred thousand. A kilobyte of zeros becomes a megabyte, and each four
 * of them are a unit without contents: some may be padding, many are not. */
#define UNIT_SIZE_MIN 11 /* length, version, offset of abbreviations, size of addresses */
#define UNIT_PADDING_MAX 4096
#define UNITS_MAX ((size_t)1 << 20)

/* Finds where all units of the file lie (sections->extents). The headers are read once. */
void units_index(struct sections *sections);

const struct abbrevs *unit_abbrevs(struct unit *unit);

/* The section that values of this unit refer to: its contribution within a package, its skeleton's
 * file for what is not split. */
struct bytes unit_section(struct unit *unit, enum section_id id);

/* What the value means, or NULL/false when it has another form or points nowhere. */
const char *unit_string(struct unit *unit, const struct form_value *value);
bool unit_address(struct unit *unit, const struct form_value *value, uint64_t *ea);
/* The entry a value refers to and the unit it lies in: maybe another one, maybe in the dwz file. */
bool unit_reference(struct unit *unit, const struct form_value *value, struct unit **target,
		    uint64_t *off);

/* The n-th address of .debug_addr. */
bool unit_address_indexed(struct unit *unit, uint64_t index, uint64_t *ea);

/* What offsets in the unit's range lists count from; 0 when it has no low_pc. */
uint64_t unit_base_address(struct unit *unit);

/* Where the table of offsets that DW_FORM_strx and friends index begins in its section: as the
 * unit says, else after the header of the (only) table. */
uint64_t unit_table_base(const struct unit *unit, const struct form_value *base,
			 unsigned header_size);

#endif
