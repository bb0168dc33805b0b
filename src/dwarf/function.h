/*
 * dwarf/function: which function, and which functions inlined into it, hold an address.
 *
 * One pass over the unit's tree of entries. Only entries that have code are read; whatever can
 * have none is stepped over, in one leap where the producer left DW_AT_sibling. Nothing is
 * allocated but for the functions that hold an address that was asked for.
 *
 * The innermost holder is the entry whose range begins last; of several that begin together the one
 * that stands last in the tree, which for nested entries is the inner one.
 */
#ifndef STACKER_DWARF_FUNCTION_H
#define STACKER_DWARF_FUNCTION_H

#include "dwarf/hits.h"
#include "dwarf/names.h"

struct function {
	struct unit *unit;
	uint64_t off;            /* of its entry */
	struct function *parent; /* the one it is inlined (or nested) in; NULL: none */
	bool inlined;            /* DW_TAG_inlined_subroutine */
	uint64_t ea;             /* low_pc, else the lowest range */
	/* Filled by function_describe. */
	bool described;
	struct function_name name;
	bool has_call_file;
	uint64_t call_file; /* index into the unit's line table */
	uint32_t call_line, call_column;
};

/* Fills hit->function of all hits that are in one. `unit` is the full unit (not a skeleton);
 * functions live in `scratch`. */
void functions_find(struct unit *unit, struct hits *hits, struct arena *scratch);

/* Reads its name and where it was called, once. */
void function_describe(struct function *function);

#endif
