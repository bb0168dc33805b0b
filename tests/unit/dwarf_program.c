#include "dwarf_program.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/constants.h"
#include "elf_image.h"

#define CODE 0x1000
#define CODE_SIZE 0x1000
#define LANGUAGE_C_PLUS_PLUS 4

/* One file's sections while they are written. */
struct sheets {
	struct writer info, abbrev, str, str_offsets, line, addr, ranges, rnglists, aranges;
};

struct builder {
	struct program *program;
	struct program_shape shape;
	struct sheets main, split, alternate;
	struct sheets *unit;  /* where the unit's entries go: main or split */
	struct sheets *names; /* where inner and deep go: main, or alternate */
	uint64_t inner, deep; /* offsets of their entries in .debug_info */
	size_t unit_off;      /* of the unit that is being written */
	size_t list_slot;     /* of .debug_rnglists' offsets, the next free one */
	size_t list_base;
	unsigned address_count, string_count;
};

static bool has(const struct builder *b, unsigned flag)
{
	return (b->shape.flags & flag) != 0;
}

static bool is_split(const struct builder *b)
{
	return has(b, SPLIT | PACKAGE);
}

/* ---- Values in the form that the shape says ---- */

static unsigned string_form(const struct builder *b, const struct sheets *in)
{
	if (in == &b->alternate || in != b->unit)
		return DW_FORM_string;
	if (has(b, STRX))
		return b->shape.version >= 5 ? DW_FORM_strx : DW_FORM_GNU_str_index;
	return has(b, STRP) ? DW_FORM_strp : DW_FORM_string;
}

static void put_name(struct builder *b, struct sheets *in, const char *text)
{
	unsigned form = string_form(b, in);

	if (form == DW_FORM_string) {
		put_string(&in->info, text);
		return;
	}
	if (form == DW_FORM_strp) {
		put_offset(&in->info, in->str.out.count);
	} else {
		put_uleb(&in->info, b->string_count++);
		put_offset(&in->str_offsets, in->str.out.count);
	}
	put_string(&in->str, text);
}

static unsigned address_form(const struct builder *b)
{
	if (!has(b, ADDRX))
		return DW_FORM_addr;
	return b->shape.version >= 5 ? DW_FORM_addrx : DW_FORM_GNU_addr_index;
}

static void put_ea(struct builder *b, uint64_t ea)
{
	if (!has(b, ADDRX)) {
		put_address(&b->unit->info, ea);
		return;
	}
	/* The addresses stay in the program's own file. */
	put_uleb(&b->unit->info, b->address_count++);
	put_address(&b->main.addr, ea);
}

static unsigned high_form(const struct builder *b)
{
	return has(b, HIGH_ADDRESS) ? address_form(b) : DW_FORM_udata;
}

static void put_low_high(struct builder *b, uint64_t low, uint64_t high)
{
	put_ea(b, low);
	if (has(b, HIGH_ADDRESS))
		put_ea(b, high);
	else
		put_uleb(&b->unit->info, high - low);
}

static unsigned list_form(const struct builder *b)
{
	if (has(b, LISTX))
		return DW_FORM_rnglistx;
	return b->shape.version >= 4       ? DW_FORM_sec_offset
	       : b->shape.offset_size == 8 ? DW_FORM_data8
					   : DW_FORM_data4;
}

/* Every way there is to say a range, dead and empty ones among them. */
static void put_list_5(struct builder *b, struct writer *w, uint64_t low, uint64_t high)
{
	uint64_t middle = low + (high - low) / 2;

	put_u8(w, DW_RLE_start_length);
	put_address(w, UINT64_MAX);
	put_uleb(w, 0x10);
	put_u8(w, DW_RLE_base_address);
	put_address(w, UINT64_MAX - 1);
	put_u8(w, DW_RLE_offset_pair);
	put_uleb(w, 0x1000);
	put_uleb(w, 0x2000);
	put_u8(w, DW_RLE_base_address);
	put_address(w, low - 0x20);
	put_u8(w, DW_RLE_offset_pair);
	put_uleb(w, 0x20);
	put_uleb(w, 0x20 + middle - low);
	if (has(b, ADDRX)) {
		put_u8(w, DW_RLE_base_addressx);
		put_uleb(w, b->address_count++);
		put_address(&b->main.addr, middle - 1);
		put_u8(w, DW_RLE_offset_pair);
		put_uleb(w, 1);
		put_uleb(w, 1 + (high - middle) / 2);
		put_u8(w, DW_RLE_startx_endx);
		put_uleb(w, b->address_count++);
		put_uleb(w, b->address_count++);
		put_address(&b->main.addr, middle + (high - middle) / 2);
		put_address(&b->main.addr, high - 1);
		put_u8(w, DW_RLE_startx_length);
		put_uleb(w, b->address_count++);
		put_address(&b->main.addr, high - 1);
		put_uleb(w, 1);
	} else {
		put_u8(w, DW_RLE_start_end);
		put_address(w, middle);
		put_address(w, high);
	}
	put_u8(w, DW_RLE_end_of_list);
}

