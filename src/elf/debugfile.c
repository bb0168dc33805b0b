#include "elf/debugfile.h"

#include <fcntl.h>
#include <libgen.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/compress.h"

#define SYSTEM_DEBUG_DIRECTORY "/usr/lib/debug"
#define CRC_BLOCK ((size_t)64 << 10)

/* What a candidate must be. */
struct want {
	const struct elf *like; /* same architecture, and not this file itself */
	struct bytes build_id;  /* empty: does not matter */
	bool has_crc;
	uint32_t crc;
	bool has_dwo_id;
	uint64_t dwo_id;
};

/* ---- Checks ---- */

/* Read, not mapped: a debug file of some hundred megabytes must not count as memory used. */
static bool crc_of_file(int fd, uint32_t *crc)
{
	static uint8_t block[CRC_BLOCK];
	off_t off = 0;
	ssize_t got;

	*crc = 0;
	while ((got = pread(fd, block, sizeof block, off)) > 0) {
		*crc = lzma_crc32(block, (size_t)got, *crc);
		off += got;
	}
	return got == 0;
}

/* The dwo_id in the header of the first split unit; false before DWARF 5, where it is no header
 * field. Format: DWARF 5, 7.5.1.2. */
static bool dwo_id_read(struct elf *elf, uint64_t *id)
{
	enum { SPLIT_COMPILE = 5 /* DW_UT_split_compile */ };
	struct bytes info;
	struct reader r;
	bool is_64;
	uint8_t type;

	if (!elf_section_bytes(elf, ".debug_info.dwo", &info, NULL))
		return false;
	r = reader_over(info);
	is_64 = read_u32(&r) == UINT32_MAX;
	reader_skip(&r, is_64 ? 8 : 0);
	if (read_u16(&r) != 5)
		return false;
	type = read_u8(&r);
	read_u8(&r); /* address_size */
	reader_skip(&r, is_64 ? 8 : 4);
	*id = read_u64(&r);
	return type == SPLIT_COMPILE && !reader_failed(&r);
}

/* What .debug_sup of a supplementary file says it is (DWARF 5, 7.3.6); it needs no build-id. */
static struct bytes checksum_read(struct elf *elf)
{
	struct bytes contents = {NULL, 0}, checksum;
	struct reader r;
	bool is_supplementary;

	elf_section_bytes(elf, ".debug_sup", &contents, NULL);
	r = reader_over(contents);
	read_u16(&r); /* version */
	is_supplementary = read_u8(&r) != 0;
	read_string(&r); /* of the other file: none */
	checksum = read_block(&r, read_uleb(&r));
	return is_supplementary ? checksum : (struct bytes){NULL, 0};
}

static const char *why_refused(struct elf *elf, int fd, const struct want *want)
{
	struct bytes build_id = elf->build_id.len ? elf->build_id : checksum_read(elf);
	uint32_t crc;
	uint64_t id;

	if (elf->machine != want->like->machine)
		return "other architecture";
	if (want->build_id.len && build_id.len == 0)
		return "it has no build-id";
	if (want->build_id.len && !bytes_equal(build_id, want->build_id))
		return "other build-id";
	if (want->has_crc && (!crc_of_file(fd, &crc) || crc != want->crc))
		return "its CRC is not the one in .gnu_debuglink";
	if (want->has_dwo_id && dwo_id_read(elf, &id) && id != want->dwo_id)
		return "other dwo_id";
	return NULL;
}

static struct elf *refuse(struct debugfiles *files, const char *path, const char *why)
{
	if (!files->refused)
		files->refused =
			arena_printf(files->arena, "debug file %s refused: %s", path, why);
	return NULL;
}

/* What follows SYSROOT in a path, or NULL. */
static const char *inside_sysroot(const struct debugfiles *files, const char *path)
{
	size_t len = files->sysroot ? strlen(files->sysroot) : 0;

	if (len == 0 || strncmp(path, files->sysroot, len) != 0)
		return NULL;
	return path[len] == '/' || files->sysroot[len - 1] == '/' ? path + len : NULL;
}

