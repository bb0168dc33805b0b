/*
 * How it is made: all candidates go into one array, sorted by address and, at one address, from
 * worst to best. A sweep over it turns each of the two classes (sized functions; the rest) into
 * disjoint spans, every span owned by the symbol that wins there. The sweep keeps a stack of the
 * symbols that are open: the last one opened wins until it ends, then the one below takes over, as
 * far as it reaches. So a look-up is one binary search, however symbols nest or overlap.
 */
#include "symbol/symtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "elf/search_table.h"
#include "elf/symbols.h"

/* Aliases at one address that symtab_has looks through: libc has up to a dozen. */
#define ALIASES_MAX 256

/* The tables that are read, from worst to best. */
enum table { DYNAMIC, EMBEDDED, OWN, DEBUG, TABLES };

#define NO_FILE UINT32_MAX

/* Names are offsets in their table's strings, and looked at only where they decide something: the
 * strings of a large program have tens of megabytes. */
struct candidate {
	uint64_t ea, end;
	uint32_t name_off;
	uint32_t file_off; /* see file_seen; NO_FILE */
	uint32_t order;    /* of reading: a later table is a better one */
	uint8_t table;     /* enum table */
	uint8_t bind;      /* 2 global, 1 weak, 0 local */
	bool is_function;  /* sized STT_FUNC: rule 1 */
	bool sized;
};

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
	struct candidate *candidates; /* by address, at one address from worst to best */
	size_t count;
	struct bytes strings[TABLES];
	struct spans functions, others;
};

static const char *name_of(const struct symtab *t, const struct candidate *c)
{
	return elf_symbols_name(t->strings[c->table], c->name_off);
}

/* ---- Collecting ---- */

struct collector {
	struct arena *arena;
	VEC(struct candidate) found;
	uint32_t order;        /* how many were looked at */
	const struct elf *elf; /* the one being read, and which table of it */
	enum table table;
	struct bytes strings;
	/* Local symbols stand behind the STT_FILE symbol of their source file. The global ones come
	 * after all of these, so theirs is known only if there is but one. */
	uint32_t file_off;
	bool symbol_seen, file_behind_symbol;
};

static void file_seen(struct collector *c, const struct elf_symbol *symbol)
{
	c->file_off = symbol->name_off;
	c->file_behind_symbol |= c->symbol_seen;
}

/* Sections that lie beyond the numbering (SHN_XINDEX) or were stripped count by their segment. */
static bool place_of(const struct elf *elf, const struct elf_symbol *symbol, uint64_t *end,
		     bool *executable)
{
	const struct elf_segment *segment;

	if (symbol->section < elf->section_count) {
		const struct elf_section *s = &elf->sections[symbol->section];

		*end = s->ea + s->size;
		*executable = s->flags & SHF_EXECINSTR;
		return s->flags & SHF_ALLOC && symbol->ea >= s->ea && symbol->ea < *end;
	}
	segment = elf_segment_at(elf, symbol->ea);
	if (!segment)
		return false;
	*end = segment->ea + segment->mem_size;
	*executable = segment->flags & PF_X;
	return true;
}

static bool is_noise(const char *name)
{
	return !name[0] || name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

/* Assemblers and linkers make labels of their own; what is a function has a name that is one. */
static bool name_is_good(const struct collector *c, const struct elf_symbol *symbol)
{
	return symbol->name_off && (symbol->type != STT_NOTYPE ||
				    !is_noise(elf_symbols_name(c->strings, symbol->name_off)));
}

static uint8_t bind_rank(uint8_t bind)
{
	switch (bind) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 2;
	case STB_WEAK:
		return 1;
	default:
		return 0;
	}
}

/* Whether it may name anything; sets where it ends at the latest. */
static bool is_candidate(const struct collector *c, const struct elf_symbol *symbol,
			 uint64_t *end)
{
	bool executable = false;

	if (symbol->type != STT_FUNC && symbol->type != STT_GNU_IFUNC &&
	    symbol->type != STT_NOTYPE)
		return false;
	if (symbol->section == SHN_UNDEF || symbol->section == SHN_ABS ||
	    symbol->section == SHN_COMMON || !place_of(c->elf, symbol, end, &executable) ||
	    !executable || !name_is_good(c, symbol))
		return false;
	/* No symbol reaches beyond its section: a size that says so is wrong. */
	if (symbol->size && symbol->size < *end - symbol->ea)
		*end = symbol->ea + symbol->size;
	return true;
}

static void collect(struct collector *c, const struct elf_symbol *symbol, uint64_t end)
{
	*vec_push(c->arena, &c->found) = (struct candidate){
		.ea = symbol->ea,
		.end = end,
		.name_off = symbol->name_off,
		.file_off = symbol->bind == STB_LOCAL || !c->file_behind_symbol ? c->file_off
										: NO_FILE,
		.order = c->order,
		.table = (uint8_t)c->table,
		.bind = bind_rank(symbol->bind),
		.is_function = symbol->type == STT_FUNC && symbol->size,
		.sized = symbol->size != 0,
	};
}