static void put_list_2(struct writer *w, uint64_t base, uint64_t low, uint64_t high)
{
	uint64_t middle = low + (high - low) / 2;

	put_address(w, low - base);
	put_address(w, middle - base);
	put_address(w, 1); /* empty */
	put_address(w, 1);
	put_address(w, UINT64_MAX);
	put_address(w, middle - 8);
	put_address(w, 8);
	put_address(w, 8 + high - middle);
	put_address(w, 0);
	put_address(w, 0);
}

/* The value of DW_AT_ranges: a list of [low, high), and where it is. `base` is the unit's low_pc. */
static void put_list(struct builder *b, struct writer *out, uint64_t base, uint64_t low,
		     uint64_t high)
{
	struct sheets *in = out == &b->main.info ? &b->main : b->unit;
	struct writer *w = b->shape.version >= 5 ? &in->rnglists : &b->main.ranges;
	uint64_t off = w->out.count, slot;

	if (b->shape.version < 5) {
		put_offset(out, is_split(b) && out == &b->split.info ? off - 16 : off);
		put_list_2(w, base, low, high);
		return;
	}
	if (has(b, LISTX)) {
		slot = off - b->list_base;
		memcpy(w->out.at + b->list_base + b->list_slot * b->shape.offset_size, &slot,
		       b->shape.offset_size);
		put_uleb(out, b->list_slot++);
	} else {
		put_offset(out, off);
	}
	put_list_5(b, w, low, high);
}

/* ---- Abbreviations ---- */

enum {
	ROOT = 1,
	ABSTRACT,
	TYPE,
	DECLARATION,
	MEMBER,
	FUNCTION,
	BLOCK,
	INLINED,
	INLINED_LIST,
	PLAIN_TYPE,
	VARIABLE,
	SKELETON,
};

static void put_pair(struct writer *w, unsigned name, unsigned form)
{
	put_uleb(w, name);
	put_uleb(w, form);
}

static void abbrev_begin(struct writer *w, unsigned code, unsigned tag, bool children)
{
	put_uleb(w, code);
	put_uleb(w, tag);
	put_u8(w, children);
}

static void abbrev_sibling(const struct builder *b, struct writer *w)
{
	if (has(b, SIBLINGS))
		put_pair(w, DW_AT_sibling, DW_FORM_ref4);
}

static void root_abbrev(struct builder *b, struct sheets *in)
{
	struct writer *w = &in->abbrev;

	abbrev_begin(w, ROOT, DW_TAG_compile_unit, true);
	put_pair(w, DW_AT_name, DW_FORM_string);
	put_pair(w, DW_AT_language, DW_FORM_data1);
	if (in == b->unit && has(b, STRX) && !is_split(b))
		put_pair(w, DW_AT_str_offsets_base, DW_FORM_sec_offset);
	if (in == b->unit && has(b, ADDRX) && !is_split(b))
		put_pair(w, DW_AT_addr_base, DW_FORM_sec_offset);
	if (in == b->unit && has(b, LISTX) && !is_split(b))
		put_pair(w, DW_AT_rnglists_base, DW_FORM_sec_offset);
	if (in == &b->split && b->shape.version < 5)
		put_pair(w, DW_AT_GNU_dwo_id, DW_FORM_data8);
	if (in == &b->main && !is_split(b)) {
		put_pair(w, DW_AT_comp_dir, DW_FORM_string);
		put_pair(w, DW_AT_stmt_list,
			 b->shape.offset_size == 8 ? DW_FORM_data8 : DW_FORM_data4);
		if (!has(b, NO_RANGES))
			put_pair(w, DW_AT_low_pc, address_form(b));
		if (!has(b, NO_RANGES))
			put_pair(w, has(b, LISTS | LISTX) ? DW_AT_ranges : DW_AT_high_pc,
				 has(b, LISTS | LISTX) ? list_form(b) : high_form(b));
	}
	put_u16(w, 0);
}

static unsigned origin_form(const struct builder *b)
{
	if (has(b, ALTERNATE))
		return b->shape.version >= 5 ? DW_FORM_ref_sup4 : DW_FORM_GNU_ref_alt;
	return has(b, CROSS) ? DW_FORM_ref_addr : DW_FORM_ref4;
}