static int sysroot_open(const struct debugfiles *files)
{
	return files->sysroot_dir ? fcntl(*files->sysroot_dir, F_DUPFD_CLOEXEC, 0)
				  : open(files->sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int candidate_open(const struct debugfiles *files, const char *path, struct err *e)
{
	const char *inside = inside_sysroot(files, path);

	if (!inside)
		return file_open(path, e);
	SCOPED_FD int root = sysroot_open(files);

	return root < 0 ? file_open(path, e) : file_open_rooted(root, inside, e);
}

static bool is_file(const struct debugfiles *files, int fd, const char *path)
{
	struct err e = {0};
	SCOPED_FD int other = candidate_open(files, path, &e);
	struct stat sa, sb;

	return other >= 0 && fstat(fd, &sa) == 0 && fstat(other, &sb) == 0 &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* Opens the file at `path` if it is what is wanted. A file that is not there is no news. */
static struct elf *candidate(struct debugfiles *files, const char *path,
			     const struct want *want)
{
	struct err e = {0};
	SCOPED_FD int fd = candidate_open(files, path, &e);
	struct arena *arena = files->opened ? files->opened : files->arena;
	struct bytes data;
	struct elf *elf;
	const char *why;

	if (fd < 0)
		return e.kind == ERR_NOT_FOUND ? NULL : refuse(files, path, e.text);
	if (is_file(files, fd, want->like->name))
		return NULL;
	path = arena_string(files->arena, path); /* it may be the text of another file */
	if (!file_map_fd(fd, path, &data, &e))
		return refuse(files, path, e.text);
	elf = arena_new(arena, struct elf);
	why = elf_open(elf, arena, data, path, &e) ? why_refused(elf, fd, want) : e.text;
	if (why) {
		file_unmap(data);
		return refuse(files, path, why);
	}
	elf->mapped = true;
	return elf;
}

/* ---- Names ---- */

static const char *join(struct debugfiles *files, const char *directory, const char *name)
{
	size_t len = strlen(directory);
	bool slash = (len && directory[len - 1] == '/') || name[0] == '/';

	return arena_printf(files->arena, "%s%s%s", directory, slash ? "" : "/", name);
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *directory_of(struct debugfiles *files, const char *path)
{
	return dirname(arena_string(files->arena, path));
}

/* A path under SYSROOT, with the links resolved that are in it; it still begins with SYSROOT. */
static const char *real_name_inside(struct debugfiles *files, const char *path)
{
	SCOPED_FD int root = sysroot_open(files);
	const char *real = NULL;

	if (root >= 0)
		real = file_real_inside(files->arena, root, inside_sysroot(files, path));
	return real ? join(files, files->sysroot, real) : path;
}

/* The name with all symbolic links resolved, or as it is when there is no such file here. */
static const char *real_name(struct debugfiles *files, const char *path)
{
	const char *kept = path;
	char *resolved;

	if (inside_sysroot(files, path))
		return real_name_inside(files, path);
	resolved = realpath(path, NULL);
	if (resolved)
		kept = arena_string(files->arena, resolved);
	free(resolved);
	return kept;
}

/* The name as it is below DIR: of a path under SYSROOT what follows it. */
static const char *name_below(const struct debugfiles *files, const char *path)
{
	const char *inside = inside_sysroot(files, path);

	return inside && inside[0] == '/' ? inside : path;
}

static const char *under_sysroot(struct debugfiles *files, const char *path)
{
	return files->sysroot && path[0] == '/' ? join(files, files->sysroot, path) : NULL;
}

static size_t directory_count(const struct debugfiles *files)
{
	size_t n = 0;

	while (files->directories && files->directories[n])
		n++;
	return n;
}

/* DIR of the head comment, by number; NULL behind the last one. */
static const char *debug_directory(struct debugfiles *files, size_t i)
{
	size_t given = directory_count(files);

	if (i < given)
		return files->directories[i];
	if (files->sysroot && i == given)
		return join(files, files->sysroot, SYSTEM_DEBUG_DIRECTORY);
	if (i == given + (files->sysroot ? 1 : 0))
		return SYSTEM_DEBUG_DIRECTORY;
	return NULL;
}

/* ---- Places ---- */

/* "ab/cdef.debug" below a .build-id directory. */
static const char *build_id_name(struct debugfiles *files, struct bytes build_id)
{
	const char *hex = build_id_text(files->arena, build_id);

	return arena_printf(files->arena, ".build-id/%.2s/%s.debug", hex, hex + 2);
}

static struct elf *find_by_build_id(struct debugfiles *files, const struct want *want)
{
	const char *name, *directory;
	struct elf *found = NULL;

	if (want->build_id.len < 2 || want->build_id.len > BUILD_ID_MAX)
		return NULL;
	name = build_id_name(files, want->build_id);
	for (size_t i = 0; !found && (directory = debug_directory(files, i)); i++)
		found = candidate(files, join(files, directory, name), want);
	return found;
}

/* `name` in every DIR: under `directory` (absolute), and flat in those the user named. */
static struct elf *find_in_directories(struct debugfiles *files, const char *directory,
				       const char *name, const struct want *want)
{
	const char *debug;
	struct elf *found = NULL;

	for (size_t i = 0; !found && (debug = debug_directory(files, i)); i++) {
		if (directory[0] == '/')
			found = candidate(files,
					  join(files, join(files, debug, directory), name),
					  want);
		if (!found && i < directory_count(files))
			found = candidate(files, join(files, debug, name), want);
	}
	return found;
}

static struct elf *find_beside(struct debugfiles *files, const char *directory,
			       const char *name, const struct want *want)
{
	struct elf *found;

	if (!directory)
		return NULL;
	found = candidate(files, join(files, directory, name), want);
	if (!found)
		found = candidate(files, join(files, join(files, directory, ".debug"), name),
				  want);
	return found;
}

/* .gnu_debuglink: a name, padded with zeros to 4 bytes, and the CRC32 of the file it names. */
static const char *debuglink_read(struct elf *elf, uint32_t *crc)
{
	struct bytes link;
	struct reader r;
	const char *name;

	if (!elf_section_bytes(elf, ".gnu_debuglink", &link, NULL))
		return NULL;
	r = reader_over(link);
	name = read_string(&r);
	reader_skip(&r, (0 - (uint64_t)reader_offset(&r)) & 3);
	*crc = read_u32(&r);
	/* A name, not a path: nothing outside the places of the head comment is looked at. */
	return reader_failed(&r) || !*name || strchr(name, '/') ? NULL : name;
}

static struct elf *find_by_debuglink(struct debugfiles *files, struct elf *elf,
				     const char *path, const struct want *want)
{
	struct want with_crc = *want;
	const char *name = debuglink_read(elf, &with_crc.crc);
	const char *real = directory_of(files, real_name(files, elf->name));
	const char *running = path[0] == '/' ? directory_of(files, path) : real;
	struct elf *found;

	if (!name)
		return NULL;
	with_crc.has_crc = true;
	found = find_beside(files, real, name, &with_crc);
	if (!found)
		found = find_beside(files, under_sysroot(files, running), name, &with_crc);
	if (!found)
		found = find_in_directories(files, running, name, &with_crc);
	if (!found && strcmp(real, running) != 0)
		found = find_in_directories(files, name_below(files, real), name, &with_crc);
	return found;
}

static struct elf *find_by_name(struct debugfiles *files, const struct elf *elf,
				const char *path, const struct want *want)
{
	const char *real = real_name(files, elf->name);
	const char *running = path[0] == '/' ? path : real;
	const char *directory = directory_of(files, running);
	const char *with_suffix = arena_printf(files->arena, "%s.debug", last_part(running));
	struct elf *found;

	if (!want->build_id.len)
		return NULL;
	found = find_beside(files, directory_of(files, real), with_suffix, want);
	if (!found)
		found = find_in_directories(files, directory, with_suffix, want);
	if (!found)
		found = find_in_directories(files, directory, last_part(running), want);
	return found;
}

/* $DEBUGINFOD_CACHE_PATH, else $XDG_CACHE_HOME/debuginfod_client, else under ~/.cache. */
static const char *debuginfod_cache(struct debugfiles *files)
{
	const char *at = getenv("DEBUGINFOD_CACHE_PATH");

	if (at && *at)
		return at;
	at = getenv("XDG_CACHE_HOME");
	if (at && *at)
		return join(files, at, "debuginfod_client");
	at = getenv("HOME");
	return at && *at ? join(files, at, ".cache/debuginfod_client") : NULL;
}

static struct elf *find_in_cache(struct debugfiles *files, const struct want *want)
{
	const char *cache = debuginfod_cache(files);

	if (!cache || want->build_id.len < 2 || want->build_id.len > BUILD_ID_MAX)
		return NULL;
	return candidate(files,
			 arena_printf(files->arena, "%s/%s/debuginfo", cache,
				      build_id_text(files->arena, want->build_id)),
			 want);
}

static struct elf *find_elsewhere(struct debugfiles *files, const struct want *want)
{
	const char *path, *why = NULL, *refused_before = files->refused;
	struct elf *found;

	if (!files->fetch || want->build_id.len < 2 || want->build_id.len > BUILD_ID_MAX)
		return NULL;
	path = files->fetch->file(files->fetch->context, want->build_id, &why);
	files->refused = NULL;
	found = path ? candidate(files, path, want) : NULL;
	if (!found && !why)
		why = files->refused ? files->refused
				     : arena_printf(files->arena,
						    "%s was fetched and cannot be used", path);
	if (refused_before)
		files->refused = refused_before;
	if (!found && !files->not_fetched)
		files->not_fetched = why;
	return found;
}

/* Places 4 and 5. */
static struct elf *find_fetched(struct debugfiles *files, const struct want *want)
{
	struct elf *found = find_in_cache(files, want);

	return found ? found : find_elsewhere(files, want);
}

struct elf *debugfile_find(struct debugfiles *files, struct elf *elf, const char *path)
{
	struct want want = {.like = elf, .build_id = elf->build_id};
	struct elf *found = find_by_build_id(files, &want);

	if (!found)
		found = find_by_debuglink(files, elf, path, &want);
	if (!found)
		found = find_by_name(files, elf, path, &want);
	if (!found)
		found = find_fetched(files, &want);
	return found;
}

/* ---- Companions ---- */

struct elf *debugfile_find_alternate(struct debugfiles *files, const struct elf *from,
				     const char *name, struct bytes build_id)
{
	struct want want = {.like = from, .build_id = build_id};
	const char *under = under_sysroot(files, name), *debug;
	struct elf *found = under ? candidate(files, under, &want) : NULL;

	if (!found && name[0] == '/')
		found = candidate(files, name, &want);
	else if (!found)
		found = candidate(files,
				  join(files, directory_of(files, real_name(files, from->name)),
				       name),
				  &want);
	for (size_t i = 0; !found && (debug = debug_directory(files, i)); i++)
		found = candidate(files,
				  join(files, join(files, debug, ".dwz"), last_part(name)),
				  &want);
	if (!found)
		found = find_by_build_id(files, &want);
	if (!found)
		found = find_fetched(files, &want);
	return found;
}

struct elf *debugfile_find_dwo(struct debugfiles *files, const struct elf *elf,
			       const char *name, const char *directory, uint64_t id)
{
	struct want want = {.like = elf, .has_dwo_id = true, .dwo_id = id};
	const char *full = name[0] == '/' || !directory ? name : join(files, directory, name);
	const char *beside = directory_of(files, real_name(files, elf->name));
	const char *under = under_sysroot(files, full);
	struct elf *found = under ? candidate(files, under, &want) : NULL;

	if (!found)
		found = candidate(files, full, &want);
	if (!found && name[0] != '/')
		found = candidate(files, join(files, beside, name), &want);
	if (!found)
		found = candidate(files, join(files, beside, last_part(name)), &want);
	for (size_t i = 0; !found && i < directory_count(files); i++) {
		found = candidate(files, join(files, files->directories[i], name), &want);
		if (!found)
			found = candidate(files,
					  join(files, files->directories[i], last_part(name)),
					  &want);
	}
	return found;
}

/* "X.debug" -> "X"; anything else as it is. */
static const char *without_debug(struct debugfiles *files, const char *path)
{
	static const char suffix[] = ".debug";
	size_t len = strlen(path), cut = sizeof suffix - 1;

	if (len <= cut || strcmp(path + len - cut, suffix) != 0)
		return path;
	return arena_copy(files->arena, path, len - cut);
}

static struct elf *find_package(struct debugfiles *files, const char *path,
				const struct want *want)
{
	const char *name = arena_printf(files->arena, "%s.dwp", path);
	struct elf *found = candidate(files, name, want);

	if (!found)
		found = find_in_directories(files, directory_of(files, name_below(files, name)),
					    last_part(name), want);
	return found;
}

struct elf *debugfile_find_dwp(struct debugfiles *files, const struct elf *elf)
{
	struct want want = {.like = elf};
	const char *real = real_name(files, elf->name);
	struct elf *found = find_package(files, elf->name, &want);

	if (!found && strcmp(real, elf->name) != 0)
		found = find_package(files, real, &want);
	if (!found && without_debug(files, real) != real)
		found = find_package(files, without_debug(files, real), &want);
	return found;
}

struct elf *debugfile_embedded(struct elf *elf, struct err *e)
{
	struct bytes packed, plain;
	struct elf *mini;

	if (!elf_section_bytes(elf, ".gnu_debugdata", &packed, e) || packed.len == 0)
		return NULL;
	if (!decompress_xz(elf->arena, packed, &plain, e)) {
		err_within(e, "%s: section .gnu_debugdata", elf->name);
		return NULL;
	}
	mini = arena_new(elf->arena, struct elf);
	return elf_open(mini, elf->arena, plain, elf->name, e) ? mini : NULL;
}
