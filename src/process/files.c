#include "process/files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/elf.h"
#include "process/step.h"
#include "process/still.h"

/* Of the smallest page there is. */
#define FIRST_PAGE 4096
#define VDSO_MAX ((uint64_t)1 << 20)

static bool same_file(const struct map *a, const struct map *b)
{
	return a->inode == b->inode && a->device_minor == b->device_minor &&
	       a->device_major == b->device_major && a->deleted == b->deleted &&
	       strcmp(a->path, b->path) == 0;
}

static bool is_vdso(const struct map *map)
{
	return strcmp(map->path, "[vdso]") == 0;
}

typedef VEC(const struct map *) map_list;

/* The module a map belongs to, by the first map of each; -1 when it is new. Neighbours usually
 * belong together, so the newest module is tried first. */
static int32_t module_of(const map_list *firsts, const struct map *map)
{
	for (size_t i = firsts->count; i-- > 0;)
		if (same_file(firsts->at[i], map))
			return (int32_t)i;
	return -1;
}

/* Code of a file, or a file whose code was replaced by anonymous memory right behind this part of
 * it (programs that move their text to huge pages). */
static bool begins_module(const struct snapshot *snapshot, size_t index)
{
	const struct map *map = &snapshot->maps[index], *next = map + 1;

	if (is_vdso(map) || (map->inode != 0 && MAP_EXECUTABLE(map)))
		return true;
	if (map->inode == 0)
		return false;
	return index + 1 < snapshot->map_count && next->start == map->end &&
	       MAP_EXECUTABLE(next) && next->inode == 0 && next->path[0] == '\0';
}

static void maps_group(struct snapshot *snapshot, struct arena *arena, map_list *firsts)
{
	for (size_t i = 0; i < snapshot->map_count; i++) {
		struct map *map = &snapshot->maps[i];

		if (!begins_module(snapshot, i))
			continue;
		map->module = module_of(firsts, map);
		if (map->module < 0) {
			map->module = (int32_t)firsts->count;
			*vec_push(arena, firsts) = map;
		}
	}
	for (size_t i = 0; i < snapshot->map_count; i++) {
		struct map *map = &snapshot->maps[i];

		if (map->module < 0 && map->inode != 0)
			map->module = module_of(firsts, map);
	}
}

static size_t memory_read(uint32_t pid, uint64_t va, void *to, size_t size)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)va, size};
	ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* The build-id of the running image: its first page holds the headers and, nearly always, the
 * note. What lies outside it is left unknown. */
static const char *build_id_in_memory(struct arena *arena, uint32_t pid, uint64_t va)
{
	uint8_t *page = arena_alloc(arena, FIRST_PAGE, 1);
	struct elf elf;

	if (memory_read(pid, va, page, FIRST_PAGE) != FIRST_PAGE ||
	    !elf_open(&elf, arena, (struct bytes){page, FIRST_PAGE}, "", NULL))
		return NULL;
	return build_id_text(arena, elf.build_id);
}

/* Does the opened file have the build-id that is in memory? */
static bool build_id_equal(struct arena *arena, int fd, const char *build_id)
{
	struct bytes data;
	struct elf elf;
	const char *have = NULL;

	if (!build_id || !file_map_fd(fd, "", &data, NULL))
		return false;
	if (elf_open(&elf, arena, data, "", NULL))
		have = build_id_text(arena, elf.build_id);
	file_unmap(data);
	return have && strcmp(have, build_id) == 0;
}

/* Overlay and btrfs file systems show other device and inode numbers in maps than in stat. */
static bool is_the_mapped_file(struct arena *arena, const struct map *map, int fd,
			       const struct stat *st, const char *build_id)
{
	return (st->st_ino == map->inode && major(st->st_dev) == map->device_major &&
		minor(st->st_dev) == map->device_minor) ||
	       build_id_equal(arena, fd, build_id);
}

static int open_checked(struct arena *arena, const struct process *process,
			const struct map *map, const char *build_id)
{
	struct stat st;
	int fd = file_open_inside(process->root, map->path, false, &st);

	if (fd >= 0 && !is_the_mapped_file(arena, map, fd, &st, build_id)) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}