static void inlined_abbrevs(struct builder *b, struct writer *w)
{
	abbrev_begin(w, INLINED, DW_TAG_inlined_subroutine, true);
	put_pair(w, DW_AT_abstract_origin, origin_form(b));
	put_pair(w, DW_AT_low_pc, address_form(b));
	put_pair(w, DW_AT_high_pc, high_form(b));
	put_pair(w, DW_AT_call_file,
		 b->shape.version >= 5 ? DW_FORM_implicit_const : DW_FORM_data1);
	if (b->shape.version >= 5)
		put_sleb(w, 1);
	put_pair(w, DW_AT_call_line, DW_FORM_udata);
	put_pair(w, DW_AT_call_column, DW_FORM_data1);
	abbrev_sibling(b, w);
	put_u16(w, 0);

	abbrev_begin(w, INLINED_LIST, DW_TAG_inlined_subroutine, true);
	put_pair(w, DW_AT_abstract_origin, origin_form(b));
	put_pair(w, DW_AT_ranges, list_form(b));
	put_pair(w, DW_AT_call_file, DW_FORM_data1);
	put_pair(w, DW_AT_call_line, DW_FORM_udata);
	put_pair(w, DW_AT_call_column, DW_FORM_data1);
	abbrev_sibling(b, w);
	put_u16(w, 0);
}

static void abbrevs_make(struct builder *b, struct sheets *in)
{
	struct writer *w = &in->abbrev;
	unsigned name = string_form(b, in);

	root_abbrev(b, in);
	put_abbrev(w, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name, name, DW_AT_linkage_name,
		   name, DW_AT_inline, DW_FORM_data1, 0);
	abbrev_begin(w, TYPE, DW_TAG_structure_type, true);
	put_pair(w, DW_AT_name, DW_FORM_string);
	abbrev_sibling(b, w);
	put_u16(w, 0);
	put_abbrev(w, DECLARATION, DW_TAG_subprogram, false, DW_AT_name, name,
		   DW_AT_linkage_name, name, DW_AT_declaration, DW_FORM_flag, 0);
	abbrev_begin(w, MEMBER, DW_TAG_subprogram, true);
	put_pair(w, DW_AT_specification, DW_FORM_ref4);
	put_pair(w, DW_AT_low_pc, address_form(b));
	put_pair(w, DW_AT_high_pc, high_form(b));
	put_pair(w, 0x40, b->shape.version >= 4 ? DW_FORM_exprloc : DW_FORM_block1);
	abbrev_sibling(b, w);
	put_u16(w, 0);
	put_abbrev(w, FUNCTION, DW_TAG_subprogram, false, DW_AT_name, name, DW_AT_low_pc,
		   address_form(b), DW_AT_high_pc, high_form(b), 0);
	put_abbrev(w, BLOCK, DW_TAG_lexical_block, true, 0);
	inlined_abbrevs(b, w);
	abbrev_begin(w, PLAIN_TYPE, DW_TAG_array_type, true);
	abbrev_sibling(b, w);
	put_u16(w, 0);
	put_abbrev(w, VARIABLE, DW_TAG_formal_parameter, false, DW_AT_name, DW_FORM_string,
		   0x3a, DW_FORM_data1, 0x02, DW_FORM_block1, 0);
	if (b->shape.version >= 5)
		put_abbrev(w, SKELETON, DW_TAG_skeleton_unit, false, DW_AT_dwo_name,
			   DW_FORM_string, DW_AT_comp_dir, DW_FORM_string, DW_AT_stmt_list,
			   DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
			   DW_FORM_udata, DW_AT_addr_base, DW_FORM_sec_offset, 0);
	else
		put_abbrev(w, SKELETON, DW_TAG_compile_unit, false, DW_AT_GNU_dwo_name,
			   DW_FORM_string, DW_AT_comp_dir, DW_FORM_string, DW_AT_stmt_list,
			   b->shape.offset_size == 8 ? DW_FORM_data8 : DW_FORM_data4,
			   DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_udata,
			   DW_AT_GNU_addr_base, DW_FORM_sec_offset, DW_AT_GNU_ranges_base,
			   DW_FORM_sec_offset, DW_AT_GNU_dwo_id, DW_FORM_data8, 0);
	put_u8(w, 0);
}

/* ---- Entries ---- */

static size_t sibling_begin(const struct builder *b, struct writer *w)
{
	if (has(b, SIBLINGS))
		put_u32(w, 0);
	return w->out.count;
}

static void sibling_end(const struct builder *b, struct writer *w, size_t at)
{
	uint32_t off = (uint32_t)(w->out.count - b->unit_off);

	if (has(b, SIBLINGS))
		memcpy(w->out.at + at - 4, &off, 4);
}

