/*
 * A module's files (symbol/files) are found at its first question and kept in module->symbols;
 * they are read at the first question that the cache does not answer. A batch of addresses is
 * sorted and made unique, DWARF answers all of it in one go (unit by unit), and what it leaves
 * open the symbol table fills in, address by address.
 */
#include "symbol/symbol.h"

#include <string.h>
#include <time.h>

#include "base/mapping.h"
#include "base/sort.h"
#include "symbol/cache.h"
#include "symbol/files.h"
#include "symbol/names.h"

struct symbolizer {
	struct arena *arena;
	struct symbol_options options;
	struct names names;
	struct module_symbols *modules; /* of all that were asked, the last one first */
};

/* module->symbols */
struct module_symbols {
	struct module_symbols *next;
	struct symbol_cache *cache; /* or NULL */
	struct symbol_files files;
};

struct symbolizer *symbolizer_new(struct arena *arena, const struct symbol_options *options)
{
	struct symbolizer *s = arena_new(arena, struct symbolizer);

	s->arena = arena;
	s->options = *options;
	s->names.arena = arena;
	return s;
}

static struct module_symbols *symbols_of(struct symbolizer *s, struct module *module)
{
	struct module_symbols *m = module->symbols;

	if (m || !module_elf(module))
		return m;
	m = arena_new(s->arena, struct module_symbols);
	symbol_files_find(&m->files, module, s->arena, &s->options);
	if (s->options.cache)
		m->cache =
			symbol_cache_open(s->arena, s->options.cache,
					  &(struct cache_subject){module->elf, m->files.debug,
								  &s->options});
	m->next = s->modules;
	s->modules = m;
	module->symbols = m;
	return m;
}

/* ---- Names ---- */

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

static const char *dwarf_name(const struct dwarf_frame *frame)
{
	return frame->linkage_name ? frame->linkage_name : frame->name;
}

/* DWARF 5, 7.12: languages whose functions are linked by the name they have in the source. */
static bool is_c_like(uint16_t language)
{
	static const uint16_t plain[] = {
		0x01 /* C89 */,       0x02 /* C */,        0x0c /* C99 */,
		0x1d /* C11 */,       0x05 /* Cobol74 */,  0x06,
		0x07 /* Fortran77 */, 0x09 /* Pascal83 */, 0x8001 /* assembler */
	};

	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		if (plain[i] == language)
			return true;
	return false;
}

/* The part of a function that the compiler moved away has a symbol, which is not its name. */
static bool is_cold_part(const char *name)
{
	return strstr(name, ".cold") != NULL;
}

/* As binutils decides it: C++ and the like are linked by mangled names, and a function that is
 * private to its file has no DW_AT_linkage_name. */
static bool table_wins_for_binutils(const struct dwarf_frame *frame,
				    const struct symtab_symbol *symbol)
{
	return !frame->linkage_name && !is_c_like(frame->language) &&
	       symbol->ea == frame->function_ea && !is_cold_part(symbol->name);
}

/* "WHICH NAME WINS" in symbol.h, for the real function. `symbol`: NULL where the table has
 * none. */
static bool table_wins(const struct symbolizer *s, const struct module_symbols *m,
		       const struct dwarf_frame *frame, const struct symtab_symbol *symbol)
{
	if (!symbol)
		return false;
	if (!dwarf_name(frame))
		return true;
	if (s->options.names == SYMBOL_NAMES_DEBUG)
		return table_wins_for_binutils(frame, symbol);
	if (frame->linkage_name && is_mangled(frame->linkage_name) &&
	    symtab_has(m->files.stage.symtab, symbol->ea, frame->linkage_name))
		return false;
	return symbol->is_function;
}

static const char *shown(struct symbolizer *s, const char *name)
{
	return s->options.demangle ? names_demangled(&s->names, name)
				   : names_kept(&s->names, name);
}

/* ---- Answers ---- */

