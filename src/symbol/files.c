#include "symbol/files.h"

/* ---- Companions, when debug information asks for them ---- */

static struct elf *open_dwo(void *context, const char *name, const char *directory, uint64_t id)
{
	struct symbol_files *files = context;

	files->unproven = true;
	return debugfile_find_dwo(&files->places, files->module->elf, name, directory, id);
}

static struct elf *open_dwp(void *context)
{
	struct symbol_files *files = context;
	struct elf *found = debugfile_find_dwp(&files->places, files->module->elf);

	files->unproven = true;
	return found || !files->debug ? found
				      : debugfile_find_dwp(&files->places, files->debug);
}

static struct elf *open_alternate(void *context, const char *name, struct bytes build_id)
{
	struct symbol_files *files = context;

	/* A process with a root of its own may bring any file and call it so. */
	if (!build_id.len || files->places.sysroot)
		files->unproven = true;
	return debugfile_find_alternate(&files->places, files->dwarf_elf, name, build_id);
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
	files->places = (struct debugfiles){
		.arena = arena,
		.directories = options->debug_directories,
		.sysroot = options->sysroot,
		.sysroot_dir = options->sysroot_dir,
		.fetch = options->fetch,
	};
	files->dwarf_elf = module->elf;
	if (has_dwarf(module->elf))
		return;
	files->debug = module_debug_file(module, &files->places);
	if (files->debug && has_dwarf(files->debug))
		files->dwarf_elf = files->debug;
}

/* prelink moved libraries to other addresses; their debug files kept those of the linker. By a section:
 * tools that change a file add segments, even before the first. */
static uint64_t shift_between(const struct elf *from, const struct elf *to)
{
	const struct elf_section *a = elf_section(from, ".text"), *b = elf_section(to, ".text");

	return a && b && a->size == b->size ? b->ea - a->ea : 0;
}

static void files_open(struct symbol_files *files)
{
	struct arena *arena = files->places.arena;
	struct elf *own = files->module->elf;

	files->opened = true;
	files->companions =
		(struct dwarf_companions){files, open_dwo, open_dwp, open_alternate};
	files->dwarf = dwarf_open(arena, files->dwarf_elf, &files->companions);
	files->dwarf_shift = shift_between(own, files->dwarf_elf);
	files->go = gopclntab_open(arena, own);
	files->tables = (struct symtab_sources){
		.module = own,
		.embedded = debugfile_embedded(own, &files->embedded_problem),
		.debug = files->dwarf_shift ? NULL : files->debug,
	};
}

/* ---- Questions ---- */

/* Most modules are asked once, and a table for those addresses is made ten times as fast. */
static void symtab_prepare(struct symbol_files *files, const struct dwarf_answer *unique,
			   size_t count)
{
	struct arena scratch = {0};
	struct symtab_asked asked = {NULL, 0};
	uint64_t *at;

	if (files->symtab_is_for_all)
		return;
	files->symtab_is_for_all = files->symtab != NULL;
	if (!files->symtab) {
		at = arena_array(&scratch, uint64_t, count);
		for (size_t i = 0; i < count; i++)
			at[i] = unique[i].ea;
		asked = (struct symtab_asked){at, count};
	}
	files->symtab = symtab_new(files->places.arena, &files->tables, &asked);
	arena_free(&scratch);
}

static void dwarf_ask(struct symbol_files *files, struct dwarf_answer *unique, size_t count)
{
	uint64_t shift = files->dwarf_shift;

	/* They must stay in order. */
	if (unique[count - 1].ea + shift < unique[0].ea + shift)
		return;
	for (size_t i = 0; i < count; i++)
		unique[i].ea += shift;
	dwarf_lookup(files->dwarf, unique, count);
	for (size_t i = 0; shift && i < count; i++)
		for (size_t k = 0; k < unique[i].frame_count; k++)
			if (unique[i].frames[k].function_ea)
				unique[i].frames[k].function_ea -= shift;
	for (size_t i = 0; i < count; i++)
		unique[i].ea -= shift; /* as asked */
}

void symbol_files_ask(struct symbol_files *files, struct dwarf_answer *unique, size_t count)
{
	if (!files->opened)
		files_open(files);
	symtab_prepare(files, unique, count);
	if (files->dwarf)
		dwarf_ask(files, unique, count);
}

const char *symbol_files_problem(const struct symbol_files *files)
{
	const char *problem = files->dwarf ? dwarf_problem(files->dwarf) : NULL;

	if (files->module->debug_refused)
		return files->module->debug_refused;
	if (files->places.refused)
		return files->places.refused;
	if (problem)
		return problem;
	return files->embedded_problem.kind ? files->embedded_problem.text : NULL;
}
