#include "symbol/candidates.h"

#include "base/budget.h"
#include "base/mapping.h"
#include "base/search.h"
#include "base/sort.h"
#include "elf/symbols.h"

/* Pages of a table are given back each time so many of its symbols were read. */
#define RELEASE_STEP ((uint32_t)1 << 20)
#define RELEASED_LEN ((size_t)2 * RELEASE_STEP * sizeof(Elf64_Sym))

/* ---- What is a candidate ---- */

struct collector {
	struct arena *arena;
	VEC(struct candidate) found;
	uint32_t order;        /* how many were looked at */
	const struct elf *elf; /* the one being read, and which table of it */
	enum candidate_table table;
	struct bytes strings;
	/* Local symbols stand behind the STT_FILE symbol of their source file. The global ones
	 * come after all of these, so theirs is known only if there is but one. */
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
	/* It is copied, and becomes up to two spans of each class. */
	if (!budget_has_room(c->found.count, c->found.capacity, 4 * sizeof *c->found.at))
		return;
	*vec_push(c->arena, &c->found) = (struct candidate){
		.ea = symbol->ea,
		.end = end,
		.name_off = symbol->name_off,
		.file_off = symbol->bind == STB_LOCAL || !c->file_behind_symbol
				    ? c->file_off
				    : CANDIDATE_NO_FILE,
		.order = c->order,
		.table = (uint8_t)c->table,
		.bind = bind_rank(symbol->bind),
		.is_function = symbol->type == STT_FUNC && symbol->size,
		.sized = symbol->size != 0,
	};
}

/* The four walks; an absent file gives one that is over at once. */
struct walks {
	struct elf *elf[CANDIDATE_TABLES];
	struct elf_symbols symbols[CANDIDATE_TABLES];
};

static struct walks walks_begin(const struct symtab_sources *sources)
{
	static const enum elf_symbols_which which[CANDIDATE_TABLES] = {
		[CANDIDATE_DYNAMIC] = ELF_DYNSYM,
		[CANDIDATE_EMBEDDED] = ELF_SYMTAB,
		[CANDIDATE_OWN] = ELF_SYMTAB,
		[CANDIDATE_DEBUG] = ELF_SYMTAB};
	struct walks w = {.elf = {[CANDIDATE_DYNAMIC] = sources->module,
				  [CANDIDATE_EMBEDDED] = sources->embedded,
				  [CANDIDATE_OWN] = sources->module,
				  [CANDIDATE_DEBUG] = sources->debug}};

	for (int i = 0; i < CANDIDATE_TABLES; i++)
		if (w.elf[i])
			w.symbols[i] = elf_symbols(w.elf[i], which[i]);
	return w;
}

/* Names are lost with it. */
static const char *left_out(const struct walks *w)
{
	const char *why = NULL;

	for (int i = 0; i < CANDIDATE_TABLES; i++) {
		if (w->symbols[i].left_out)
			why = w->symbols[i].left_out;
		else if (reader_left(&w->symbols[i].entries) > budget_work_left())
			why = "reading its symbols would take too long (--max-memory)";
	}
	if (why)
		budget_refuse();
	return why;
}

/* ---- Which of them are needed ---- */

/* For some addresses only few symbols matter, and these can be told in one pass without any
 * order: the sized ones that cover an address, and those that begin nearest before it. The
 * latter also are what ends all that have no size and begin still earlier. What begins where
 * one of these does is needed too, for it may have the better name. */
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

	if (symbol->size && n->asked[i] < end &&
	    budget_has_room(n->starts.count, n->starts.capacity, sizeof *n->starts.at))
		*vec_push(n->arena, &n->starts) = symbol->ea;
	if (!n->has_nearest[i] || n->nearest[i] < symbol->ea)
		n->nearest[i] = symbol->ea;
	n->has_nearest[i] = true;
}

static void needs_sort(struct needs *n)
{
	for (size_t i = 0; i < n->count; i++)
		if (n->has_nearest[i])
			*vec_push(n->arena, &n->starts) = n->nearest[i];
	sort(n->arena, n->starts.at, n->starts.count, sizeof n->starts.at[0], compare_u64);
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

/* What was passed goes from memory: a table may be larger than all else. */
static void symbols_release(const struct reader *r)
{
	size_t len = reader_offset(r);

	mapping_release(bytes_from((struct bytes){r->begin, len},
				   len > RELEASED_LEN ? len - RELEASED_LEN : 0));
}

/* One pass over all tables: to learn which candidates are needed, or to collect them. */
static void pass(struct collector *c, struct walks w, struct needs *n, bool collecting)
{
	struct elf_symbol symbol;

	c->order = 0;
	for (int i = 0; i < CANDIDATE_TABLES; i++) {
		c->elf = w.elf[i];
		c->table = (enum candidate_table)i;
		c->strings = w.symbols[i].strings;
		c->file_off = CANDIDATE_NO_FILE;
		c->symbol_seen = c->file_behind_symbol = false;
		if (!budget_work(reader_left(&w.symbols[i].entries)))
			continue;
		while (c->order < UINT32_MAX &&
		       elf_symbols_next_unnamed(&w.symbols[i], &symbol)) {
			look_at(c, n, &symbol, collecting);
			if (c->order % RELEASE_STEP == 0)
				symbols_release(&w.symbols[i].entries);
		}
	}
}

struct candidates candidates_collect(struct arena *arena, const struct symtab_sources *sources,
				     const struct symtab_asked *asked)
{
	struct collector c = {.arena = arena};
	struct walks walks = walks_begin(sources);
	struct needs needs = {.arena = arena, .asked = asked->at, .count = asked->count};
	struct candidates all = {.left_out = left_out(&walks)};

	if (needs.asked) {
		needs.nearest = arena_array(arena, uint64_t, needs.count);
		needs.has_nearest = arena_array(arena, bool, needs.count);
		pass(&c, walks, &needs, false);
		needs_sort(&needs);
	}
	pass(&c, walks, &needs, true);
	all.at = c.found.at;
	all.count = c.found.count;
	for (int i = 0; i < CANDIDATE_TABLES; i++)
		all.strings[i] = walks.symbols[i].strings;
	return all;
}

const char *candidate_name(const struct candidates *candidates,
			   const struct candidate *candidate)
{
	return elf_symbols_name(candidates->strings[candidate->table], candidate->name_off);
}