static void put_origin(struct builder *b, uint64_t off)
{
	struct writer *w = &b->unit->info;

	if (has(b, ALTERNATE) && b->shape.version < 5)
		put_offset(w, off);
	else if (has(b, ALTERNATE))
		put_u32(w, off);
	else if (has(b, CROSS) && b->shape.version == 2)
		put_address(w, off);
	else if (has(b, CROSS))
		put_offset(w, off);
	else
		put_u32(w, off - b->unit_off);
}

static void put_variable(struct writer *w)
{
	put_u8(w, VARIABLE);
	put_string(w, "x");
	put_u8(w, 1);
	put_u8(w, 2);
	put_u16(w, 0x5091);
}

/* What nobody who looks for code needs. */
static void put_clutter(struct builder *b, int depth)
{
	struct writer *w = &b->unit->info;
	size_t sibling;

	put_u8(w, PLAIN_TYPE);
	sibling = sibling_begin(b, w);
	put_variable(w);
	if (depth)
		put_clutter(b, depth - 1);
	put_u8(w, 0);
	sibling_end(b, w, sibling);
}

static void put_abstract(struct builder *b, struct sheets *in, const char *name,
			 const char *linkage)
{
	put_u8(&in->info, ABSTRACT);
	put_name(b, in, name);
	put_name(b, in, linkage);
	put_u8(&in->info, 1);
}

static size_t put_inlined(struct builder *b, uint64_t base, uint64_t origin, uint64_t low,
			  uint64_t high, unsigned line)
{
	struct writer *w = &b->unit->info;
	bool list = has(b, LISTS | LISTX);

	put_u8(w, list ? INLINED_LIST : INLINED);
	put_origin(b, origin);
	if (list)
		put_list(b, w, base, low, high);
	else
		put_low_high(b, low, high);
	if (list || b->shape.version < 5)
		put_u8(w, 1);
	put_uleb(w, line);
	put_u8(w, line == 42 ? 7 : 0);
	return sibling_begin(b, w);
}

static void inlined_end(struct builder *b, size_t sibling)
{
	put_u8(&b->unit->info, 0);
	sibling_end(b, &b->unit->info, sibling);
}

static void put_outer(struct builder *b, uint64_t declaration, uint64_t shift)
{
	struct writer *w = &b->unit->info;
	uint64_t base = 0x1100;
	size_t sibling, first, second, third;

	put_u8(w, MEMBER);
	put_u32(w, declaration);
	put_low_high(b, 0x1100 + shift, 0x1200 + shift);
	put_u8(w, 1);
	put_u8(w, 0x9c);
	sibling = sibling_begin(b, w);
	put_variable(w);
	first = put_inlined(b, base, b->inner, 0x1110 + shift, 0x1120 + shift, 42);
	put_variable(w);
	inlined_end(b, first);
	put_u8(w, BLOCK);
	put_clutter(b, 0);
	second = put_inlined(b, base, b->inner, 0x1130 + shift, 0x1138 + shift, 43);
	third = put_inlined(b, base, b->deep, 0x1132 + shift, 0x1134 + shift, 44);
	inlined_end(b, third);
	inlined_end(b, second);
	put_u8(w, 0);
	put_u8(w, 0);
	sibling_end(b, w, sibling);
}

static void put_plain(struct builder *b, uint64_t shift)
{
	put_u8(&b->unit->info, FUNCTION);
	put_name(b, b->unit, "plain");
	put_low_high(b, 0x1200 + shift, 0x1210 + shift);
}

static void put_functions(struct builder *b)
{
	struct writer *w = &b->unit->info;
	uint64_t declaration;
	size_t sibling;

	put_u8(w, TYPE);
	put_string(w, "type");
	sibling = sibling_begin(b, w);
	declaration = w->out.count - b->unit_off;
	put_u8(w, DECLARATION);
	put_name(b, b->unit, "outer");
	put_name(b, b->unit, "_outer");
	put_u8(w, 1);
	if (has(b, DIES_IN_TYPE))
		put_outer(b, declaration, 0);
	put_u8(w, 0);
	sibling_end(b, w, sibling);
	if (!has(b, DIES_IN_TYPE))
		put_outer(b, declaration, 0);
	put_plain(b, 0);
	if (has(b, DECOYS)) {
		put_outer(b, declaration, UINT64_C(0) - 0x1100); /* at 0 */
		put_outer(b, declaration, UINT64_C(0) - 0x1101); /* at -1 */
		put_plain(b, UINT64_C(0) - 0x11ff);              /* at 1 */
	}
}

