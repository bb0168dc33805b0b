/*
 * dwarf/sections: the debug sections of one ELF file, loaded when first asked for.
 *
 * Five kinds of file have them: the file itself or its separate debug file, a split unit's .dwo, a
 * package of those (.dwp), and the supplementary file that dwz makes.
 */
#ifndef STACKER_DWARF_SECTIONS_H
#define STACKER_DWARF_SECTIONS_H

#include "dwarf/abbrev.h"
#include "elf/elf.h"

struct dwarf;
struct lazy;
struct points;
struct sparse;
struct unit;

/* In a split file the names end in ".dwo". */
#define DWARF_SECTIONS(X)                    \
	X(INFO, ".debug_info")               \
	X(ABBREV, ".debug_abbrev")           \
	X(STR, ".debug_str")                 \
	X(LINE, ".debug_line")               \
	X(LINE_STR, ".debug_line_str")       \
	X(STR_OFFSETS, ".debug_str_offsets") \
	X(ADDR, ".debug_addr")               \
	X(RANGES, ".debug_ranges")           \
	X(RNGLISTS, ".debug_rnglists")       \
	X(ARANGES, ".debug_aranges")         \
	X(CU_INDEX, ".debug_cu_index")
enum section_id {
#define X(id, name) SECTION_##id,
	DWARF_SECTIONS(X)
#undef X
		SECTION_COUNT
};

/* Where a unit lies in its section: [off, end). */
struct unit_extent {
	uint64_t off, end;
};

struct sections {
	struct dwarf *dwarf;
	struct elf *elf;
	bool split; /* names end in ".dwo" */
	bool loaded[SECTION_COUNT];
	struct bytes at[SECTION_COUNT];
	bool few_units;        /* are asked for: by points that takes less than reading all */
	struct points *points; /* NULL: none are known, nor wanted */
	struct lazy
		*lazy[SECTION_COUNT]; /* only what section_need asked for is there; NULL: all */
	struct sparse *sparse; /* of .debug_info, unless it is lazy; NULL: all of it is there */
	uint64_t info_touched; /* bytes of .debug_info read since pages were given back */
	struct abbrev_cache abbrevs;
	struct unit **units; /* those that were opened: a hash table by offset */
	size_t unit_count, unit_slots;
	VEC(struct unit_extent) extents; /* all units in file order, once `indexed` */
	bool indexed;
	struct sections *alternate; /* the dwz file, NULL: none */
	bool alternate_tried;
};

void sections_init(struct sections *sections, struct dwarf *dwarf, struct elf *elf, bool split);

/* A section's contents; empty when it is absent or damaged (which is noted). */
struct bytes section_bytes(struct sections *sections, enum section_id id);

void section_need_lazy(struct sections *sections, enum section_id id, uint64_t off,
		       uint64_t len);
/* To be called before contents are read of a section that may be lazy: .debug_info and those that
 * sections.c names. */
static inline void section_need(struct sections *sections, enum section_id id, uint64_t off,
				uint64_t len)
{
	if (sections->lazy[id])
		section_need_lazy(sections, id, off, len);
}

/* Says that `bytes` of .debug_info were read and will hardly be needed again. Now and then the
 * pages of the section are given back to the kernel, which has them in its page cache: what is
 * resident stays small however large the file is. */
void sections_touched(struct sections *sections, uint64_t bytes);

/* Bytes in all loaded sections and the file. */
uint64_t sections_size(const struct sections *sections);

/* The dwz file that .gnu_debugaltlink or .debug_sup names; NULL: none. */
struct sections *sections_alternate(struct sections *sections);

#endif
