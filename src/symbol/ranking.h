/*
 * symbol/ranking: candidates in the order of the ranking rule (symbol/symtab.h).
 *
 * Apart from symtab, which needs no names to choose: here is all that compares them.
 */
#ifndef STACKER_SYMBOL_RANKING_H
#define STACKER_SYMBOL_RANKING_H

#include "elf/search_table.h"
#include "symbol/candidates.h"

/* Sorts by address and, at one address, from worst to best, in memory of `scratch`; what has no
 * size then ends where rule 2 says, of the starts of `functions` too. */
void candidates_rank(struct candidates *candidates, struct arena *scratch,
		     const struct search_table *functions);

#endif