static void root_put(struct builder *b, struct sheets *in)
{
	struct writer *w = &in->info;

	put_u8(w, ROOT);
	put_string(w, "a.c");
	put_u8(w, LANGUAGE_C_PLUS_PLUS);
	if (in == b->unit && has(b, STRX) && !is_split(b))
		put_offset(w, b->shape.offset_size == 8 ? 16 : 8);
	if (in == b->unit && has(b, ADDRX) && !is_split(b))
		put_offset(w, b->shape.offset_size == 8 ? 16 : 8);
	if (in == b->unit && has(b, LISTX) && !is_split(b))
		put_offset(w, b->list_base);
	if (in == &b->split && b->shape.version < 5)
		put_u64(w, PROGRAM_DWO_ID);
	if (in != &b->main || is_split(b))
		return;
	put_string(w, "/src");
	put_offset(w, 0);
	if (has(b, NO_RANGES))
		return;
	put_ea(b, 0x1100);
	if (has(b, LISTS | LISTX))
		put_list(b, w, 0x1100, 0x1100, 0x1300);
	else if (has(b, HIGH_ADDRESS))
		put_ea(b, 0x1300);
	else
		put_uleb(w, 0x200);
}

/* A unit header; version 5 says what kind it is, and kinds that pair have an id. */
static size_t header_put(struct builder *b, struct writer *w, uint8_t type)
{
	size_t begin = length_begin(w);

	b->unit_off = begin - (b->shape.offset_size == 8 ? 12 : 4);
	put_u16(w, b->shape.version);
	if (b->shape.version < 5) {
		put_offset(w, 0);
		put_u8(w, 8);
		return begin;
	}
	put_u8(w, type);
	put_u8(w, 8);
	put_offset(w, 0);
	if (type == DW_UT_skeleton || type == DW_UT_split_compile)
		put_u64(w, PROGRAM_DWO_ID);
	return begin;
}

/* inner and deep, in a unit of their own. */
static void names_unit(struct builder *b)
{
	struct writer *w = &b->names->info;
	size_t begin = header_put(b, w, DW_UT_partial);

	if (b->names == &b->main) {
		/* The other unit's abbreviations would ask for attributes this one has not. */
		size_t abbrev = b->main.abbrev.out.count;

		memcpy(w->out.at + w->out.count -
			       (b->shape.version >= 5 ? b->shape.offset_size
						      : b->shape.offset_size + 1u),
		       &abbrev, b->shape.offset_size);
		put_abbrev(&b->main.abbrev, ROOT, DW_TAG_partial_unit, true, 0);
		put_abbrev(&b->main.abbrev, ABSTRACT, DW_TAG_subprogram, false, DW_AT_name,
			   DW_FORM_string, DW_AT_linkage_name, DW_FORM_string, DW_AT_inline,
			   DW_FORM_data1, 0);
		put_u8(&b->main.abbrev, 0);
		put_u8(w, ROOT);
	} else {
		root_put(b, b->names);
	}
	b->inner = w->out.count;
	put_u8(w, ABSTRACT);
	put_string(w, "inner");
	put_string(w, "_inner");
	put_u8(w, 1);
	b->deep = w->out.count;
	put_u8(w, ABSTRACT);
	put_string(w, "deep");
	put_string(w, "_deep");
	put_u8(w, 1);
	put_u8(w, 0);
	length_end(w, begin);
}

static void skeleton_unit(struct builder *b)
{
	struct writer *w = &b->main.info;
	size_t begin = header_put(b, w, DW_UT_skeleton);
	uint64_t table = b->shape.version < 5 ? 0 : b->shape.offset_size == 8 ? 16 : 8;

	put_u8(w, SKELETON);
	put_string(w, "a.dwo");
	put_string(w, "/src");
	put_offset(w, 0);
	put_address(w, 0x1100);
	put_uleb(w, 0x200);
	put_offset(w, table);
	if (b->shape.version < 5) {
		put_offset(w, 16);
		put_u64(w, PROGRAM_DWO_ID);
	}
	length_end(w, begin);
}

static void code_unit(struct builder *b)
{
	struct writer *w = &b->unit->info;
	size_t begin = header_put(b, w, is_split(b) ? DW_UT_split_compile : DW_UT_compile);

	root_put(b, b->unit);
	put_clutter(b, 2);
	if (!has(b, CROSS | ALTERNATE)) {
		b->inner = w->out.count;
		put_abstract(b, b->unit, "inner", "_inner");
		b->deep = w->out.count;
		put_abstract(b, b->unit, "deep", "_deep");
	}
	put_functions(b);
	put_u8(w, 0);
	length_end(w, begin);
}

/* ---- Other sections ---- */

