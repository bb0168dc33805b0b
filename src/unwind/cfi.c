#include "unwind/cfi.h"

#include <stdlib.h>

#include "base/budget.h"
#include "elf/search_table.h"

enum { SOURCES_MAX = 3 };

/* Pairs of a table that are compared with the section before its word is taken for what is not there. */
#define TABLE_SAMPLES 64

/* The code of one FDE, and where that is in the section. */
struct span {
	uint64_t ea, size, off;
};

struct source {
	struct cfi_section section;
	struct search_table table;
	bool indexed;
	struct span *spans; /* by ea; valid when indexed */
	size_t span_count;
};

struct cfi {
	struct elf *elf; /* the module's: says what is code */
	struct source sources[SOURCES_MAX];
	size_t source_count;
	bool looked_for_debug_file;
};

/* --- What a file has --- */

static struct pointer_bases bases_of(const struct elf *elf, uint64_t section_ea)
{
	struct pointer_bases bases = {.section = section_ea};
	const struct elf_section *text = elf_section(elf, ".text");
	const struct elf_section *got = elf_section(elf, ".got");

	if (text) {
		bases.has_text = true;
		bases.text = text->ea;
	}
	if (got) {
		bases.has_data = true;
		bases.data = got->ea;
	}
	return bases;
}

/* .eh_frame by its section header, which knows its end; else from where .eh_frame_hdr says that it
 * begins to the end of its segment: its terminator ends it then. */
static bool find_eh_frame(struct elf *elf, const struct search_table *table,
			  struct cfi_section *out)
{
	const struct elf_section *section = elf_section(elf, ".eh_frame");

	*out = (struct cfi_section){.is_eh = true};
	if (section && elf_section_bytes(elf, ".eh_frame", &out->bytes, NULL) &&
	    out->bytes.len > 0) {
		out->ea = section->ea;
	} else if (table->has_eh_frame) {
		out->ea = table->eh_frame_ea;
		out->bytes = elf_bytes_at(elf, out->ea);
		out->unbounded = true;
	}
	out->bases = bases_of(elf, out->ea);
	return out->bytes.len > 0;
}

static void add_eh_frame(struct cfi *cfi, struct elf *elf)
{
	struct source *source = &cfi->sources[cfi->source_count];

	source->table = search_table_open(elf);
	if (find_eh_frame(elf, &source->table, &source->section))
		cfi->source_count++;
}

static bool add_debug_frame(struct cfi *cfi, struct elf *elf, struct err *e)
{
	struct source *source = &cfi->sources[cfi->source_count];
	struct bytes bytes;

	if (cfi->source_count == SOURCES_MAX)
		return err_set(e, ERR_LIMIT, "%s: another debug file was added before",
			       elf->name);
	if (!elf_section_bytes(elf, ".debug_frame", &bytes, e))
		return false;
	if (bytes.len == 0)
		return err_set(e, ERR_NOT_FOUND, "%s: no .debug_frame", elf->name);
	*source = (struct source){
		.section = {.bytes = bytes, .bases = bases_of(elf, 0)},
	};
	cfi->source_count++;
	return true;
}

static struct cfi *cfi_of(struct module *module, struct arena *arena)
{
	struct cfi *cfi = module->cfi;

	if (cfi)
		return cfi;
	cfi = module->cfi = arena_new(arena, struct cfi);
	cfi->elf = module_elf(module);
	if (cfi->elf) {
		add_eh_frame(cfi, cfi->elf);
		add_debug_frame(cfi, cfi->elf, NULL);
	}
	return cfi;
}

bool cfi_add_debug_file(struct module *module, struct arena *arena, struct elf *debug,
			struct err *e)
{
	return add_debug_frame(cfi_of(module, arena), debug, e);
}

bool cfi_look_for_debug_file(struct module *module, struct arena *arena,
			     const struct cfi_debug_files *files)
{
	struct cfi *cfi = cfi_of(module, arena);
	struct elf *debug;

	if (cfi->looked_for_debug_file || !files->find || !module->elf)
		return false;
	cfi->looked_for_debug_file = true;
	debug = files->find(files->context, module);
	return debug && cfi_add_debug_file(module, arena, debug, NULL);
}

