/*
 * A small program's debug information, the same facts in any of the encodings there are:
 *
 *   0x1100..0x1200  outer: a member function whose declaration has the names, in a.c line 5
 *   0x1110..0x1120    inner, inlined at a.c:42:7
 *   0x1130..0x1138    inner, inlined at a.c:43:0, in a block
 *   0x1132..0x1134      deep, inlined at a.c:44:0
 *   0x1200..0x1210  plain: no linkage name
 *   0x1210..0x1300  lines, but no function
 *
 * Code is 0x1000..0x2000; nothing is known outside 0x1100..0x1300.
 */
#ifndef STACKER_TEST_DWARF_PROGRAM_H
#define STACKER_TEST_DWARF_PROGRAM_H

#include "dwarf/dwarf.h"
#include "dwarf_writer.h"

enum {
	STRP = 1 << 0,          /* names in .debug_str */
	STRX = 1 << 1,          /* names by index */
	ADDRX = 1 << 2,         /* addresses by index */
	LISTS = 1 << 3,         /* ranges as lists, by offset */
	LISTX = 1 << 4,         /* ranges as lists, by index (version 5) */
	ARANGES = 1 << 5,       /* the unit is in .debug_aranges */
	NO_RANGES = 1 << 6,     /* the unit does not say what its code is */
	SIBLINGS = 1 << 7,      /* DW_AT_sibling everywhere */
	CROSS = 1 << 8,         /* inner and deep stand in another unit */
	ALTERNATE = 1 << 9,     /* ... in the dwz file */
	SPLIT = 1 << 10,        /* the unit is in a .dwo */
	PACKAGE = 1 << 11,      /* ... or in a package */
	DIES_IN_TYPE = 1 << 12, /* outer stands below a structure type */
	HIGH_ADDRESS = 1 << 13, /* high_pc is an address, not a length */
	DECOYS = 1 << 14,       /* dead copies of everything at tombstones */
	PACKED = 1 << 15,       /* all sections are compressed */
};

struct program_shape {
	const char *name;
	uint16_t version;
	uint8_t offset_size;
	unsigned flags;
};

#define PROGRAM_DWO_ID UINT64_C(0x1122334455667788)

/* Files and how they are found. Only `main` is there unless the flags say so. */
struct program {
	struct arena arena;
	struct bytes main, split, package, alternate; /* ELF images; len 0: none */
	size_t opened;                                /* companions that were asked for */
	bool companions_missing;                      /* they are not to be had */
	struct elf main_elf, split_elf, package_elf, alternate_elf;
	struct dwarf *dwarf;
};

/* Makes the images. */
void program_make(struct program *program, const struct program_shape *shape);
/* Opens what main is. */
void program_open(struct program *program);
void program_free(struct program *program);

/* NULL when the answers for all of the program are right, else what is wrong. */
const char *program_check(struct program *program);

#endif
