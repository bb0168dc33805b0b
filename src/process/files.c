#include "process/files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "process/leases.h"
#include "process/map_modules.h"
#include "process/needed.h"
#include "process/step.h"
#include "process/still.h"

/* Of the smallest page there is. */
#define FIRST_PAGE 4096
/* No program has so many modules whose file is not at hand. */
#define PAGES_MAX 1024
#define VDSO_MAX ((uint64_t)1 << 20)
#define FILES_LEFT_FREE 12

static size_t memory_read(uint32_t pid, uint64_t va, void *to, size_t size)
{
	struct iovec local = {to, size}, remote = {(void *)(uintptr_t)va, size};
	ssize_t got = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* The headers of the running image and, nearly always, its build-id; who may do less than this
 * process reads them. */
static struct bytes first_page_read(struct arena *arena, uint32_t pid, uint64_t va)
{
	uint8_t *page = arena_array(arena, uint8_t, FIRST_PAGE);

	if (memory_read(pid, va, page, FIRST_PAGE) != FIRST_PAGE)
		return (struct bytes){NULL, 0};
	return (struct bytes){page, FIRST_PAGE};
}

static bool is_the_mapped_file(const struct map *map, const struct stat *st)
{
	return st->st_ino == map->inode && major(st->st_dev) == map->device_major &&
	       minor(st->st_dev) == map->device_minor;
}

/* The links of /proc lead to the mapped file. A name may lead elsewhere by now; overlay and btrfs
 * file systems show other device and inode numbers in maps than in stat. */
static int module_file_open(const struct process *process, const struct map *map,
			    bool is_executable, const struct avoid *avoid,
			    struct module_source *source)
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
		source->why = "not a regular file";
		return -1;
	}
	if (is_executable && !avoid->program)
		fd = file_open_at(process->dir, "exe", false, &st);
	if (fd >= 0)
		return fd;
	fd = file_open_inside(process->root, map->path, false, &st);
	if (fd < 0)
		source->why = strerror(errno);
	source->is_unproven = fd >= 0 && !is_the_mapped_file(map, &st);
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

