/*
 * symbol/candidates: which symbols of a file's tables may name an address at all.
 *
 * Apart from symtab, for this alone reads ELF's tables, and of millions of symbols takes only
 * those that matter for what will be asked. Which of the candidates wins is symtab's ranking
 * rule.
 */
#ifndef STACKER_SYMBOL_CANDIDATES_H
#define STACKER_SYMBOL_CANDIDATES_H

#include "symbol/symtab.h"

/* The tables that are read, from worst to best. */
enum candidate_table {
	CANDIDATE_DYNAMIC,
	CANDIDATE_EMBEDDED,
	CANDIDATE_OWN,
	CANDIDATE_DEBUG,
	CANDIDATE_TABLES
};

#define CANDIDATE_NO_FILE UINT32_MAX

/* Names are offsets in their table's strings, and looked at only where they decide something:
 * the strings of a large program have tens of megabytes. */
struct candidate {
	uint64_t ea, end; /* not sized: the end of its section, until it is ranked */
	uint32_t name_off;
	uint32_t file_off; /* of the STT_FILE symbol's name; CANDIDATE_NO_FILE */
	uint32_t order;    /* of reading: a later table is a better one */
	uint8_t table;     /* enum candidate_table */
	uint8_t bind;      /* 2 global, 1 weak, 0 local */
	bool is_function;  /* sized STT_FUNC: rule 1 */
	bool sized;
};

struct candidates {
	struct candidate *at;
	size_t count;
	struct bytes strings[CANDIDATE_TABLES];
	const char *left_out; /* why a limit left one of the tables out, or NULL */
};

/* In the order of the tables. */
struct candidates candidates_collect(struct arena *arena, const struct symtab_sources *sources,
				     const struct symtab_asked *asked);

/* The versions are part of it. */
const char *candidate_name(const struct candidates *candidates,
			   const struct candidate *candidate);

#endif
