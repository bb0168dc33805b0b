/*
 * dwarf/abbrev: abbreviation tables (DWARF 5, 7.5.3): what each kind of entry (DIE) consists of.
 *
 * Nearly all entries are only stepped over. So each abbreviation is compiled, once, to a few steps
 * ("4 bytes, a LEB128, 2 bytes, the end") in which neighbours of fixed size are one step; the
 * attributes themselves are read from the table in place, for the few entries that matter.
 */
#ifndef STACKER_DWARF_ABBREV_H
#define STACKER_DWARF_ABBREV_H

#include "base/arena.h"
#include "dwarf/form.h"

struct dwarf;

/* What an entry is to somebody who looks for code. */
enum abbrev_role {
	ROLE_PLAIN, /* a type, a variable, ...: has no code and usually nothing below it has */
	ROLE_SCOPE, /* namespace, block, unit: code may be below it */
	ROLE_FUNCTION, /* subprogram or inlined subroutine with addresses */
	ROLE_BARREN,   /* the same without addresses: a declaration, an abstract instance */
};

enum skip_kind {
	SKIP_END,  /* the entry ends here */
	SKIP_MORE, /* nothing: the step before it was full */
	SKIP_LEB,
	SKIP_STRING,
	SKIP_BLOCK1,
	SKIP_BLOCK2,
	SKIP_BLOCK4,
	SKIP_BLOCKU,
	SKIP_INDIRECT,
	SKIP_SIBLING1, /* DW_AT_sibling as DW_FORM_ref1, ref2, ref4, ref8, ref_udata */
	SKIP_SIBLING2,
	SKIP_SIBLING4,
	SKIP_SIBLING8,
	SKIP_SIBLINGU,
	SKIP_UNKNOWN, /* a form nobody knows: the unit cannot be read beyond */
};

/* First `advance` bytes, then what the kind says. */
struct skip_step {
	uint16_t advance;
	uint8_t kind;
};

struct abbrev {
	uint64_t code;
	const uint8_t *attributes; /* (name, form) pairs, within the table */
	uint32_t first_step;       /* in the table's steps */
	uint16_t tag;
	uint8_t role;
	bool children;
};

struct abbrevs {
	uint64_t off;             /* key: where in .debug_abbrev ... */
	struct encoding encoding; /* ... and for what sizes it was compiled */
	const uint8_t *end;       /* of the section */
	VEC(struct abbrev)
	list; /* list.at[i].code is i + 1 for i < dense, the rest is sorted */
	size_t dense;
	VEC(struct skip_step) steps;
	struct abbrevs *next; /* in its bucket */
};

#define ABBREV_BUCKETS 256

/* Tables by offset: units share them. */
struct abbrev_cache {
	struct arena arena;
	struct abbrevs *buckets[ABBREV_BUCKETS];
	uint64_t bytes;      /* of .debug_abbrev that are compiled in the arena */
	uint64_t generation; /* how often it was emptied: older pointers are stale */
};

/* The table at `off`, compiled if it is not yet there. NULL when work is used up. A damaged table
 * ends where the damage begins. Valid until abbrev_cache_trim. */
const struct abbrevs *abbrevs_at(struct abbrev_cache *cache, struct dwarf *dwarf,
				 struct bytes section, uint64_t off, struct encoding encoding);

/* Empties a cache that has grown large. */
void abbrev_cache_trim(struct abbrev_cache *cache);
/* Empties it and gives its memory back; it can be used again. */
void abbrev_cache_free(struct abbrev_cache *cache);

const struct abbrev *abbrev_sparse(const struct abbrevs *abbrevs, uint64_t code);

/* The abbreviation of a code; NULL when there is none, as for code 0. */
static inline const struct abbrev *abbrev_of(const struct abbrevs *abbrevs, uint64_t code)
{
	if (code - 1 < abbrevs->dense)
		return &abbrevs->list.at[code - 1];
	return abbrev_sparse(abbrevs, code);
}

#endif
