#include "symbol/files.h"

#include <sys/mman.h>

#include "base/budget.h"
#include "base/file.h"
#include "base/mapping.h"
#include "symbol/points_file.h"

/* ---- Companions, when debug information asks for them ---- */

static struct elf *companion(struct symbol_files *files, struct elf *found)
{
	struct symbol_stage *stage = &files->stage;

	if (found)
		*vec_push(&stage->arena, &stage->companion_files) = found->data;
	return found;
}

static struct elf *open_dwo(void *context, const char *name, const char *directory, uint64_t id)
{
	struct symbol_files *files = context;

	files->unproven = true;
	return companion(files, debugfile_find_dwo(&files->places, files->module->elf, name,
						   directory, id));
}

static struct elf *open_dwp(void *context)
{
	struct symbol_files *files = context;
	struct elf *found = debugfile_find_dwp(&files->places, files->module->elf);

	files->unproven = true;
	if (!found && files->debug)
		found = debugfile_find_dwp(&files->places, files->debug);
	return companion(files, found);
}

static struct elf *open_alternate(void *context, const char *name, struct bytes build_id)
{
	struct symbol_files *files = context;

	/* A process with a root of its own may bring any file and call it so. */
	if (!build_id.len || files->places.sysroot)
		files->unproven = true;
	return companion(files, debugfile_find_alternate(&files->places, files->stage.dwarf_elf,
							 name, build_id));
}

/* ---- The files ---- */

static bool has_dwarf(const struct elf *elf)
{
	const struct elf_section *info = elf_section(elf, ".debug_info");

	return info && info->type != SHT_NOBITS && info->size;
}

void symbol_files_find(struct symbol_files *files, struct module *module, struct arena *arena,
		       const struct symbol_options *options)
{
	files->module = module;
	files->store = options->cache;
	files->qualifies = options->names == SYMBOL_NAMES_LINKER;
	files->places = (struct debugfiles){
		.arena = arena,
		.directories = options->debug_directories,
		.named = options->named,
		.sysroot = options->sysroot,
		.sysroot_dir = options->sysroot_dir,
		.sysroot_is_process = options->sysroot_is_process,
		.fetch = options->fetch,
	};
	if (!has_dwarf(module->elf))
		files->debug = module_debug_file(module, &files->places);
}

/* prelink moved libraries to other addresses; their debug files kept those of the linker. By
 * a section: tools that change a file add segments, even before the first. */
static uint64_t shift_between(const struct elf *from, const struct elf *to)
{
	const struct elf_section *a = elf_section(from, ".text"), *b = elf_section(to, ".text");

	return a && b && a->size == b->size ? b->ea - a->ea : 0;
}

/* Views, because the files are the unwinder's too, and what it has decompressed stays. */
static void files_open(struct symbol_files *files)
{
	struct symbol_stage *stage = &files->stage;
	struct elf *own = elf_view(files->module->elf, &stage->arena);
	struct elf *debug = files->debug ? elf_view(files->debug, &stage->arena) : NULL;

	files->places.opened = &stage->arena;
	stage->companions =
		(struct dwarf_companions){files, open_dwo, open_dwp, open_alternate};
	stage->dwarf_elf = debug && has_dwarf(debug) ? debug : own;
	stage->dwarf = dwarf_open(&stage->arena, stage->dwarf_elf, &stage->companions);
	if (stage->dwarf && files->qualifies)
		dwarf_qualify_names(stage->dwarf);
	if (stage->dwarf)
		stage->points = points_file_open(&stage->arena, files->store, stage->dwarf_elf);
	if (stage->points)
		dwarf_use_points(stage->dwarf, points_file_points(stage->points));
	stage->dwarf_shift = shift_between(own, stage->dwarf_elf);
	stage->go = gopclntab_open(&stage->arena, own);
	stage->tables = (struct symtab_sources){
		.module = own,
		.embedded = debugfile_embedded(own, &files->embedded_problem),
		.debug = stage->dwarf_shift ? NULL : debug,
	};
	files->opened = files->read = true;
	files->informed = stage->dwarf || stage->go;
}

