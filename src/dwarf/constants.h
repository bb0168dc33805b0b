/*
 * dwarf/constants: the numbers of the format, one row per fact.
 *
 * Sources: DWARF 5 chapter 7 (and DWARF 2 to 4 where a number was dropped), the GNU and LLVM
 * extensions of split DWARF before version 5, and dwz. Only what this room acts on is listed: an
 * unknown tag or attribute is skipped by its form, so it needs no name.
 */
#ifndef STACKER_DWARF_CONSTANTS_H
#define STACKER_DWARF_CONSTANTS_H

/* clang-format off */

/*
 * Forms, with how their value is stored (enum layout):
 *   FIXED(n)     n bytes
 *   ADDRESS      the unit's address size
 *   OFFSET       4 or 8 bytes, as the unit is 32- or 64-bit DWARF
 *   REFERENCE    DW_FORM_ref_addr: an address in version 2, an OFFSET since
 *   ULEB, SLEB   LEB128
 *   STRING       NUL-terminated in place
 *   BLOCK1/2/4/U a length of 1, 2, 4 bytes or ULEB128, and that many bytes
 *   IMPLICIT     nothing: the value stands in the abbreviation
 *   INDIRECT     a ULEB128 form, then a value of that form
 */
#define DW_FORMS(X)                       \
	X(addr,           0x01, ADDRESS, 0)   \
	X(block2,         0x03, BLOCK2, 0)    \
	X(block4,         0x04, BLOCK4, 0)    \
	X(data2,          0x05, FIXED, 2)     \
	X(data4,          0x06, FIXED, 4)     \
	X(data8,          0x07, FIXED, 8)     \
	X(string,         0x08, STRING, 0)    \
	X(block,          0x09, BLOCKU, 0)    \
	X(block1,         0x0a, BLOCK1, 0)    \
	X(data1,          0x0b, FIXED, 1)     \
	X(flag,           0x0c, FIXED, 1)     \
	X(sdata,          0x0d, SLEB, 0)      \
	X(strp,           0x0e, OFFSET, 0)    \
	X(udata,          0x0f, ULEB, 0)      \
	X(ref_addr,       0x10, REFERENCE, 0) \
	X(ref1,           0x11, FIXED, 1)     \
	X(ref2,           0x12, FIXED, 2)     \
	X(ref4,           0x13, FIXED, 4)     \
	X(ref8,           0x14, FIXED, 8)     \
	X(ref_udata,      0x15, ULEB, 0)      \
	X(indirect,       0x16, INDIRECT, 0)  \
	X(sec_offset,     0x17, OFFSET, 0)    \
	X(exprloc,        0x18, BLOCKU, 0)    \
	X(flag_present,   0x19, FIXED, 0)     \
	X(strx,           0x1a, ULEB, 0)      \
	X(addrx,          0x1b, ULEB, 0)      \
	X(ref_sup4,       0x1c, FIXED, 4)     \
	X(strp_sup,       0x1d, OFFSET, 0)    \
	X(data16,         0x1e, FIXED, 16)    \
	X(line_strp,      0x1f, OFFSET, 0)    \
	X(ref_sig8,       0x20, FIXED, 8)     \
	X(implicit_const, 0x21, IMPLICIT, 0)  \
	X(loclistx,       0x22, ULEB, 0)      \
	X(rnglistx,       0x23, ULEB, 0)      \
	X(ref_sup8,       0x24, FIXED, 8)     \
	X(strx1,          0x25, FIXED, 1)     \
	X(strx2,          0x26, FIXED, 2)     \
	X(strx3,          0x27, FIXED, 3)     \
	X(strx4,          0x28, FIXED, 4)     \
	X(addrx1,         0x29, FIXED, 1)     \
	X(addrx2,         0x2a, FIXED, 2)     \
	X(addrx3,         0x2b, FIXED, 3)     \
	X(addrx4,         0x2c, FIXED, 4)     \
	X(GNU_addr_index, 0x1f01, ULEB, 0)    \
	X(GNU_str_index,  0x1f02, ULEB, 0)    \
	X(GNU_ref_alt,    0x1f20, OFFSET, 0)  \
	X(GNU_strp_alt,   0x1f21, OFFSET, 0)

#define DW_TAGS(X)                \
	X(array_type,         0x01)   \
	X(class_type,         0x02)   \
	X(entry_point,        0x03)   \
	X(enumeration_type,   0x04)   \
	X(formal_parameter,   0x05)   \
	X(label,              0x0a)   \
	X(lexical_block,      0x0b)   \
	X(compile_unit,       0x11)   \
	X(structure_type,     0x13)   \
	X(union_type,         0x17)   \
	X(inlined_subroutine, 0x1d)   \
	X(module,             0x1e)   \
	X(with_stmt,          0x22)   \
	X(catch_block,        0x25)   \
	X(subprogram,         0x2e)   \
	X(try_block,          0x32)   \
	X(namespace,          0x39)   \
	X(partial_unit,       0x3c)   \
	X(imported_unit,      0x3d)   \
	X(type_unit,          0x41)   \
	X(skeleton_unit,      0x4a)

