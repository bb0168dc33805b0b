#include "module/find.h"

#include <string.h>

#include "base/file.h"

static const char *machine_text(struct arena *arena, uint16_t machine)
{
	const struct arch *arch = arch_of_machine(machine);

	return arch ? arch->name : arena_printf(arena, "machine %u", machine);
}

bool module_elf_fits(const struct module *module, const struct arch *arch, bool any_build_id,
		     struct err *e)
{
	const struct elf *elf = module->elf;
	const char *have;

	if (elf->machine != arch->elf_machine)
		return err_set(e, ERR_MISMATCH, "%s is for %s, the process is %s", elf->name,
			       machine_text(elf->arena, elf->machine), arch->name);
	if (module->build_id && !elf->build_id.len)
		elf_sections_read(module->elf);
	have = build_id_text(elf->arena, elf->build_id);
	if (any_build_id || !module->build_id || (have && strcmp(have, module->build_id) == 0))
		return true;
	return err_set(e, ERR_MISMATCH, "%s has build-id %s, the process ran %s", elf->name,
		       have ? have : "(none)", module->build_id);
}

/* Leaves nothing in the module when it does not fit. */
static bool elf_try(struct module *module, struct arena *arena, struct bytes data,
		    const char *file_path, const struct arch *arch, bool any_build_id,
		    struct err *e)
{
	const char *recorded = module->build_id;

	if (module_elf_open(module, arena, data, file_path, e) &&
	    module_elf_fits(module, arch, any_build_id, e))
		return true;
	module->elf = NULL;
	module->file_path = NULL;
	module->build_id = recorded;
	return false;
}

bool module_elf_take(struct module *module, struct arena *arena, struct bytes data,
		     const char *file_path, const struct arch *arch, bool any_build_id,
		     struct err *e)
{
	if (elf_try(module, arena, data, file_path, arch, any_build_id, e)) {
		module->elf->mapped = true;
		return true;
	}
	file_unmap(data);
	return false;
}

static bool is_executable(const struct module *module, const struct module_search *search)
{
	if (!search->executable || !search->build_id)
		return search->executable && module->is_executable;
	return module->build_id && strcmp(module->build_id, search->build_id) == 0;
}

static bool executable_take(struct module *module, struct arena *arena, const struct arch *arch,
			    const struct module_search *search, struct err *e)
{
	const struct named_file *file = search->executable;

	if (!elf_try(module, arena, file->data, file->name, arch, search->any_build_id, e))
		return false;
	module->elf->mapped = file->is_mapped;
	return true;
}

static bool file_find(struct module *module, struct arena *arena, const struct arch *arch,
		      const struct module_search *search, struct err *e)
{
	const char *path = module->path;
	struct bytes data;

	if (search->sysroot) {
		if (!file_map_inside(search->sysroot_dir, path, &data, e))
			return err_within(e, "%s", search->sysroot);
		path = arena_printf(arena, "%s/%s", search->sysroot, path);
	} else if (!file_map(path, &data, e)) {
		return false;
	}
	return module_elf_take(module, arena, data, path, arch, search->any_build_id, e);
}

bool module_find_file(struct module *module, struct arena *arena, const struct arch *arch,
		      const struct module_search *search, struct err *e)
{
	struct err why = {0};

	if (is_executable(module, search))
		return executable_take(module, arena, arch, search, e);
	if (!file_find(module, arena, arch, search, &why))
		module->why = arena_string(arena, why.text);
	return true;
}