/* Of a file that stays mapped; what is needed again comes again. */
static void pages_give_back(const struct elf *elf)
{
	if (elf && elf->mapped)
		madvise((void *)(uintptr_t)elf->data.at, elf->data.len, MADV_DONTNEED);
}

static void stage_free(struct symbol_stage *stage)
{
	/* A file that was cut while it was read must be told to the end. */
	for (size_t i = 0; i < stage->companion_files.count; i++)
		if (!mapping_is_cut(stage->companion_files.at[i]))
			file_unmap(stage->companion_files.at[i]);
	arena_free(&stage->arena);
	budget_give_back(stage->decompressed);
}

static bool are_good(const struct symbol_files *files)
{
	size_t at = 0;

	return !files->problem && !mapping_next_cut(&at);
}

void symbol_files_close(struct symbol_files *files)
{
	struct symbol_stage *stage = &files->stage;

	if (!files->opened)
		return;
	if (stage->points)
		points_file_close(stage->points, are_good(files));
	if (files->lent)
		arena_take(files->places.arena, &stage->arena);
	else
		stage_free(stage);
	pages_give_back(files->module->elf);
	pages_give_back(files->debug);
	*stage = (struct symbol_stage){0};
	files->places.opened = NULL;
	files->opened = files->lent = false;
}

/* ---- Questions ---- */

/* Most modules are asked once, and a table for those addresses is made ten times as fast. */
static void symtab_prepare(struct symbol_stage *stage, const struct dwarf_answer *unique,
			   size_t count)
{
	struct arena scratch = {0};
	struct symtab_asked asked = {NULL, 0};
	uint64_t *at;

	if (stage->symtab_is_for_all)
		return;
	stage->symtab_is_for_all = stage->symtab != NULL;
	if (!stage->symtab) {
		at = arena_array(&scratch, uint64_t, count);
		for (size_t i = 0; i < count; i++)
			at[i] = unique[i].ea;
		asked = (struct symtab_asked){at, count};
	}
	stage->symtab = symtab_new(&stage->arena, &stage->tables, &asked);
	arena_free(&scratch);
}

static void dwarf_ask(struct symbol_stage *stage, struct dwarf_answer *unique, size_t count)
{
	uint64_t shift = stage->dwarf_shift;

	/* They must stay in order. */
	if (unique[count - 1].ea + shift < unique[0].ea + shift)
		return;
	for (size_t i = 0; i < count; i++)
		unique[i].ea += shift;
	dwarf_lookup(stage->dwarf, unique, count);
	for (size_t i = 0; shift && i < count; i++)
		for (size_t k = 0; k < unique[i].frame_count; k++)
			if (unique[i].frames[k].function_ea)
				unique[i].frames[k].function_ea -= shift;
	for (size_t i = 0; i < count; i++)
		unique[i].ea -= shift; /* as asked */
}

void symbol_files_ask(struct symbol_files *files, struct dwarf_answer *unique, size_t count)
{
	struct symbol_stage *stage = &files->stage;
	uint64_t before = budget_held();
	const char *problem;

	if (!files->opened)
		files_open(files);
	symtab_prepare(stage, unique, count);
	if (stage->dwarf)
		dwarf_ask(stage, unique, count);
	problem = stage->dwarf ? dwarf_problem(stage->dwarf) : NULL;
	if (!problem)
		problem = symtab_left_out(stage->symtab);
	if (problem && !files->problem)
		files->problem = arena_string(files->places.arena, problem);
	stage->decompressed += budget_held() - before;
}

const char *symbol_files_problem(const struct symbol_files *files)
{
	if (files->module->debug_refused)
		return files->module->debug_refused;
	if (files->places.refused)
		return files->places.refused;
	if (files->problem)
		return files->problem;
	return files->embedded_problem.kind ? files->embedded_problem.text : NULL;
}