#define DW_ATTRIBUTES(X)              \
	X(sibling,            0x01)       \
	X(name,               0x03)       \
	X(stmt_list,          0x10)       \
	X(low_pc,             0x11)       \
	X(high_pc,            0x12)       \
	X(language,           0x13)       \
	X(comp_dir,           0x1b)       \
	X(inline,             0x20)       \
	X(abstract_origin,    0x31)       \
	X(declaration,        0x3c)       \
	X(specification,      0x47)       \
	X(ranges,             0x55)       \
	X(call_column,        0x57)       \
	X(call_file,          0x58)       \
	X(call_line,          0x59)       \
	X(signature,          0x69)       \
	X(linkage_name,       0x6e)       \
	X(str_offsets_base,   0x72)       \
	X(addr_base,          0x73)       \
	X(rnglists_base,      0x74)       \
	X(dwo_name,           0x76)       \
	X(loclists_base,      0x8c)       \
	X(MIPS_linkage_name,  0x2007)     \
	X(GNU_dwo_name,       0x2130)     \
	X(GNU_dwo_id,         0x2131)     \
	X(GNU_ranges_base,    0x2132)     \
	X(GNU_addr_base,      0x2133)

/* Unit header types, DWARF 5 table 7.2. */
#define DW_UNIT_TYPES(X)     \
	X(compile,       0x01)   \
	X(type,          0x02)   \
	X(partial,       0x03)   \
	X(skeleton,      0x04)   \
	X(split_compile, 0x05)   \
	X(split_type,    0x06)

/* Range list entries, DWARF 5 table 7.30. */
#define DW_RANGE_ENTRIES(X) \
	X(end_of_list,   0x00)  \
	X(base_addressx, 0x01)  \
	X(startx_endx,   0x02)  \
	X(startx_length, 0x03)  \
	X(offset_pair,   0x04)  \
	X(base_address,  0x05)  \
	X(start_end,     0x06)  \
	X(start_length,  0x07)

#define DW_LINE_STANDARD(X)     \
	X(extended_op,        0x00) \
	X(copy,               0x01) \
	X(advance_pc,         0x02) \
	X(advance_line,       0x03) \
	X(set_file,           0x04) \
	X(set_column,         0x05) \
	X(negate_stmt,        0x06) \
	X(set_basic_block,    0x07) \
	X(const_add_pc,       0x08) \
	X(fixed_advance_pc,   0x09) \
	X(set_prologue_end,   0x0a) \
	X(set_epilogue_begin, 0x0b) \
	X(set_isa,            0x0c)

#define DW_LINE_EXTENDED(X)    \
	X(end_sequence,      0x01) \
	X(set_address,       0x02) \
	X(define_file,       0x03) \
	X(set_discriminator, 0x04)

/* What a column of a version 5 file table holds, DWARF 5 table 7.27. */
#define DW_LINE_CONTENTS(X)    \
	X(path,            0x1)    \
	X(directory_index, 0x2)    \
	X(timestamp,       0x3)    \
	X(size,            0x4)    \
	X(MD5,             0x5)

/*
 * Columns of a package's unit index that are used here. The number is that of DWARF 5 (table 7.1);
 * the older format (version 2) has the same for these four and no range lists.
 */
#define DW_PACKAGE_SECTIONS(X) \
	X(INFO,        1)          \
	X(ABBREV,      3)          \
	X(LINE,        4)          \
	X(STR_OFFSETS, 6)          \
	X(RNGLISTS,    8)

/* clang-format on */

#define X(name, value, ...) DW_FORM_##name = (value),
enum dw_form { DW_FORMS(X) };
#undef X

#define X(name, value) DW_TAG_##name = (value),
enum dw_tag { DW_TAGS(X) };
#undef X

#define X(name, value) DW_AT_##name = (value),
enum dw_attribute { DW_ATTRIBUTES(X) };
#undef X

#define X(name, value) DW_UT_##name = (value),
enum dw_unit_type { DW_UNIT_TYPES(X) };
#undef X

#define X(name, value) DW_RLE_##name = (value),
enum dw_range_entry { DW_RANGE_ENTRIES(X) };
#undef X

#define X(name, value) DW_LNS_##name = (value),
enum dw_line_standard { DW_LINE_STANDARD(X) };
#undef X

#define X(name, value) DW_LNE_##name = (value),
enum dw_line_extended { DW_LINE_EXTENDED(X) };
#undef X

#define X(name, value) DW_LNCT_##name = (value),
enum dw_line_content { DW_LINE_CONTENTS(X) };
#undef X

#define X(name, value) DW_SECT_##name = (value),
enum dw_package_section { DW_PACKAGE_SECTIONS(X) };
#undef X

#endif
