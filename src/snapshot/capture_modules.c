#include "snapshot/capture_modules.h"

#include <string.h>

/* End of the run that begins with maps[at]: mappings of the same path, with anonymous ones (.bss)
 * only between two of them. The loader maps one image in one go, so the run is one image, unless
 * offset 0 comes again. */
static size_t run_end(const struct snapshot *snapshot, size_t at)
{
	const struct map *first = &snapshot->maps[at];
	size_t end = at + 1;

	for (size_t i = end; i < snapshot->map_count; i++) {
		const struct map *map = &snapshot->maps[i];

		if (!map->path[0])
			continue;
		if (strcmp(map->path, first->path) != 0 || !map->off)
			break;
		end = i + 1;
	}
	return end;
}

static bool run_is_code(const struct snapshot *snapshot, size_t at, size_t end)
{
	bool is_code = false;

	for (size_t i = at; i < end; i++)
		is_code |= MAP_EXECUTABLE(&snapshot->maps[i]) && snapshot->maps[i].path[0];
	return is_code;
}

/* Files, and the vDSO; not [heap], [stack], [vsyscall]. */
static bool may_be_module(const struct map *map)
{
	return map->path[0] == '/' || strcmp(map->path, "[vdso]") == 0;
}

/* Without a recorded path the program is taken to be the first file: it is mapped lowest. */
static bool is_program(const struct snapshot *snapshot, const struct snapshot_module *module,
		       size_t index)
{
	return snapshot->executable_path ? strcmp(module->path, snapshot->executable_path) == 0
					 : index == 0;
}

void modules_from_maps(struct arena *arena, struct snapshot *snapshot)
{
	VEC(struct snapshot_module) modules = {0};
	struct map *maps = snapshot->maps;

	for (size_t at = 0, end; at < snapshot->map_count; at = end) {
		struct snapshot_module module = {.path = maps[at].path,
						 .start = maps[at].start,
						 .deleted = maps[at].deleted};

		end = at + 1;
		if (!may_be_module(&maps[at]))
			continue;
		end = run_end(snapshot, at);
		if (!run_is_code(snapshot, at, end))
			continue;
		for (size_t i = at; i < end; i++)
			if (maps[i].path[0])
				maps[i].module = (int32_t)modules.count;
		module.end = maps[end - 1].end;
		module.is_executable = is_program(snapshot, &module, modules.count);
		*(struct snapshot_module *)vec_push(arena, &modules) = module;
	}
	snapshot->modules = modules.at;
	snapshot->module_count = modules.count;
}