static const char *dwarf_shown(struct symbolizer *s, const struct dwarf_frame *from)
{
	if (from->linkage_name)
		return shown(s, from->linkage_name);
	return names_kept(&s->names, from->qualified ? from->qualified : from->name);
}

static struct symbol_frame frame_of_dwarf(struct symbolizer *s, const struct dwarf_frame *from)
{
	return (struct symbol_frame){
		.function = dwarf_shown(s, from),
		.function_ea = from->function_ea,
		.has_function_ea = from->function_ea != 0,
		.file = names_kept(&s->names, from->file),
		.line = from->line,
		.column = from->column,
		.inlined = from->inlined,
	};
}

static void name_by_table(struct symbolizer *s, struct symbol_frame *frame,
			  const struct symtab_symbol *symbol)
{
	frame->function = shown(s, symbol->name);
	frame->function_ea = symbol->ea;
	frame->has_function_ea = true;
}

static void answer_by_dwarf(struct symbolizer *s, struct module_symbols *m,
			    const struct dwarf_answer *from, const struct symtab_symbol *symbol,
			    struct symbol_answer *to)
{
	size_t last = from->frame_count - 1;

	to->frames = arena_array(s->arena, struct symbol_frame, from->frame_count);
	to->frame_count = from->frame_count;
	for (size_t i = 0; i <= last; i++)
		to->frames[i] = frame_of_dwarf(s, &from->frames[i]);
	if (table_wins(s, m, &from->frames[last], symbol))
		name_by_table(s, &to->frames[last], symbol);
}

static void answer_by_table(struct symbolizer *s, const struct symtab_symbol *symbol,
			    struct symbol_answer *to)
{
	to->frames = arena_new(s->arena, struct symbol_frame);
	to->frame_count = 1;
	name_by_table(s, to->frames, symbol);
	if (s->options.names == SYMBOL_NAMES_DEBUG)
		to->frames->file = names_kept(&s->names, symbol->file);
}

static void answer_by_go(struct symbolizer *s, const struct go_place *place,
			 struct symbol_answer *to)
{
	to->frames = arena_new(s->arena, struct symbol_frame);
	to->frame_count = 1;
	*to->frames = (struct symbol_frame){
		.function = names_kept(&s->names, place->function),
		.function_ea = place->function_ea,
		.has_function_ea = true,
		.file = names_kept(&s->names, place->file),
		.line = place->line,
	};
}

/* The start of the section that holds `ea`; 0 where sections are not known. */
static uint64_t section_start(const struct elf *elf, uint64_t ea)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		const struct elf_section *section = &elf->sections[i];

		if (section->flags & SHF_ALLOC && ea >= section->ea &&
		    ea - section->ea < section->size)
			return section->ea;
	}
	return elf->section_count ? UINT64_MAX : 0;
}

static bool symbol_of(const struct symbolizer *s, const struct module_symbols *m, uint64_t ea,
		      struct symtab_symbol *out)
{
	if (s->options.names == SYMBOL_NAMES_DEBUG)
		return symtab_nearest(m->files.stage.symtab, ea,
				      section_start(m->files.module->elf, ea), out);
	return symtab_find(m->files.stage.symtab, ea, out);
}

static void answer(struct symbolizer *s, struct module_symbols *m,
		   const struct dwarf_answer *dwarf, struct symbol_answer *to)
{
	struct symtab_symbol found;
	const struct symtab_symbol *symbol = symbol_of(s, m, to->ea, &found) ? &found : NULL;
	struct go_place place;

	if (dwarf->frame_count)
		answer_by_dwarf(s, m, dwarf, symbol, to);
	else if (m->files.stage.go && gopclntab_find(m->files.stage.go, to->ea, &place))
		answer_by_go(s, &place, to);
	else if (symbol)
		answer_by_table(s, symbol, to);
}

static int compare_asked(const void *left, const void *right)
{
	const struct symbol_answer *a = *(struct symbol_answer *const *)left;
	const struct symbol_answer *b = *(struct symbol_answer *const *)right;

	return a->ea < b->ea ? -1 : a->ea > b->ea;
}