static void line_make(struct builder *b)
{
	struct writer *w = &b->main.line;
	size_t unit = length_begin(w), header;

	put_u16(w, b->shape.version);
	if (b->shape.version >= 5)
		put_u16(w, 8);
	header = plain_length_begin(w);
	put_u8(w, 1);
	if (b->shape.version >= 4)
		put_u8(w, 1);
	put_bytes(w, "\1\xfb\x0e\x0a\0\1\1\1\1\0\0\0\1", 13);
	if (b->shape.version >= 5)
		put_bytes(w, "\1\1\x08\1/src\0\2\1\x08\2\x0b\2a.c\0\0a.c\0\0", 24);
	else
		put_bytes(w, "\0a.c\0\0\0\0\0", 9);
	plain_length_end(w, header);
	put_bytes(w, "\0\x09\2", 3);
	put_address(w, 0x1100);
	put_bytes(w, "\3\4\1\2\x80\4\0\1\1", 9);
	length_end(w, unit);
}

static void aranges_make(struct builder *b, uint64_t unit_off)
{
	struct writer *w = &b->main.aranges;
	size_t begin = length_begin(w);

	put_u16(w, 2);
	put_offset(w, unit_off);
	put_u16(w, 8);
	while (w->out.count % 16)
		put_u8(w, 0xee); /* padding need not be zero */
	put_address(w, 0);
	put_address(w, 0x2000); /* a dead function */
	put_address(w, 0x1100);
	put_address(w, 0x80);
	put_address(w, 0);
	put_address(w, 0); /* an end too early */
	put_address(w, 0x1180);
	put_address(w, 0x180);
	put_address(w, 0);
	put_address(w, 0);
	length_end(w, begin);
}

static void table_header(struct writer *w, uint16_t version, uint8_t second)
{
	length_begin(w);
	put_u16(w, version);
	put_u8(w, second);
	put_u8(w, 0);
}

/* Lengths in these tables are nothing that anybody relies on. */
static void tables_begin(struct builder *b)
{
	if (b->shape.version >= 5) {
		table_header(&b->main.addr, 5, 8);
		table_header(&b->unit->str_offsets, 5, 0);
		table_header(&b->unit->rnglists, 5, 8);
		put_u32(&b->unit->rnglists, 16);
		b->list_base = b->unit->rnglists.out.count;
		for (int i = 0; i < 16 && has(b, LISTX); i++)
			put_offset(&b->unit->rnglists, 0);
	} else {
		for (int i = 0; i < 16; i++)
			put_u8(&b->main.ranges, 0xff);
	}
}

/* ---- Files ---- */

static struct sheets sheets_begin(struct arena *arena, const struct program_shape *shape)
{
	struct sheets sheets;
	struct writer w = writer_begin(arena, shape->version, shape->offset_size);

	sheets = (struct sheets){w, w, w, w, w, w, w, w, w};
	return sheets;
}

static struct bytes file_make(const struct builder *b, const struct sheets *s,
			      const char *suffix, const struct image_section *extra)
{
	struct arena *arena = &b->program->arena;
	const struct {
		const char *name;
		const struct writer *w;
	} parts[] = {
		{".debug_info", &s->info},       {".debug_abbrev", &s->abbrev},
		{".debug_str", &s->str},         {".debug_str_offsets", &s->str_offsets},
		{".debug_line", &s->line},       {".debug_addr", &s->addr},
		{".debug_ranges", &s->ranges},   {".debug_rnglists", &s->rnglists},
		{".debug_aranges", &s->aranges},
	};
	struct image_section sections[12];
	struct image image = {.sections = sections};

	sections[image.section_count++] = image_code(".text", CODE, CODE_SIZE);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		const char *name = arena_printf(arena, "%s%s", parts[i].name, suffix);
		struct bytes contents = writer_bytes(parts[i].w);

		if (contents.len)
			sections[image.section_count++] =
				has(b, PACKED) ? image_packed(arena, name, contents)
					       : image_plain(name, contents);
	}
	if (extra)
		sections[image.section_count++] = *extra;
	return image_make(arena, &image);
}

/* Two other units come first in each section of the package, as bytes that mean nothing. */
static void package_shift(struct arena *arena, struct writer *w)
{
	struct writer shifted =
		writer_begin(arena, w->encoding.version, w->encoding.offset_size);

	put_string(&shifted, "another unit's");
	put_bytes(&shifted, w->out.at, w->out.count);
	*w = shifted;
}

#define PACKAGE_SHIFT 15