/* --- All FDEs --- */

static void walk_from_start(struct cfi_walk *walk, const struct cfi_section *section)
{
	walk->section = section;
	walk->off = 0;
	walk->has_cie = false;
}

bool cfi_walk_begin(struct cfi_walk *walk, struct module *module, struct arena *arena,
		    size_t source)
{
	struct cfi *cfi = cfi_of(module, arena);

	if (source >= cfi->source_count)
		return false;
	walk_from_start(walk, &cfi->sources[source].section);
	return true;
}

/* Objects that were linked in an unusual order leave terminators in the middle of a section. */
static bool next_entry(const struct cfi_section *section, uint64_t off, struct entry *out)
{
	return off < section->bytes.len && entry_read(section, off, out, NULL) &&
	       !(out->is_terminator && section->unbounded);
}

static bool is_fde(const struct entry *entry)
{
	return !entry->is_cie && !entry->is_terminator;
}

/* FDEs that follow each other mostly share their CIE. */
static bool walk_reads_fde(struct cfi_walk *walk, const struct entry *entry)
{
	if (!walk->has_cie || walk->cie.off != entry->cie_off)
		walk->has_cie = cie_read(walk->section, entry->cie_off, &walk->cie, NULL);
	return walk->has_cie && fde_read(walk->section, entry, &walk->cie, &walk->fde, NULL);
}

bool cfi_walk_next(struct cfi_walk *walk)
{
	struct entry entry;

	while (walk->off < walk->section->bytes.len) {
		if (!next_entry(walk->section, walk->off, &entry))
			break;
		walk->off = entry.next;
		walk->entry_off = entry.off;
		if (is_fde(&entry) && walk_reads_fde(walk, &entry))
			return true;
	}
	walk->off = walk->section->bytes.len;
	return false;
}

/* --- The index --- */

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->ea != y->ea)
		return x->ea < y->ea ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Linkers that throw a function away leave its FDE in .debug_frame, with an address that is none
 * (0, 1, -1 or -2): only code counts. */
static bool covers_code(const struct cfi *cfi, const struct fde *fde)
{
	const struct elf_segment *segment = elf_segment_at(cfi->elf, fde->ea);

	return fde->size > 0 && segment && (segment->flags & PF_X);
}

static void make_index(const struct cfi *cfi, struct source *source, struct arena *arena)
{
	VEC(struct span) spans = {0};
	struct cfi_walk walk;

	source->indexed = true;
	if (!budget_work(source->section.bytes.len))
		return;
	walk_from_start(&walk, &source->section);
	while (cfi_walk_next(&walk)) {
		if (!covers_code(cfi, &walk.fde))
			continue;
		if (!budget_has_room(spans.count, spans.capacity, sizeof *spans.at))
			break;
		*vec_push(arena, &spans) =
			(struct span){walk.fde.ea, walk.fde.size, walk.entry_off};
	}
	if (spans.count)
		qsort(spans.at, spans.count, sizeof *spans.at, compare_spans);
	source->spans = spans.at;
	source->span_count = spans.count;
}

/* The offset of the FDE that covers ea. */
static bool find_in_index(const struct source *source, uint64_t ea, uint64_t *off)
{
	size_t low = 0, high = source->span_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (source->spans[middle].ea <= ea)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || ea - source->spans[low - 1].ea >= source->spans[low - 1].size)
		return false;
	*off = source->spans[low - 1].off;
	return true;
}

/* --- One address --- */

struct found {
	struct cie cie;
	struct fde fde; /* points to `cie` */
};

static bool read_found(const struct cfi_section *section, uint64_t off, struct found *out,
		       struct err *e)
{
	struct entry entry;

