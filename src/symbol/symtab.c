/*
 * How it is made: the candidates (symbol/candidates) are in one array, sorted by address and,
 * at one address, from worst to best (symbol/ranking). A sweep over it turns each of the two
 * classes (sized functions; the rest) into disjoint spans, every span owned by the symbol that
 * wins there. The sweep keeps a stack of the symbols that are open: the last one opened wins
 * until it ends, then the one below takes over, as far as it reaches. So a look-up is one
 * binary search, however symbols nest or overlap.
 */
#include "symbol/symtab.h"

#include <string.h>

#include "base/budget.h"
#include "base/search.h"
#include "elf/symbols.h"
#include "symbol/candidates.h"
#include "symbol/ranking.h"

/* Aliases at one address that symtab_has looks through: libc has up to a dozen. */
#define ALIASES_MAX 256

struct span {
	uint64_t start, end;
	uint32_t owner; /* index of a candidate */
};

struct spans {
	struct span *at;
	size_t count;
};

struct symtab {
	struct arena *arena;
	struct candidates candidates; /* ranked */
	struct spans functions, others;
};

/* ---- The sweep ---- */

struct sweep {
	const struct candidate *candidates;
	struct spans *spans;
	uint32_t *open; /* stack */
	size_t depth;
	uint64_t at; /* everything below is decided */
};

static void emit(struct sweep *s, uint64_t end)
{
	uint32_t owner = s->open[s->depth - 1];

	if (s->at < end)
		s->spans->at[s->spans->count++] = (struct span){s->at, end, owner};
	s->at = s->at < end ? end : s->at;
}

/* Decides everything below `ea`. */
static void sweep_to(struct sweep *s, uint64_t ea)
{
	while (s->depth && s->candidates[s->open[s->depth - 1]].end <= ea) {
		emit(s, s->candidates[s->open[s->depth - 1]].end);
		s->depth--;
	}
	if (s->depth)
		emit(s, ea);
	s->at = ea;
}

/* Every symbol opens at most one span and closes at most one: twice the count is enough. */
static void spans_make(struct symtab *t, struct arena *scratch, bool functions,
		       struct spans *spans)
{
	const struct candidates *c = &t->candidates;
	struct sweep s = {.candidates = c->at, .spans = spans};
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++)
		count += c->at[i].is_function == functions;
	spans->at = arena_array(t->arena, struct span, 2 * count);
	s.open = arena_array(scratch, uint32_t, count);
	for (size_t i = 0; i < c->count; i++) {
		if (c->at[i].is_function != functions)
			continue;
		sweep_to(&s, c->at[i].ea);
		s.open[s.depth++] = (uint32_t)i;
	}
	sweep_to(&s, UINT64_MAX);
}

/* Ranked, in memory of `arena`. */
static struct candidates ranked(struct arena *arena, struct arena *scratch,
				const struct symtab_sources *sources,
				const struct symtab_asked *asked)
{
	struct candidates candidates = candidates_collect(scratch, sources, asked);
	struct search_table functions = {0};
	struct candidate *kept = arena_array(arena, struct candidate, candidates.count);

	if (sources->module)
		functions = search_table_open(sources->module);
	candidates_rank(&candidates, scratch, &functions);
	if (candidates.count)
		memcpy(kept, candidates.at, candidates.count * sizeof *kept);
	candidates.at = kept;
	return candidates;
}

struct symtab *symtab_new(struct arena *arena, const struct symtab_sources *sources,
			  const struct symtab_asked *asked)
{
	struct symtab *t = arena_new(arena, struct symtab);
	struct arena scratch = {0};

	t->arena = arena;
	t->candidates = ranked(arena, &scratch, sources, asked);
	spans_make(t, &scratch, true, &t->functions);
	spans_make(t, &scratch, false, &t->others);
	arena_free(&scratch);
	return t;
}

/* ---- Look-up ---- */

