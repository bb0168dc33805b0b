#include "symbol/ranking.h"

#include <stdlib.h>
#include <string.h>

/* How far a name is from what a user would call the function: by its leading underscores, and
 * beyond any of these glibc's own aliases. More than so many underscores are all the same: a
 * name may be made of megabytes of them, and this is asked for each comparison of a sort. */
#define UNDERSCORES_MAX 8
static size_t strangeness(const char *name)
{
	size_t underscores = 0;

	while (underscores < UNDERSCORES_MAX && name[underscores] == '_')
		underscores++;
	return strncmp(name, "__GI_", 5) == 0 ? SIZE_MAX : underscores;
}

/* From worst to best, at one address. */
static int compare_at_one_address(const void *left, const void *right, void *candidates)
{
	const struct candidate *a = left, *b = right;
	size_t strange_a, strange_b;

	if (a->bind != b->bind)
		return a->bind < b->bind ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	strange_a = strangeness(candidate_name(candidates, a));
	strange_b = strangeness(candidate_name(candidates, b));
	if (strange_a != strange_b)
		return strange_a > strange_b ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* One pass of a stable radix sort, by the byte at `shift`. */
static void sort_by_byte(const struct candidate *from, struct candidate *to, size_t count,
			 unsigned shift)
{
	size_t starts[257] = {0};

	for (size_t i = 0; i < count; i++)
		starts[((from[i].ea >> shift) & 255) + 1]++;
	for (size_t b = 0; b < 256; b++)
		starts[b + 1] += starts[b];
	for (size_t i = 0; i < count; i++)
		to[starts[(from[i].ea >> shift) & 255]++] = from[i];
}

/* Addresses of one file differ in three or four bytes: as many passes over the array, where a
 * comparing sort of a libjvm needs seventeen. */
static void sort_by_address(struct candidates *c, struct arena *scratch)
{
	struct candidate *from = c->at, *to = arena_array(scratch, struct candidate, c->count);
	struct candidate *swap;
	uint64_t differ = 0;

	for (size_t i = 1; i < c->count; i++)
		differ |= from[i].ea ^ from[0].ea;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		if (!((differ >> shift) & 255))
			continue;
		sort_by_byte(from, to, c->count, shift);
		swap = from;
		from = to;
		to = swap;
	}
	c->at = from;
}

static size_t run_end(const struct candidate *at, size_t count, size_t begin)
{
	size_t end = begin + 1;

	while (end < count && at[end].ea == at[begin].ea)
		end++;
	return end;
}

static void sort_runs(struct candidates *c)
{
	for (size_t begin = 0, end; begin < c->count; begin = end) {
		end = run_end(c->at, c->count, begin);
		if (end - begin > 1)
			qsort_r(c->at + begin, end - begin, sizeof *c->at,
				compare_at_one_address, c);
	}
}

/* Rule 2: what has no size ends where the next symbol or the next known function begins. */
static void bound_unsized(struct candidate *at, size_t count,
			  const struct search_table *functions)
{
	uint64_t next = UINT64_MAX;

	for (size_t end = count, begin; end > 0; end = begin) {
		begin = end - 1;
		while (begin > 0 && at[begin - 1].ea == at[end - 1].ea)
			begin--;
		for (size_t i = begin; i < end; i++) {
			uint64_t start;

			if (at[i].sized)
				continue;
			start = search_table_next(functions, at[i].ea);
			at[i].end = at[i].end < next ? at[i].end : next;
			at[i].end = at[i].end < start ? at[i].end : start;
		}
		next = at[begin].ea;
	}
}

void candidates_rank(struct candidates *candidates, struct arena *scratch,
		     const struct search_table *functions)
{
	sort_by_address(candidates, scratch);
	sort_runs(candidates);
	bound_unsized(candidates->at, candidates->count, functions);
}