/* The four walks; an absent file gives one that is over at once. */
struct walks {
	struct elf *elf[TABLES];
	struct elf_symbols symbols[TABLES];
};

static struct walks walks_begin(const struct symtab_sources *sources)
{
	static const enum elf_symbols_which which[TABLES] = {[DYNAMIC] = ELF_DYNSYM,
							     [EMBEDDED] = ELF_SYMTAB,
							     [OWN] = ELF_SYMTAB,
							     [DEBUG] = ELF_SYMTAB};
	struct walks w = {.elf = {[DYNAMIC] = sources->module,
				  [EMBEDDED] = sources->embedded,
				  [OWN] = sources->module,
				  [DEBUG] = sources->debug}};

	for (int i = 0; i < TABLES; i++)
		if (w.elf[i])
			w.symbols[i] = elf_symbols(w.elf[i], which[i]);
	return w;
}

/* ---- Which of them are needed ---- */

/* For some addresses only few symbols matter, and these can be told in one pass without any order:
 * the sized ones that cover an address, and those that begin nearest before it. The latter also are
 * what ends all that have no size and begin still earlier. What begins where one of these does is
 * needed too, for it may have the better name. */
struct needs {
	struct arena *arena;
	const uint64_t *asked; /* ascending; NULL: every address there is */
	size_t count;
	uint64_t *nearest; /* to asked[i]: the last that begins in (asked[i - 1], asked[i]] */
	bool *has_nearest;
	VEC(uint64_t) starts; /* ascending, once known */
};

/* Asked of every symbol, so before anything that takes longer: may it be needed? */
static bool may_be_needed(const struct needs *n, const struct elf_symbol *symbol)
{
	size_t i = FIRST_INDEX(n->count, k, n->asked[k] >= symbol->ea);

	return i < n->count && (n->asked[i] - symbol->ea < symbol->size || !n->has_nearest[i] ||
				n->nearest[i] < symbol->ea);
}

static void need(struct needs *n, const struct elf_symbol *symbol, uint64_t end)
{
	size_t i = FIRST_INDEX(n->count, k, n->asked[k] >= symbol->ea);

	if (symbol->size && n->asked[i] < end)
		*vec_push(n->arena, &n->starts) = symbol->ea;
	if (!n->has_nearest[i] || n->nearest[i] < symbol->ea)
		n->nearest[i] = symbol->ea;
	n->has_nearest[i] = true;
}

static int compare_ea(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void needs_sort(struct needs *n)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->has_nearest[i])
			*vec_push(n->arena, &n->starts) = n->nearest[i];
	if (n->starts.count)
		qsort(n->starts.at, n->starts.count, sizeof n->starts.at[0], compare_ea);
}

static bool is_needed(const struct needs *n, uint64_t ea)
{
	size_t i = FIRST_INDEX(n->starts.count, k, n->starts.at[k] >= ea);

	return !n->asked || (i < n->starts.count && n->starts.at[i] == ea);
}

static void look_at(struct collector *c, struct needs *n, const struct elf_symbol *symbol,
		    bool collecting)
{
	uint64_t end;

	c->order++;
	if (symbol->type == STT_FILE) {
		file_seen(c, symbol);
		return;
	}
	c->symbol_seen = true;
	if (!(collecting ? is_needed(n, symbol->ea) : may_be_needed(n, symbol)) ||
	    !is_candidate(c, symbol, &end))
		return;
	if (collecting)
		collect(c, symbol, end);
	else
		need(n, symbol, end);
}

/* One pass over all tables: to learn which candidates are needed, or to collect them. */
static void pass(struct collector *c, struct walks w, struct needs *n, bool collecting)
{
	struct elf_symbol symbol;

	c->order = 0;
	for (int i = 0; i < TABLES; i++) {
		c->elf = w.elf[i];
		c->table = (enum table)i;
		c->strings = w.symbols[i].strings;
		c->file_off = NO_FILE;
		c->symbol_seen = c->file_behind_symbol = false;
		while (c->order < UINT32_MAX &&
		       elf_symbols_next_unnamed(&w.symbols[i], &symbol))
			look_at(c, n, &symbol, collecting);
	}
}

/* The candidates, in memory of `scratch`. */
static struct collector collect_all(struct symtab *t, struct arena *scratch,
				    const struct symtab_sources *sources,
				    const struct symtab_asked *asked)
{
	struct collector c = {.arena = scratch};
	struct walks walks = walks_begin(sources);
	struct needs needs = {.arena = scratch, .asked = asked->at, .count = asked->count};

	for (int i = 0; i < TABLES; i++)
		t->strings[i] = walks.symbols[i].strings;
	if (needs.asked) {
		needs.nearest = arena_array(scratch, uint64_t, needs.count);
		needs.has_nearest = arena_array(scratch, bool, needs.count);
		pass(&c, walks, &needs, false);
		needs_sort(&needs);
	}
	pass(&c, walks, &needs, true);
	return c;
}

/* ---- Order ---- */

/* How far a name is from what a user would call the function: by its leading underscores, and
 * beyond any of these glibc's own aliases. More than so many underscores are all the same: a name
 * may be made of megabytes of them, and this is asked for each comparison of a sort. */
