/*
 * Translating addresses of a process to addresses of files, and back to the file they came from.
 *
 * Every mapping of a module becomes a range with its own bias. The PT_LOAD that a mapping shows is
 * found by file offset: a mapping [off, off + size) shows the segment whose file part overlaps it; where two segments share a page (lld,
 * -z noseparate-code) the one with the mapping's permissions wins.
 */
#include "module/module.h"

#include <string.h>

#include "base/file.h"
#include "base/mapping.h"
#include "elf/debugfile.h"
#include "module/find.h"

/* More than nearly all programs have. */
#define MODULES_LEFT_IN_MEMORY 256

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool permissions_match(const struct elf_segment *s, const struct map *map)
{
	return (s->flags & PF_X ? 1 : 0) == (MAP_EXECUTABLE(map) ? 1 : 0) &&
	       (s->flags & PF_W ? 1 : 0) == (MAP_WRITABLE(map) ? 1 : 0);
}

/* Where the mapping's own first byte would be if the segment began on it, compared with what the
 * segment really covers: overlap of [off, off + size) with [s->off, s->off + file_size). */
static bool segment_overlaps(const struct elf_segment *s, const struct map *map)
{
	uint64_t size = map->end - map->start;

	return s->off < map->off + size && map->off < s->off + s->file_size;
}

static uint64_t bias_by(const struct elf_segment *s, const struct map *map)
{
	return map->start - map->off + s->off - s->ea;
}

/* RELRO and mprotect change permissions after loading, so a match is a preference only. Without one the
 * segment is taken that lies where the module does: with large pages the part of data that is read-only
 * often shares its page of the file with code. */
static const struct elf_segment *segment_shown(const struct module *module,
					       const struct map *map)
{
	const struct elf_segment *best = NULL;

	for (size_t i = 0; i < module->elf->segment_count; i++) {
		const struct elf_segment *s = &module->elf->segments[i];

		if (s->type != PT_LOAD || !segment_overlaps(s, map))
			continue;
		if (permissions_match(s, map))
			return s;
		if (!best || (module->has_load_bias && bias_by(s, map) == module->load_bias))
			best = s;
	}
	return best;
}

static bool bias_of(const struct module *module, const struct map *map, uint64_t *bias)
{
	const struct elf_segment *s = module->elf ? segment_shown(module, map) : NULL;

	if (s) {
		*bias = bias_by(s, map);
		return true;
	}
	*bias = module->load_bias;
	return module->has_load_bias;
}

static void range_add(struct modules *set, struct module *module, const struct map *map)
{
	struct module_range *range = &set->ranges[set->range_count];
	uint64_t bias;

	if (!bias_of(module, map, &bias))
		bias = map->start - map->off; /* file offsets are the best addresses left */
	*range = (struct module_range){
		.start = map->start,
		.end = map->end,
		.bias = bias,
		.module = module,
		.executable = MAP_EXECUTABLE(map),
		.writable = MAP_WRITABLE(map),
	};
	set->range_count++;
	if (module->elf && range->executable && !module->has_load_bias) {
		module->load_bias = bias;
		module->has_load_bias = true;
	}
}

/* The vDSO is mapped from no file: its first byte is the ELF header, so its bias is where it lies
 * minus the first PT_LOAD's address. */
static void range_add_vdso(struct modules *set, struct module *module, const struct map *map)
{
	const struct elf_segment *s = module->elf ? elf_segment_of(module->elf, PT_LOAD) : NULL;

	if (s && !module->has_load_bias) {
		module->load_bias = map->start + s->off - s->ea;
		module->has_load_bias = true;
	}
	set->ranges[set->range_count++] = (struct module_range){
		.start = map->start,
		.end = map->end,
		.bias = module->has_load_bias ? module->load_bias : map->start,
		.module = module,
		.executable = MAP_EXECUTABLE(map),
	};
}

/*
 * Programs that move their text to huge pages replace mapped code by anonymous memory with the same
 * contents. An anonymous executable mapping belongs to a module when the mappings around it do, with
 * one bias, and the file has code at these addresses.
 */