static struct bytes package_index(struct builder *b)
{
	struct writer w = writer_begin(&b->program->arena, b->shape.version, 4);
	bool is_5 = b->shape.version >= 5;
	const struct {
		uint32_t section;
		const struct writer *sheet;
	} columns[] = {{DW_SECT_INFO, &b->split.info},
		       {DW_SECT_ABBREV, &b->split.abbrev},
		       {DW_SECT_STR_OFFSETS, &b->split.str_offsets},
		       {DW_SECT_RNGLISTS, &b->split.rnglists}};

	put_u32(&w, is_5 ? 5 : 2);
	put_u32(&w, 4);
	put_u32(&w, 2);
	put_u32(&w, 4);
	/* The id's slot is 0, which is taken; the step is (0x11223344 & 3) | 1. */
	put_u64(&w, 0x10);
	put_u64(&w, PROGRAM_DWO_ID);
	put_u64(&w, 0);
	put_u64(&w, 0);
	put_u32(&w, 1);
	put_u32(&w, 2);
	put_u32(&w, 0);
	put_u32(&w, 0);
	for (size_t i = 0; i < 4; i++)
		put_u32(&w, columns[i].section);
	for (size_t i = 0; i < 4; i++)
		put_u32(&w, 0);
	for (size_t i = 0; i < 4; i++)
		put_u32(&w, PACKAGE_SHIFT);
	for (size_t i = 0; i < 4; i++)
		put_u32(&w, PACKAGE_SHIFT);
	for (size_t i = 0; i < 4; i++)
		put_u32(&w, columns[i].sheet->out.count - PACKAGE_SHIFT);
	return writer_bytes(&w);
}

static void package_make(struct builder *b)
{
	struct arena *arena = &b->program->arena;
	struct image_section index;

	package_shift(arena, &b->split.info);
	package_shift(arena, &b->split.abbrev);
	package_shift(arena, &b->split.str_offsets);
	package_shift(arena, &b->split.rnglists);
	index = image_plain(".debug_cu_index", package_index(b));
	b->program->package = file_make(b, &b->split, ".dwo", &index);
}

void program_make(struct program *program, const struct program_shape *shape)
{
	struct builder *b = arena_new(&program->arena, struct builder);
	struct image_section link =
		image_plain(".gnu_debugaltlink", (struct bytes){(const uint8_t *)"alt\0id", 6});
	uint64_t code_off;

	*b = (struct builder){.program = program, .shape = *shape};
	b->main = sheets_begin(&program->arena, shape);
	b->split = sheets_begin(&program->arena, shape);
	b->alternate = sheets_begin(&program->arena, shape);
	b->unit = is_split(b) ? &b->split : &b->main;
	b->names = has(b, ALTERNATE) ? &b->alternate : &b->main;
	tables_begin(b);
	abbrevs_make(b, &b->main);
	if (is_split(b))
		abbrevs_make(b, &b->split);
	if (has(b, ALTERNATE))
		abbrevs_make(b, &b->alternate);
	line_make(b);
	if (has(b, CROSS | ALTERNATE))
		names_unit(b);
	code_off = b->main.info.out.count;
	if (is_split(b))
		skeleton_unit(b);
	code_unit(b);
	if (has(b, ARANGES))
		aranges_make(b, code_off);
	program->main = file_make(b, &b->main, "", has(b, ALTERNATE) ? &link : NULL);
	if (has(b, PACKAGE))
		package_make(b);
	else if (has(b, SPLIT))
		program->split = file_make(b, &b->split, ".dwo", NULL);
	if (has(b, ALTERNATE))
		program->alternate = file_make(b, &b->alternate, "", NULL);
}

static struct elf *companion_open(struct program *program, struct elf *elf, struct bytes image)
{
	program->opened++;
	if (program->companions_missing || image.len == 0 ||
	    !elf_open(elf, &program->arena, image, "companion", NULL))
		return NULL;
	return elf;
}

static struct elf *open_dwo(void *context, const char *name, const char *directory, uint64_t id)
{
	struct program *program = context;

	if (strcmp(name, "a.dwo") != 0 || !directory || strcmp(directory, "/src") != 0 ||
	    id != PROGRAM_DWO_ID)
		return NULL;
	return companion_open(program, &program->split_elf, program->split);
}

static struct elf *open_dwp(void *context)
{
	struct program *program = context;

	return companion_open(program, &program->package_elf, program->package);
}

static struct elf *open_alternate(void *context, const char *name, struct bytes build_id)
{
	struct program *program = context;

	if (strcmp(name, "alt") != 0 || build_id.len != 2)
		return NULL;
	return companion_open(program, &program->alternate_elf, program->alternate);
}