/* The answers by address. */
static struct symbol_answer **sorted(struct arena *scratch, struct symbol_answer *answers,
				     size_t count)
{
	struct symbol_answer **order = arena_array(scratch, struct symbol_answer *, count);

	for (size_t i = 0; i < count; i++) {
		answers[i].frames = NULL;
		answers[i].frame_count = 0;
		order[i] = &answers[i];
	}
	sort(scratch, order, count, sizeof(struct symbol_answer *), compare_asked);
	return order;
}

static uint64_t processor_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Answers what the files tell: `unique` in ascending order, from the front of `order` those of
 * the same address that have no answer yet. */
static void answer_by_files(struct symbolizer *s, struct module_symbols *m,
			    struct symbol_answer **order, struct dwarf_answer *unique,
			    size_t count)
{
	uint64_t begin = m->cache ? processor_time_ns() : 0;

	s->names.borrowed = false;
	symbol_files_ask(&m->files, unique, count);
	for (size_t u = 0; u < count; order++) {
		if ((*order)->ea != unique[u].ea)
			continue;
		answer(s, m, &unique[u++], *order);
		if (m->cache)
			symbol_cache_add(m->cache, *order);
	}
	m->files.lent |= s->names.borrowed;
	if (m->cache)
		symbol_cache_spent(m->cache, processor_time_ns() - begin);
}

void symbolize(struct symbolizer *s, struct module *module, struct symbol_answer *answers,
	       size_t count)
{
	struct module_symbols *m = symbols_of(s, module);
	struct arena scratch = {0};
	struct symbol_answer **order = sorted(&scratch, answers, count);
	struct dwarf_answer *unique = arena_array(&scratch, struct dwarf_answer, count);
	size_t unique_count = 0;

	for (size_t i = 0; m && i < count; i++)
		if ((i == 0 || order[i]->ea != order[i - 1]->ea) &&
		    !(m->cache && symbol_cache_find(m->cache, order[i])))
			unique[unique_count++].ea = order[i]->ea;
	if (unique_count)
		answer_by_files(s, m, order, unique, unique_count);
	for (size_t i = 1; i < count; i++)
		if (order[i]->ea == order[i - 1]->ea)
			*order[i] = *order[i - 1];
	arena_free(&scratch);
}

void symbolizer_done(struct symbolizer *s, const struct module *module)
{
	struct module_symbols *m = module->symbols;

	if (!m || !m->files.opened)
		return;
	names_forget(&s->names);
	symbol_files_close(&m->files);
}

static bool is_informed(const struct module_symbols *m)
{
	if (m->files.read)
		return m->files.informed;
	return !m->cache || symbol_cache_informed(m->cache);
}

void symbolizer_save(const struct symbolizer *s)
{
	size_t at = 0;

	if (mapping_next_cut(&at))
		return;
	for (const struct module_symbols *m = s->modules; m; m = m->next)
		if (m->cache && m->files.read && !m->files.unproven &&
		    !symbol_files_problem(&m->files))
			symbol_cache_save(m->cache, is_informed(m));
}

static const char *no_debug_information(struct symbolizer *s, const struct module *module)
{
	const char *why = module->debug_not_fetched;

	if (!module->build_id)
		return "no debug information";
	if (!s->options.fetch)
		why = "--debuginfod may fetch it";
	return arena_printf(s->arena, "no debug information (build-id %s)%s%s",
			    module->build_id, why ? "; " : "", why ? why : "");
}

const char *symbolizer_not_fetched(const struct module *module)
{
	const struct module_symbols *m = module->symbols;

	if (module->debug_not_fetched)
		return module->debug_not_fetched;
	return m ? m->files.places.not_fetched : NULL;
}

const char *symbolizer_note(struct symbolizer *s, const struct module *module)
{
	const struct module_symbols *m = module->symbols;
	const char *problem;

	if (!m)
		return module->why;
	problem = symbol_files_problem(&m->files);
	if (problem)
		return problem;
	return is_informed(m) ? NULL : no_debug_information(s, module);
}
