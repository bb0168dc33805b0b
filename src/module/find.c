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
	have = build_id_text(elf->arena, elf->build_id);
	if (any_build_id || !module->build_id || (have && strcmp(have, module->build_id) == 0))
		return true;
	return err_set(e, ERR_MISMATCH, "%s has build-id %s, the process ran %s", elf->name,
		       have ? have : "(none)", module->build_id);
}

bool module_elf_take(struct module *module, struct arena *arena, struct bytes data,
		     const char *file_path, const struct arch *arch, bool any_build_id,
		     struct err *e)
{
	const char *recorded = module->build_id;

	if (module_elf_open(module, arena, data, file_path, e) &&
	    module_elf_fits(module, arch, any_build_id, e)) {
		module->elf->mapped = true;
		return true;
	}
	module->elf = NULL;
	module->file_path = NULL;
	module->build_id = recorded;
	file_unmap(data);
	return false;
}

static const char *path_under(struct arena *arena, const char *sysroot, const char *path)
{
	return sysroot ? arena_printf(arena, "%s/%s", sysroot, path) : path;
}

static bool file_try(struct module *module, struct arena *arena, const struct arch *arch,
		     const char *sysroot, const char *path, bool any_build_id, struct err *e)
{
	struct bytes data;

	return file_map_inside(sysroot, path, &data, e) &&
	       module_elf_take(module, arena, data, path_under(arena, sysroot, path), arch,
			       any_build_id, e);
}

bool module_find_file(struct module *module, struct arena *arena, const struct arch *arch,
		      const struct module_search *search, struct err *e)
{
	struct err why = {0};

	if (module->is_executable && search->executable) {
		if (file_try(module, arena, arch, NULL, search->executable,
			     search->any_build_id, &why))
			return true;
		*e = why;
		return false;
	}
	if (!file_try(module, arena, arch, search->sysroot, module->path, search->any_build_id,
		      &why))
		module->why = arena_string(arena, why.text);
	return true;
}
