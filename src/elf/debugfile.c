#include "elf/debugfile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trust.h"
#include "elf/compress.h"
#include "elf/debug_candidate.h"
#include "elf/debug_path.h"

static struct elf *candidate_in(struct debugfiles *files, const char *directory,
				const char *name, const struct debug_want *want)
{
	return debug_candidate(files, debug_path_join(files, directory, name), want);
}

/* Where the file itself is, behind all links. */
static const char *real_directory(struct debugfiles *files, const struct elf *elf)
{
	return debug_path_directory(files, debug_path_real(files, elf->name));
}

/* ---- Places ---- */

/* "ab/cdef.debug" below a .build-id directory. */
static const char *build_id_name(struct debugfiles *files, struct bytes build_id)
{
	const char *hex = build_id_text(files->arena, build_id);

	return arena_printf(files->arena, ".build-id/%.2s/%s.debug", hex, hex + 2);
}

static struct elf *find_by_build_id(struct debugfiles *files, const struct debug_want *want)
{
	const char *name, *directory;
	struct elf *found = NULL;

	if (want->build_id.len < 2 || want->build_id.len > BUILD_ID_MAX)
		return NULL;
	name = build_id_name(files, want->build_id);
	for (size_t i = 0; !found && (directory = debug_directory(files, i)); i++)
		found = candidate_in(files, directory, name, want);
	return found;
}

/* `name` in every DIR: under `directory` (absolute), and flat in those the user named. */
static struct elf *find_in_directories(struct debugfiles *files, const char *directory,
				       const char *name, const struct debug_want *want)
{
	const char *debug;
	struct elf *found = NULL;

	for (size_t i = 0; !found && (debug = debug_directory(files, i)); i++) {
		if (directory[0] == '/')
			found = candidate_in(files, debug_path_join(files, debug, directory),
					     name, want);
		if (!found && i < debug_directories_given(files))
			found = candidate_in(files, debug, name, want);
	}
	return found;
}