static const struct span *span_at(const struct spans *spans, uint64_t ea)
{
	size_t first = FIRST_INDEX(spans->count, i, spans->at[i].end > ea);

	return first < spans->count && spans->at[first].start <= ea ? &spans->at[first] : NULL;
}

/* "memcpy@@GLIBC_2.14" -> "memcpy" */
static const char *without_version(struct arena *arena, const char *name)
{
	const char *at = strchr(name, '@');

	return at && at != name ? arena_copy(arena, name, (size_t)(at - name)) : name;
}

/* To look for the end of a name is work: many may point into one that is long. */
static bool tell(struct symtab *t, const struct candidate *candidate, struct symtab_symbol *out)
{
	const char *name = candidate_name(&t->candidates, candidate);

	if (!budget_work(strlen(name)))
		return false;
	*out = (struct symtab_symbol){
		.name = without_version(t->arena, name),
		.ea = candidate->ea,
		.size = candidate->sized ? candidate->end - candidate->ea : 0,
		.file = candidate->file_off == CANDIDATE_NO_FILE
				? NULL
				: elf_symbols_name(t->candidates.strings[candidate->table],
						   candidate->file_off),
		.is_function = candidate->is_function,
	};
	return true;
}

bool symtab_find(struct symtab *t, uint64_t ea, struct symtab_symbol *out)
{
	const struct span *span = span_at(&t->functions, ea);

	if (!span)
		span = span_at(&t->others, ea);
	return span && tell(t, &t->candidates.at[span->owner], out);
}

/* The first candidate at `ea` or above. */
static size_t lower_bound(const struct symtab *t, uint64_t ea)
{
	return FIRST_INDEX(t->candidates.count, i, t->candidates.at[i].ea >= ea);
}

/* A symbol without a size counts as one byte there. */
static uint64_t size_for_binutils(const struct candidate *c)
{
	return c->sized ? c->end - c->ea : 1;
}

/* binutils' choice between two symbols at one address. */
static bool fits_better(const struct candidate *a, const struct candidate *b, uint64_t ea)
{
	uint64_t size_a = size_for_binutils(a), size_b = size_for_binutils(b);
	bool covers_a = ea - a->ea < size_a, covers_b = ea - b->ea < size_b;

	if (covers_a != covers_b)
		return covers_a;
	if (covers_a && a->is_function != b->is_function)
		return a->is_function;
	if (size_a != size_b)
		return covers_a ? size_a < size_b : size_a > size_b;
	return a->order < b->order;
}

bool symtab_nearest(struct symtab *t, uint64_t ea, uint64_t lowest, struct symtab_symbol *out)
{
	size_t end = ea == UINT64_MAX ? t->candidates.count : lower_bound(t, ea + 1), i = end;
	const struct candidate *best = end ? &t->candidates.at[end - 1] : NULL;

	if (!best || best->ea < lowest)
		return false;
	for (; i > 0 && end - i < ALIASES_MAX && t->candidates.at[i - 1].ea == best->ea; i--)
		if (fits_better(&t->candidates.at[i - 1], best, ea))
			best = &t->candidates.at[i - 1];
	return tell(t, best, out);
}

static bool same_name(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return strncmp(symbol, name, len) == 0 && (symbol[len] == '\0' || symbol[len] == '@');
}

bool symtab_has(const struct symtab *t, uint64_t ea, const char *name)
{
	size_t begin = lower_bound(t, ea), end = begin + ALIASES_MAX;

	for (size_t i = begin;
	     i < t->candidates.count && i < end && t->candidates.at[i].ea == ea; i++)
		if (same_name(candidate_name(&t->candidates, &t->candidates.at[i]), name))
			return true;
	return false;
}

size_t symtab_count(const struct symtab *t)
{
	return t->candidates.count;
}

const char *symtab_left_out(const struct symtab *t)
{
	return t->candidates.left_out;
}