/* First and last address of each module, and its headers. */
static void extents_set(struct captured *out, struct arena *arena, uint32_t pid,
			const struct avoid *avoid)
{
	const struct snapshot *snapshot = &out->snapshot;
	size_t pages = 0;

	for (size_t i = 0; i < snapshot->map_count; i++) {
		const struct map *map = &snapshot->maps[i];
		struct snapshot_module *module;
		struct module_source *source;

		if (map->module < 0)
			continue;
		module = &snapshot->modules[map->module];
		if (module->end == 0)
			module->start = map->start;
		module->end = map->end;
		source = &out->sources[map->module];
		if (map->off != 0 || source->first_page.len || avoid->space ||
		    pages == PAGES_MAX || !avoid_permits_file(avoid, map))
			continue;
		step_file(map);
		source->first_page = first_page_read(arena, pid, map->start);
		pages++;
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
		if (map_is_vdso(&snapshot->maps[i]))
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

/* Files that are not to be opened. */
struct refusals {
	const struct avoid *avoid;
	struct leases leases;
};

static void file_fill(struct captured *out, const struct process *process,
		      const struct refusals *refusals, size_t index, const struct map *map)
{
	struct module_source *source = &out->sources[index];

	out->files[index] = -1;
	source->why = "its file system did not answer";
	source->is_unproven = false;
	if (map_is_vdso(map) || !avoid_permits_file(refusals->avoid, map))
		return;
	source->why = "somebody holds a lease on its file, and would be told that it is opened";
	if (leases_have(&refusals->leases, map))
		return;
	source->why = NULL;
	step_file(map);
	errno = 0;
	out->files[index] = still_file(
		module_file_open(process, map, out->snapshot.modules[index].is_executable,
				 refusals->avoid, source));
	out->files_lacking |= out->files[index] < 0 && (errno == EMFILE || errno == ENFILE);
}

static void module_fill(struct captured *out, struct arena *arena,
			const struct process *process, const struct refusals *refusals,
			size_t index, const struct map *map)
{
	struct snapshot_module *module = &out->snapshot.modules[index];

	module->path = map->path;
	module->deleted = map->deleted;
	if (!map_is_vdso(map)) {
		step_file(map);
		module->is_executable = is_executable(arena, process, &out->snapshot, map,
						      !refusals->avoid->program);
	}
	file_fill(out, process, refusals, index, map);
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
	struct refusals refusals = {.avoid = &avoided};
	struct map_modules modules;

	if (!avoid->space)
		space_read(snapshot, arena, process->living);
	names_check(snapshot, arena, process, &avoided);
	modules = maps_group(arena, snapshot->maps, snapshot->map_count);
	snapshot->module_count = modules.count;
	snapshot->modules = arena_array(arena, struct snapshot_module, modules.count);
	out->files = arena_array(arena, int, modules.count);
	out->sources = arena_array(arena, struct module_source, modules.count);
	out->program_found = false;
	leases_read(&refusals.leases, arena);
	extents_set(out, arena, process->living, &avoided);
	for (size_t i = 0; i < modules.count; i++)
		module_fill(out, arena, process, &refusals, i, modules.firsts[i]);
	program_name_check(snapshot, arena);
	step_end();
}

static void files_close(struct captured *out)
{
	for (size_t i = 0; out->files && i < out->snapshot.module_count; i++) {
		if (out->files[i] >= 0)
			close(out->files[i]);
		out->files[i] = -1;
	}
}

/* Who waits for us has other files open, and needs some for debug information. */
static bool is_one_too_many(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)fd + FILES_LEFT_FREE >= limit.rlim_cur;
}

void files_open_needed(struct captured *out, struct arena *arena, const struct process *process,
		       const struct avoid *avoid)
{
	struct snapshot *snapshot = &out->snapshot;
	struct avoid avoided = program_avoided(snapshot, avoid);
	struct map_modules modules = maps_group(arena, snapshot->maps, snapshot->map_count);
	size_t needed;
	uint32_t *order = modules_by_need(arena, snapshot, &needed);
	struct refusals refusals = {.avoid = &avoided};
	bool full = false;

	leases_read(&refusals.leases, arena);
	files_close(out);
	for (size_t i = 0; i < snapshot->module_count; i++) {
		int *file = &out->files[order[i]];

		if (!full && i < needed)
			file_fill(out, process, &refusals, order[i], modules.firsts[order[i]]);
		if (*file >= 0 && is_one_too_many(*file)) {
			close(*file);
			*file = -1;
			full = true;
		}
		if (*file < 0 && !out->sources[order[i]].why)
			out->sources[order[i]].why =
				"too many open files here: raise the limit (ulimit -n)";
	}
	step_end();
}

/* Read, not mapped: its writer may truncate it at any time. */
void perf_map_read(struct captured *out, struct arena *arena, const struct process *process,
		   const struct process_status *status)
{
	struct err e = {0};
	struct stat st;
	char path[64];

	out->perf_map = (struct bytes){NULL, 0};
	snprintf(path, sizeof path, "/tmp/perf-%u.map", status->namespace_pid);
	SCOPED_FD int fd = file_open_inside(process->root, path, true, &st);

	if (fd < 0 || (st.st_uid != status->uid && st.st_uid != 0))
		return;
	/* By its size first: what was read of it in vain would stay in memory. */
	if ((uint64_t)st.st_size > PERF_MAP_MAX)
		err_set(&e, ERR_LIMIT, "too large");
	else
		file_read_fd(arena, fd, path, PERF_MAP_MAX, &out->perf_map, &e);
	if (e.kind == ERR_LIMIT)
		out->snapshot.code_names_left_out = "its perf map is larger than 256 MiB";
}

void captured_close(struct captured *captured)
{
	files_close(captured);
	captured->files = NULL;
}