static void range_add_remapped(struct modules *set, const struct map *map,
			       const struct map *next)
{
	const struct module_range *before;
	const struct elf_segment *s;
	uint64_t bias;

	if (set->range_count == 0 || !next || !MAP_EXECUTABLE(map) || map->inode != 0 ||
	    map->path[0])
		return;
	before = &set->ranges[set->range_count - 1];
	if (!before->module->elf || &set->at[next->module] != before->module ||
	    !bias_of(before->module, next, &bias) || bias != before->bias)
		return;
	s = elf_segment_at(before->module->elf, map->start - bias);
	if (!s || !(s->flags & PF_X))
		return;
	set->ranges[set->range_count++] = (struct module_range){
		.start = map->start,
		.end = map->end,
		.bias = bias,
		.module = before->module,
		.executable = true,
		.writable = MAP_WRITABLE(map),
	};
}

static bool has_module(const struct modules *set, const struct map *map)
{
	return map->module >= 0 && (size_t)map->module < set->count;
}

/* Per map: the next one, itself included, that belongs to a module; NULL: none. */
static const struct map **next_of_modules(const struct modules *set,
					  const struct snapshot *snapshot)
{
	const struct map **next =
		arena_array(set->arena, const struct map *, snapshot->map_count);

	for (size_t i = snapshot->map_count; i-- > 0;) {
		if (has_module(set, &snapshot->maps[i]))
			next[i] = &snapshot->maps[i];
		else if (i + 1 < snapshot->map_count)
			next[i] = next[i + 1];
	}
	return next;
}

static void ranges_make(struct modules *set, const struct snapshot *snapshot)
{
	const struct map **next = next_of_modules(set, snapshot);

	set->ranges = arena_array(set->arena, struct module_range, snapshot->map_count);
	for (size_t i = 0; i < snapshot->map_count; i++) {
		const struct map *map = &snapshot->maps[i];

		if (!has_module(set, map))
			range_add_remapped(set, map, next[i]);
		else if (strcmp(map->path, "[vdso]") == 0)
			range_add_vdso(set, &set->at[map->module], map);
		else
			range_add(set, &set->at[map->module], map);
	}
}

static void set_begin(struct modules *set, struct arena *arena, const struct snapshot *snapshot)
{
	*set = (struct modules){.arena = arena, .count = snapshot->module_count};
	set->at = arena_array(arena, struct module, set->count);
	for (size_t i = 0; i < set->count; i++) {
		const struct snapshot_module *record = &snapshot->modules[i];

		set->at[i] = (struct module){
			.path = record->path,
			.name = last_part(record->path),
			.build_id = record->build_id,
			.has_load_bias = record->has_load_bias,
			.load_bias = record->load_bias,
			.is_executable = record->is_executable,
		};
	}
}

bool module_elf_open(struct module *module, struct arena *arena, struct bytes data,
		     const char *file_path, struct err *e)
{
	struct elf *elf = arena_new(arena, struct elf);

	if (!elf_open_image(elf, arena, data, file_path, e))
		return false;
	module->elf = elf;
	module->file_path = file_path;
	if (!module->build_id)
		module->build_id = build_id_text(arena, elf->build_id);
	return true;
}

static bool is_vdso(const struct module *module)
{
	return strcmp(module->path, "[vdso]") == 0;
}

static void vdso_open(struct module *module, struct arena *arena,
		      const struct snapshot *snapshot)
{
	struct err e = {0};

	if (snapshot->vdso.bytes.len == 0)
		module->why = "its image is not in the capture";
	else if (!module_elf_open(module, arena, snapshot->vdso.bytes, "[vdso]", &e))
		module->why = arena_string(arena, e.text);
}

/* The kernel fills up to 64 KiB around each page that is touched, in every mapping anew: tens of thousands of
 * modules would take gigabytes for their headers. Those that frames need are touched again. */
static void pages_release(const struct modules *set, size_t index)
{
	const struct elf *elf = set->at[index].elf;

	if (index >= MODULES_LEFT_IN_MEMORY && elf && elf->mapped)
		mapping_release(elf->data);
}

/* Of the running image. What lies outside of its first page is left unknown. */
static const char *build_id_in_memory(struct arena *arena, struct bytes first_page)
{
	struct arena scratch = {0};
	const char *text = NULL;
	struct elf elf;

	if (first_page.len && elf_open(&elf, &scratch, first_page, "", NULL))
		text = build_id_text(arena, elf.build_id);
	arena_free(&scratch);
	return text;
}