static int module_file_open(struct arena *arena, const struct process *process,
			    const struct map *map, const struct snapshot_module *module,
			    const struct avoid *avoid, const char **why)
{
	char name[64];
	struct stat st;
	int fd;

	snprintf(name, sizeof name, "map_files/%jx-%jx", (uintmax_t)map->start,
		 (uintmax_t)map->end);
	errno = ENOENT;
	fd = avoid->space ? -1 : file_open_at(process->dir, name, false, &st);
	if (fd >= 0)
		return fd;
	if (errno == EINVAL) {
		*why = "not a regular file";
		return -1;
	}
	fd = open_checked(arena, process, map, module->build_id);
	if (fd >= 0)
		return fd;
	*why = errno == ESTALE ? "the file at this path is another one now" : strerror(errno);
	if (module->is_executable && !avoid->program)
		fd = file_open_at(process->dir, "exe", false, &st);
	return fd;
}

static void step_file(const struct map *map)
{
	step_begin(STEP_FILE, step_device(map->device_major, map->device_minor), map->path);
}

static bool leads_to(const struct process *process, const struct map *map, const char *path)
{
	struct stat st;

	step_file(map);
	return file_look_inside(process->root, path, &st) && st.st_ino == map->inode;
}

/* A file may really be called "x (deleted)": then that name leads to the mapped inode. */
static void deleted_check(struct arena *arena, const struct process *process, struct map *map)
{
	const char *path;

	if (!map->deleted || map->path[0] != '/')
		return;
	path = arena_printf(arena, "%s (deleted)", map->path);
	if (leads_to(process, map, path)) {
		map->path = path;
		map->deleted = false;
	}
}

/* The kernel writes a newline as "\012" and a backslash as it is, so a name that really holds these
 * four characters reads like one with a newline: the inode decides. */
static void newline_check(struct arena *arena, const struct process *process, struct map *map)
{
	size_t len = strlen(map->path);
	char *literal, *to;

	if (!strchr(map->path, '\n') || leads_to(process, map, map->path))
		return;
	literal = to = arena_array(arena, char, len * 4 + 1);
	for (const char *at = map->path; *at; at++) {
		if (*at == '\n')
			to = stpcpy(to, "\\012");
		else
			*to++ = *at;
	}
	if (leads_to(process, map, literal))
		map->path = literal;
}

/* By device and inode; where the device in maps is not stat's (overlay, btrfs), by the path. */
static bool is_executable(struct arena *arena, const struct process *process,
			  const struct snapshot *snapshot, const struct map *map, bool may_ask)
{
	const char *path =
		map->deleted ? arena_printf(arena, "%s (deleted)", map->path) : map->path;
	struct stat st;

	if (may_ask && fstatat(process->dir, "exe", &st, 0) == 0 && st.st_ino == map->inode &&
	    major(st.st_dev) == map->device_major && minor(st.st_dev) == map->device_minor)
		return true;
	return snapshot->executable_path && strcmp(snapshot->executable_path, path) == 0;
}

/* First and last address of each module, and where its headers lie. */
static void extents_set(struct snapshot *snapshot, struct arena *arena, uint32_t pid,
			const struct avoid *avoid)
{
	for (size_t i = 0; i < snapshot->map_count; i++) {
		const struct map *map = &snapshot->maps[i];
		struct snapshot_module *module;

		if (map->module < 0)
			continue;
		module = &snapshot->modules[map->module];
		if (module->end == 0)
			module->start = map->start;
		module->end = map->end;
		if (map->off != 0 || module->build_id || avoid->space ||
		    !avoid_permits_file(avoid, map))
			continue;
		step_file(map);
		module->build_id = build_id_in_memory(arena, pid, map->start);
	}
}

/* Its pages are filled up with zeros, which with large pages are most of it. Sections' headers, which
 * come last, may end in zeros too. */
static size_t image_size(const uint8_t *image, size_t mapped)
{
	size_t used = mapped;

	while (used && image[used - 1] == 0)
		used--;
	return mapped - used < sizeof(Elf64_Shdr) ? mapped : used + sizeof(Elf64_Shdr);
}

static void vdso_read(struct snapshot *snapshot, struct arena *arena, uint32_t pid,
		      const struct map *map)
{
	uint64_t size = map->end - map->start;
	uint8_t *image;

	if (size > VDSO_MAX)
		return;
	image = arena_alloc(arena, size, 1);
	snapshot->vdso.va = map->start;
	snapshot->vdso.bytes =
		(struct bytes){image,
			       image_size(image, memory_read(pid, map->start, image, size))};
}

