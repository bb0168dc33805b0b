#include "elf/debug_path.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define SYSTEM_DEBUG_DIRECTORY "/usr/lib/debug"

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

/* The place that was named so, or of which the name begins so and a slash follows; NULL: none. */
static const struct debug_named *named_at(const struct debugfiles *files, const char *path,
					  bool below)
{
	for (const struct debug_named *at = files->named; at && at->name; at++) {
		size_t len = strlen(at->name);

		if (len && strncmp(path, at->name, len) == 0 &&
		    (below ? path[len] == '/' || at->name[len - 1] == '/' : !path[len]) &&
		    below == (at->dir >= 0))
			return at;
	}
	return NULL;
}

static int named_open(const struct debugfiles *files, const char *path, struct err *e)
{
	const struct debug_named *place = named_at(files, path, true);
	const char *rest;

	if (!place)
		return file_open(path, e);
	rest = path + strlen(place->name);
	return file_open_below(place->dir, rest + strspn(rest, "/"), path, e);
}

int debug_path_open(const struct debugfiles *files, const char *path, struct err *e)
{
	const char *inside = inside_sysroot(files, path);

	if (!inside)
		return named_open(files, path, e);
	SCOPED_FD int root = sysroot_open(files);

	return root < 0 ? file_open(path, e) : file_open_rooted(root, inside, e);
}

const char *debug_path_join(struct debugfiles *files, const char *directory, const char *name)
{
	size_t len = strlen(directory);
	bool slash = (len && directory[len - 1] == '/') || name[0] == '/';

	return arena_printf(files->arena, "%s%s%s", directory, slash ? "" : "/", name);
}

const char *debug_path_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *debug_path_directory(struct debugfiles *files, const char *path)
{
	return dirname(arena_string(files->arena, path));
}

/* A path under SYSROOT, with the links resolved that are in it; it still begins with SYSROOT. */
static const char *real_inside(struct debugfiles *files, const char *path)
{
	SCOPED_FD int root = sysroot_open(files);
	const char *real = NULL;

	if (root >= 0)
		real = file_real_inside(files->arena, root, inside_sysroot(files, path));
	return real ? debug_path_join(files, files->sysroot, real) : path;
}

const char *debug_path_real(struct debugfiles *files, const char *path)
{
	const struct debug_named *named = named_at(files, path, false);
	const char *kept = path;
	char *resolved;

	if (named && named->real)
		return named->real;
	if (inside_sysroot(files, path))
		return real_inside(files, path);
	resolved = realpath(path, NULL);
	if (resolved)
		kept = arena_string(files->arena, resolved);
	free(resolved);
	return kept;
}

bool debug_path_is_inside(const struct debugfiles *files, const char *path)
{
	return inside_sysroot(files, path) != NULL;
}

const char *debug_path_below(const struct debugfiles *files, const char *path)
{
	const char *inside = inside_sysroot(files, path);

	return inside && inside[0] == '/' ? inside : path;
}

const char *debug_path_under_sysroot(struct debugfiles *files, const char *path)
{
	return files->sysroot && path[0] == '/' ? debug_path_join(files, files->sysroot, path)
						: NULL;
}

size_t debug_directories_given(const struct debugfiles *files)
{
	size_t n = 0;

	while (files->directories && files->directories[n])
		n++;
	return n;
}

const char *debug_directory(struct debugfiles *files, size_t i)
{
	size_t given = debug_directories_given(files);

	if (i < given)
		return files->directories[i];
	if (files->sysroot && i == given)
		return debug_path_join(files, files->sysroot, SYSTEM_DEBUG_DIRECTORY);
	if (i == given + (files->sysroot ? 1 : 0))
		return SYSTEM_DEBUG_DIRECTORY;
	return NULL;
}