static struct elf *find_beside(struct debugfiles *files, const char *directory,
			       const char *name, const struct debug_want *want)
{
	struct elf *found;

	if (!directory)
		return NULL;
	found = candidate_in(files, directory, name, want);
	if (!found)
		found = candidate_in(files, debug_path_join(files, directory, ".debug"), name,
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
				     const char *path, const struct debug_want *want)
{
	struct debug_want with_crc = *want;
	const char *name = debuglink_read(elf, &with_crc.crc);
	const char *real = real_directory(files, elf);
	const char *running = path[0] == '/' ? debug_path_directory(files, path) : real;
	struct elf *found;

	if (!name)
		return NULL;
	with_crc.has_crc = true;
	found = find_beside(files, real, name, &with_crc);
	if (!found)
		found = find_beside(files, debug_path_under_sysroot(files, running), name,
				    &with_crc);
	if (!found)
		found = find_in_directories(files, running, name, &with_crc);
	if (!found && strcmp(real, running) != 0)
		found = find_in_directories(files, debug_path_below(files, real), name,
					    &with_crc);
	return found;
}

static struct elf *find_by_name(struct debugfiles *files, const struct elf *elf,
				const char *path, const struct debug_want *want)
{
	const char *real = debug_path_real(files, elf->name);
	const char *running = path[0] == '/' ? path : real;
	const char *directory = debug_path_directory(files, running);
	const char *with_suffix =
		arena_printf(files->arena, "%s.debug", debug_path_last(running));
	struct elf *found;

	if (!want->build_id.len)
		return NULL;
	found = find_beside(files, debug_path_directory(files, real), with_suffix, want);
	if (!found)
		found = find_in_directories(files, directory, with_suffix, want);
	if (!found)
		found = find_in_directories(files, directory, debug_path_last(running), want);
	return found;
}

/* $DEBUGINFOD_CACHE_PATH, else $XDG_CACHE_HOME/debuginfod_client, else under ~/.cache. */
const char *debuginfod_cache(struct arena *arena)
{
	const char *at = getenv("DEBUGINFOD_CACHE_PATH");

	if (at && *at)
		return at;
	at = getenv("XDG_CACHE_HOME");
	if (at && *at)
		return arena_printf(arena, "%s/debuginfod_client", at);
	at = getenv("HOME");
	return at && *at ? arena_printf(arena, "%s/.cache/debuginfod_client", at) : NULL;
}

/* What others may have put there proves nothing by its build-id. */
static struct elf *candidate_trusted(struct debugfiles *files, const char *path,
				     const struct debug_want *want)
{
	const char *lacks = trust_lacks(files->arena, path, TRUST_PLACE);

	return lacks ? debug_candidate_refuse(files, path, lacks)
		     : debug_candidate(files, path, want);
}

static struct elf *find_in_cache(struct debugfiles *files, const struct debug_want *want)
{
	const char *cache = debuginfod_cache(files->arena), *path;

	if (!cache || want->build_id.len < 2 || want->build_id.len > BUILD_ID_MAX)
		return NULL;
	path = arena_printf(files->arena, "%s/%s/debuginfo", cache,
			    build_id_text(files->arena, want->build_id));
	return access(path, F_OK) == 0 ? candidate_trusted(files, path, want) : NULL;
}

static struct elf *find_elsewhere(struct debugfiles *files, const struct debug_want *want)
{
	const char *path, *why = NULL, *refused_before = files->refused;
	struct elf *found;

	if (!files->fetch || want->build_id.len < 2 || want->build_id.len > BUILD_ID_MAX)
		return NULL;
	path = files->fetch->file(files->fetch->context, want->build_id, &why);
	files->refused = NULL;
	found = path ? candidate_trusted(files, path, want) : NULL;
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
static struct elf *find_fetched(struct debugfiles *files, const struct debug_want *want)
{
	struct elf *found = find_in_cache(files, want);

	return found ? found : find_elsewhere(files, want);
}

struct elf *debugfile_find(struct debugfiles *files, struct elf *elf, const char *path)
{
	struct debug_want want = {.like = elf, .build_id = elf->build_id};
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

/* A name that `from` holds, absolute or relative to the directory Stacker runs in. A process
 * with a root of its own could make that any file of this machine. */
static struct elf *candidate_named(struct debugfiles *files, const struct elf *from,
				   const char *path, const struct debug_want *want)
{
	const char *under = debug_path_under_sysroot(files, path);
	struct elf *found = under ? debug_candidate(files, under, want) : NULL;

	if (found || (files->sysroot_is_process && debug_path_is_inside(files, from->name)))
		return found;
	return debug_candidate(files, path, want);
}

struct elf *debugfile_find_alternate(struct debugfiles *files, const struct elf *from,
				     const char *name, struct bytes build_id)
{
	struct debug_want want = {.like = from, .build_id = build_id};
	struct elf *found;
	const char *debug;

	if (name[0] == '/')
		found = candidate_named(files, from, name, &want);
	else
		found = candidate_in(files, real_directory(files, from), name, &want);
	for (size_t i = 0; !found && (debug = debug_directory(files, i)); i++)
		found = candidate_in(files, debug_path_join(files, debug, ".dwz"),
				     debug_path_last(name), &want);
	if (!found)
		found = find_by_build_id(files, &want);
	if (!found)
		found = find_fetched(files, &want);
	return found;
}

struct elf *debugfile_find_dwo(struct debugfiles *files, const struct elf *elf,
			       const char *name, const char *directory, uint64_t id)
{
	struct debug_want want = {.like = elf, .has_dwo_id = true, .dwo_id = id};
	const char *full =
		name[0] == '/' || !directory ? name : debug_path_join(files, directory, name);
	const char *beside = real_directory(files, elf);
	struct elf *found = candidate_named(files, elf, full, &want);

	if (!found && name[0] != '/')
		found = candidate_in(files, beside, name, &want);
	if (!found)
		found = candidate_in(files, beside, debug_path_last(name), &want);
	for (size_t i = 0; !found && i < debug_directories_given(files); i++) {
		found = candidate_in(files, files->directories[i], name, &want);
		if (!found)
			found = candidate_in(files, files->directories[i],
					     debug_path_last(name), &want);
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
				const struct debug_want *want)
{
	const char *name = arena_printf(files->arena, "%s.dwp", path);
	const char *below = debug_path_directory(files, debug_path_below(files, name));
	struct elf *found = debug_candidate(files, name, want);

	return found ? found : find_in_directories(files, below, debug_path_last(name), want);
}

struct elf *debugfile_find_dwp(struct debugfiles *files, const struct elf *elf)
{
	struct debug_want want = {.like = elf};
	const char *real = debug_path_real(files, elf->name);
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