/* All that takes the lock of its memory and nothing else: whether that answers. */
static void space_read(struct snapshot *snapshot, struct arena *arena, uint32_t pid)
{
	step_begin(STEP_SPACE, 0, NULL);
	for (size_t i = 0; i < snapshot->map_count; i++)
		if (is_vdso(&snapshot->maps[i]))
			vdso_read(snapshot, arena, pid, &snapshot->maps[i]);
}

/* With the device of the program's file, when that did not answer. */
static struct avoid program_avoided(const struct snapshot *snapshot, const struct avoid *avoid)
{
	struct avoid all = *avoid;
	const char *program = snapshot->executable_path;

	for (size_t i = 0; avoid->program && program && i < snapshot->map_count; i++) {
		const struct map *map = &snapshot->maps[i];

		if (strcmp(map->path, program) == 0 && avoid_permits_file(&all, map))
			avoid_file(&all, map);
	}
	return all;
}

static void names_check(struct snapshot *snapshot, struct arena *arena,
			const struct process *process, const struct avoid *avoid)
{
	for (size_t i = 0; i < snapshot->map_count; i++) {
		struct map *map = &snapshot->maps[i];

		if (!avoid_permits_file(avoid, map))
			continue;
		deleted_check(arena, process, map);
		newline_check(arena, process, map);
	}
}

static void module_fill(struct captured *out, struct arena *arena,
			const struct process *process, const struct avoid *avoid, size_t index,
			const struct map *map)
{
	struct snapshot_module *module = &out->snapshot.modules[index];

	module->path = map->path;
	module->deleted = map->deleted;
	out->files[index] = -1;
	if (is_vdso(map))
		return;
	step_file(map);
	module->is_executable =
		is_executable(arena, process, &out->snapshot, map, !avoid->program);
	if (avoid_permits_file(avoid, map))
		out->files[index] = still_file(module_file_open(arena, process, map, module,
								avoid, &out->whys[index]));
	else
		out->whys[index] = "its file system did not answer";
}

/* The kernel's " (deleted)" is no part of a name: `deleted` of the module says it. */
static void program_name_check(struct snapshot *snapshot, struct arena *arena)
{
	for (size_t i = 0; snapshot->executable_path && i < snapshot->module_count; i++) {
		const struct snapshot_module *module = &snapshot->modules[i];
		const char *path = arena_printf(arena, "%s (deleted)", module->path);

		if (module->is_executable && module->deleted &&
		    strcmp(snapshot->executable_path, path) == 0)
			snapshot->executable_path = module->path;
	}
}

void files_open(struct captured *out, struct arena *arena, const struct process *process,
		const struct avoid *avoid)
{
	struct snapshot *snapshot = &out->snapshot;
	struct avoid avoided = program_avoided(snapshot, avoid);
	map_list firsts = {0};

	if (!avoid->space)
		space_read(snapshot, arena, process->living);
	names_check(snapshot, arena, process, &avoided);
	maps_group(snapshot, arena, &firsts);
	snapshot->module_count = firsts.count;
	snapshot->modules = arena_array(arena, struct snapshot_module, firsts.count);
	out->files = arena_array(arena, int, firsts.count);
	out->whys = arena_array(arena, const char *, firsts.count);
	extents_set(snapshot, arena, process->living, &avoided);
	for (size_t i = 0; i < firsts.count; i++)
		module_fill(out, arena, process, &avoided, i, firsts.at[i]);
	program_name_check(snapshot, arena);
	step_end();
}

/* Read, not mapped: its writer may truncate it at any time. */
struct bytes perf_map_read(struct arena *arena, const struct process *process,
			   const struct process_status *status)
{
	struct bytes text = {NULL, 0};
	struct stat st;
	char path[64];

	snprintf(path, sizeof path, "/tmp/perf-%u.map", status->namespace_pid);
	SCOPED_FD int fd = file_open_inside(process->root, path, true, &st);

	if (fd >= 0 && (st.st_uid == status->uid || st.st_uid == 0))
		file_read_fd(arena, fd, path, PERF_MAP_MAX, &text, NULL);
	return text;
}

void captured_close(struct captured *captured)
{
	for (size_t i = 0; i < captured->snapshot.module_count; i++)
		if (captured->files && captured->files[i] >= 0)
			close(captured->files[i]);
	captured->files = NULL;
}
