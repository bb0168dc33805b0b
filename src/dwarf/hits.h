/*
 * dwarf/hits: the addresses of one unit that were asked for, and what is found out about them.
 */
#ifndef STACKER_DWARF_HITS_H
#define STACKER_DWARF_HITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct function;

struct line_row {
	uint64_t file; /* index as the line program says */
	uint32_t line, column;
};

struct hit {
	uint64_t ea;
	size_t asked;              /* whose address it is, for the caller */
	struct function *function; /* innermost one that holds ea; NULL: none found */
	uint64_t function_low;     /* beginning of the range of it that holds ea */
	bool has_row;
	struct line_row row;
};

/* By ascending ea, each only once. */
struct hits {
	struct hit *at;
	size_t count;
};

/* Index of the first hit at or above ea, or count. */
static inline size_t hits_from(const struct hits *hits, uint64_t ea)
{
	size_t low = 0, high = hits->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (hits->at[middle].ea < ea)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