void program_open(struct program *program)
{
	struct dwarf_companions companions = {program, open_dwo, open_dwp, open_alternate};

	program->dwarf = NULL;
	if (elf_open(&program->main_elf, &program->arena, program->main, "main", NULL))
		program->dwarf = dwarf_open(&program->arena, &program->main_elf, &companions);
}

void program_free(struct program *program)
{
	arena_free(&program->arena);
}

/* ---- What is right ---- */

struct right {
	uint64_t ea;
	size_t count;
	struct {
		const char *name, *linkage;
		uint32_t line, column;
		uint64_t function_ea;
	} frames[3];
};

static const struct right rights[] = {
	{0x0010, 0, {{0}}},
	{0x1000, 0, {{0}}},
	{0x10ff, 0, {{0}}},
	{0x1100, 1, {{"outer", "_outer", 5, 0, 0x1100}}},
	{0x110f, 1, {{"outer", "_outer", 5, 0, 0x1100}}},
	{0x1110, 2, {{"inner", "_inner", 5, 0, 0x1110}, {"outer", "_outer", 42, 7, 0x1100}}},
	{0x111f, 2, {{"inner", "_inner", 5, 0, 0x1110}, {"outer", "_outer", 42, 7, 0x1100}}},
	{0x1120, 1, {{"outer", "_outer", 5, 0, 0x1100}}},
	{0x1130, 2, {{"inner", "_inner", 5, 0, 0x1130}, {"outer", "_outer", 43, 0, 0x1100}}},
	{0x1132,
	 3,
	 {{"deep", "_deep", 5, 0, 0x1132},
	  {"inner", "_inner", 44, 0, 0x1130},
	  {"outer", "_outer", 43, 0, 0x1100}}},
	{0x1133,
	 3,
	 {{"deep", "_deep", 5, 0, 0x1132},
	  {"inner", "_inner", 44, 0, 0x1130},
	  {"outer", "_outer", 43, 0, 0x1100}}},
	{0x1134, 2, {{"inner", "_inner", 5, 0, 0x1130}, {"outer", "_outer", 43, 0, 0x1100}}},
	{0x11ff, 1, {{"outer", "_outer", 5, 0, 0x1100}}},
	{0x1200, 1, {{"plain", NULL, 5, 0, 0x1200}}},
	{0x120f, 1, {{"plain", NULL, 5, 0, 0x1200}}},
	{0x1210, 1, {{NULL, NULL, 5, 0, 0}}},
	{0x12ff, 1, {{NULL, NULL, 5, 0, 0}}},
	{0x1300, 0, {{0}}},
	{UINT64_MAX - 1, 0, {{0}}},
};

#define RIGHT_COUNT (sizeof rights / sizeof rights[0])

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *answer_check(struct arena *arena, const struct right *right,
				const struct dwarf_answer *answer)
{
	if (answer->frame_count != right->count)
		return arena_printf(arena, "0x%llx: %zu frames", (unsigned long long)right->ea,
				    answer->frame_count);
	for (size_t i = 0; i < right->count; i++) {
		const struct dwarf_frame *f = &answer->frames[i];

		if (!same(f->name, right->frames[i].name) ||
		    !same(f->linkage_name, right->frames[i].linkage) ||
		    !same(f->file, "/src/a.c") || f->line != right->frames[i].line ||
		    f->column != right->frames[i].column ||
		    f->function_ea != right->frames[i].function_ea ||
		    f->inlined != (i + 1 < right->count) ||
		    (f->name && f->language != LANGUAGE_C_PLUS_PLUS && f->language != 0))
			return arena_printf(arena, "0x%llx: frame %zu is %s (%s) %s:%u:%u",
					    (unsigned long long)right->ea, i,
					    f->name ? f->name : "-",
					    f->linkage_name ? f->linkage_name : "-",
					    f->file ? f->file : "-", f->line, f->column);
	}
	return NULL;
}

const char *program_check(struct program *program)
{
	struct dwarf_answer answers[RIGHT_COUNT] = {{0}};
	const char *wrong = NULL;

	if (!program->dwarf)
		return "not opened";
	for (size_t i = 0; i < RIGHT_COUNT; i++)
		answers[i].ea = rights[i].ea;
	dwarf_lookup(program->dwarf, answers, RIGHT_COUNT);
	for (size_t i = 0; i < RIGHT_COUNT && !wrong; i++)
		wrong = answer_check(&program->arena, &rights[i], &answers[i]);
	/* Each one alone too. */
	for (size_t i = 0; i < RIGHT_COUNT && !wrong; i++) {
		struct dwarf_answer answer = {.ea = rights[i].ea};

		dwarf_lookup(program->dwarf, &answer, 1);
		wrong = answer_check(&program->arena, &rights[i], &answer);
	}
	return wrong;
}