static void live_open(struct module *module, struct arena *arena, int fd,
		      const struct module_source *source, const struct snapshot *snapshot)
{
	struct err e = {0};
	struct bytes data;

	/* An image of another architecture or build gives wrong names and wrong rows: refused. */
	if (source->is_unproven && !module->build_id)
		module->why = "the file has been replaced since it was mapped";
	else if (!file_map_fd(fd, module->path, &data, &e) ||
		 !module_elf_take(module, arena, data, module->path, snapshot->arch, false, &e))
		module->why = arena_string(arena, e.text);
}

void modules_open_live(struct modules *out, struct arena *arena,
		       const struct snapshot *snapshot, const int *files,
		       const struct module_source *sources)
{
	set_begin(out, arena, snapshot);
	for (size_t i = 0; i < out->count; i++) {
		struct module *module = &out->at[i];

		if (!module->build_id)
			module->build_id = build_id_in_memory(arena, sources[i].first_page);
		if (is_vdso(module))
			vdso_open(module, arena, snapshot);
		else if (files[i] >= 0)
			live_open(module, arena, files[i], &sources[i], snapshot);
		else
			module->why =
				sources[i].why
					? sources[i].why
					: "too many open files here: raise the limit (ulimit -n)";
		pages_release(out, i);
	}
	ranges_make(out, snapshot);
}

void modules_lie_under(struct modules *modules, const char *root)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct elf *elf = modules->at[i].elf;

		if (elf && elf->name[0] == '/')
			elf->name = arena_printf(modules->arena, "%s%s", root, elf->name);
	}
}

/* Of the file that --executable names, if it is that of a recorded module: a program that was
 * started through ld.so is not the one that the kernel calls the executable. */
static const char *executable_build_id(const struct modules *set,
				       const struct module_search *search)
{
	const char *build_id;
	struct elf elf;

	if (!search->executable ||
	    !elf_open(&elf, set->arena, search->executable->data, "", NULL))
		return NULL;
	build_id = build_id_text(set->arena, elf.build_id);
	for (size_t i = 0; build_id && i < set->count; i++)
		if (set->at[i].build_id && strcmp(set->at[i].build_id, build_id) == 0)
			return build_id;
	return NULL;
}

bool modules_open_offline(struct modules *out, struct arena *arena,
			  const struct snapshot *snapshot, const struct module_search *search,
			  struct err *e)
{
	struct module_search each = *search;

	set_begin(out, arena, snapshot);
	each.build_id = executable_build_id(out, search);
	for (size_t i = 0; i < out->count; i++) {
		struct module *module = &out->at[i];

		if (is_vdso(module))
			vdso_open(module, arena, snapshot);
		else if (!module_find_file(module, arena, snapshot->arch, &each, e))
			return false;
		pages_release(out, i);
	}
	ranges_make(out, snapshot);
	return true;
}

bool module_open_file(struct module *out, struct arena *arena, const char *path, struct err *e)
{
	struct named_file file;

	return named_file_open(&file, arena, path, e) &&
	       module_open_named(out, arena, &file, e);
}

bool module_open_named(struct module *out, struct arena *arena, const struct named_file *file,
		       struct err *e)
{
	const char *path = file->name;

	*out = (struct module){.path = path, .name = last_part(path), .has_load_bias = true};
	if (!module_elf_open(out, arena, file->data, path, e))
		return false;
	out->elf->mapped = file->is_mapped;
	module_elf(out);
	return true;
}

struct elf *module_elf(struct module *module)
{
	struct elf *elf = module->elf;

	if (!elf || elf->sections_known)
		return elf;
	elf_sections_read(elf);
	if (!module->build_id)
		module->build_id = build_id_text(elf->arena, elf->build_id);
	return elf;
}

struct elf *module_debug_file(struct module *module, struct debugfiles *files)
{
	if (!module->debug_looked_for) {
		module->debug_looked_for = true;
		module->debug = debugfile_find(files, module_elf(module), module->path);
		module->debug_refused = files->refused;
		module->debug_not_fetched = files->not_fetched;
	}
	return module->debug;
}

const struct module_range *module_range_at(const struct modules *modules, uint64_t va)
{
	size_t low = 0, high = modules->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (modules->ranges[middle].end <= va)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < modules->range_count && modules->ranges[low].start <= va)
		return &modules->ranges[low];
	return NULL;
}