	if (off >= section->bytes.len)
		return err_set(e, ERR_FORMAT, "outside of the section");
	if (!entry_read(section, off, &entry, e))
		return false;
	if (!is_fde(&entry))
		return err_set(e, ERR_FORMAT, "no FDE at 0x%lx", (unsigned long)off);
	return cie_read(section, entry.cie_off, &out->cie, e) &&
	       fde_read(section, &entry, &out->cie, &out->fde, e);
}

static bool covers(const struct fde *fde, uint64_t ea)
{
	return ea >= fde->ea && ea - fde->ea < fde->size;
}

/* The FDE that a pair of the table names, which must be that of its function. */
static bool read_pair(const struct source *source, uint64_t function, uint64_t fde_ea,
		      struct found *out)
{
	return read_found(&source->section, fde_ea - source->section.ea, out, NULL) &&
	       out->fde.ea == function;
}

/* Through the table. False when it does not know of an FDE for ea. One that lies is not asked again. */
static bool find_by_table(struct source *source, uint64_t ea, struct found *out)
{
	uint64_t function, fde_ea;

	if (!search_table_find(&source->table, ea, &function, &fde_ea))
		return false;
	source->table.usable = read_pair(source, function, fde_ea, out);
	return source->table.usable && covers(&out->fde, ea);
}

static uint64_t count_fdes(const struct cfi_section *section)
{
	struct entry entry = {.next = 0};
	uint64_t count = 0;

	while (next_entry(section, entry.next, &entry))
		count += is_fde(&entry);
	return count;
}

/* Looks at pairs all over the table: nonsense does not agree with the section. */
static bool table_agrees(const struct source *source)
{
	const struct search_table *table = &source->table;
	uint64_t step = table->count / TABLE_SAMPLES + 1;
	uint64_t function, fde_ea;
	struct found found;

	for (uint64_t i = 0; i < table->count; i += step) {
		search_table_pair(table, i, &function, &fde_ea);
		if (!read_pair(source, function, fde_ea, &found))
			return false;
	}
	return true;
}

/* A table that knows all FDEs and is in order has the last word: no index is made to look for what
 * it does not have. */
static bool table_is_complete(struct source *source)
{
	struct search_table *table = &source->table;

	if (table->usable && !table->checked) {
		table->checked = true;
		table->usable = budget_work(table->header.len + source->section.bytes.len) &&
				search_table_sorted(table) &&
				table->count >= count_fdes(&source->section) &&
				table_agrees(source);
	}
	return table->usable;
}

static bool find_fde(const struct cfi *cfi, struct source *source, struct arena *arena,
		     uint64_t ea, struct found *out, enum cfi_answer *answer, struct err *e)
{
	uint64_t off;

	*answer = CFI_NONE;
	if (find_by_table(source, ea, out))
		return true;
	if (table_is_complete(source))
		return false;
	if (!source->indexed)
		make_index(cfi, source, arena);
	if (!find_in_index(source, ea, &off))
		return false;
	*answer = CFI_BAD;
	return read_found(&source->section, off, out, e);
}

static enum cfi_answer row_in_source(const struct cfi *cfi, struct source *source,
				     struct arena *arena, uint64_t ea, struct row *out,
				     struct err *e)
{
	enum cfi_answer answer;
	struct found found;

	if (!find_fde(cfi, source, arena, ea, &found, &answer, e))
		return answer;
	return row_at(&source->section, &found.fde, ea, out, e) ? CFI_ROW : CFI_BAD;
}

enum cfi_answer cfi_row_at(struct module *module, struct arena *arena, uint64_t ea,
			   struct row *out, struct err *e)
{
	struct cfi *cfi = cfi_of(module, arena);
	enum cfi_answer worst = CFI_NONE;

	for (size_t i = 0; i < cfi->source_count; i++) {
		enum cfi_answer answer =
			row_in_source(cfi, &cfi->sources[i], arena, ea, out, e);

		if (answer == CFI_ROW)
			return answer;
		if (answer == CFI_BAD)
			worst = answer;
	}
	return worst;
}