#define UNDERSCORES_MAX 8
static size_t strangeness(const char *name)
{
	size_t underscores = 0;

	while (underscores < UNDERSCORES_MAX && name[underscores] == '_')
		underscores++;
	return strncmp(name, "__GI_", 5) == 0 ? SIZE_MAX : underscores;
}

/* From worst to best, at one address. */
static int compare_at_one_address(const void *left, const void *right, void *table)
{
	const struct candidate *a = left, *b = right;
	size_t strange_a, strange_b;

	if (a->bind != b->bind)
		return a->bind < b->bind ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	strange_a = strangeness(name_of(table, a));
	strange_b = strangeness(name_of(table, b));
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
static void sort_by_address(struct arena *arena, struct candidate **at, size_t count)
{
	struct candidate *from = *at, *to = arena_array(arena, struct candidate, count), *swap;
	uint64_t differ = 0;

	for (size_t i = 1; i < count; i++)
		differ |= from[i].ea ^ from[0].ea;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		if (!((differ >> shift) & 255))
			continue;
		sort_by_byte(from, to, count, shift);
		swap = from;
		from = to;
		to = swap;
	}
	*at = from;
}

static size_t run_end(const struct candidate *at, size_t count, size_t begin)
{
	size_t end = begin + 1;

	while (end < count && at[end].ea == at[begin].ea)
		end++;
	return end;
}

static void sort_runs(struct symtab *t, struct candidate *at, size_t count)
{
	for (size_t begin = 0, end; begin < count; begin = end) {
		end = run_end(at, count, begin);
		if (end - begin > 1)
			qsort_r(at + begin, end - begin, sizeof *at, compare_at_one_address, t);
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
	struct sweep s = {.candidates = t->candidates, .spans = spans};
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		count += t->candidates[i].is_function == functions;
	spans->at = arena_array(t->arena, struct span, 2 * count);
	s.open = arena_array(scratch, uint32_t, count);
	for (size_t i = 0; i < t->count; i++) {
		if (t->candidates[i].is_function != functions)
			continue;
		sweep_to(&s, t->candidates[i].ea);
		s.open[s.depth++] = (uint32_t)i;
	}
	sweep_to(&s, UINT64_MAX);
}

struct symtab *symtab_new(struct arena *arena, const struct symtab_sources *sources,
			  const struct symtab_asked *asked)
{
	struct symtab *t = arena_new(arena, struct symtab);
	struct search_table functions = {0};
	struct arena scratch = {0};
	struct collector c = collect_all(t, &scratch, sources, asked);

	if (sources->module)
		functions = search_table_open(sources->module);
	t->arena = arena;
	t->count = c.found.count;
	t->candidates = arena_array(arena, struct candidate, t->count);
	sort_by_address(&scratch, &c.found.at, t->count);
	sort_runs(t, c.found.at, t->count);
	bound_unsized(c.found.at, t->count, &functions);
	if (t->count)
		memcpy(t->candidates, c.found.at, t->count * sizeof *c.found.at);
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

static void tell(struct symtab *t, const struct candidate *candidate, struct symtab_symbol *out)
{
	*out = (struct symtab_symbol){
		.name = without_version(t->arena, name_of(t, candidate)),
		.ea = candidate->ea,
		.size = candidate->sized ? candidate->end - candidate->ea : 0,
		.file = candidate->file_off == NO_FILE
				? NULL
				: elf_symbols_name(t->strings[candidate->table],
						   candidate->file_off),
		.is_function = candidate->is_function,
	};
}

bool symtab_find(struct symtab *t, uint64_t ea, struct symtab_symbol *out)
{
	const struct span *span = span_at(&t->functions, ea);

	if (!span)
		span = span_at(&t->others, ea);
	if (span)
		tell(t, &t->candidates[span->owner], out);
	return span != NULL;
}

/* The first candidate at `ea` or above. */
static size_t lower_bound(const struct symtab *t, uint64_t ea)
{
	return FIRST_INDEX(t->count, i, t->candidates[i].ea >= ea);
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
	size_t end = ea == UINT64_MAX ? t->count : lower_bound(t, ea + 1), i = end;
	const struct candidate *best = end ? &t->candidates[end - 1] : NULL;

	if (!best || best->ea < lowest)
		return false;
	for (; i > 0 && end - i < ALIASES_MAX && t->candidates[i - 1].ea == best->ea; i--)
		if (fits_better(&t->candidates[i - 1], best, ea))
			best = &t->candidates[i - 1];
	tell(t, best, out);
	return true;
}

static bool same_name(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return strncmp(symbol, name, len) == 0 && (symbol[len] == '\0' || symbol[len] == '@');
}

bool symtab_has(const struct symtab *t, uint64_t ea, const char *name)
{
	size_t begin = lower_bound(t, ea), end = begin + ALIASES_MAX;

	for (size_t i = begin; i < t->count && i < end && t->candidates[i].ea == ea; i++)
		if (same_name(name_of(t, &t->candidates[i]), name))
			return true;
	return false;
}

size_t symtab_count(const struct symtab *t)
{
	return t->count;
}
