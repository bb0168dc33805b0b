/*
 * Each name on the way is judged as it is written, and once more as it is with all links resolved: a link is as good
 * as the directory that it is in, and as those that it passes.
 */
#include "base/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_of_others(const struct stat *st)
{
	return st->st_uid != geteuid() && st->st_uid != 0;
}

static bool others_write(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != st->st_uid);
}

/* In a directory with the sticky bit others cannot replace what is there. */
static bool others_replace(const struct stat *st)
{
	return others_write(st) && !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX);
}

static const char *writers_lack(struct arena *arena, const char *path, const struct stat *st)
{
	/* With an access control list the group's bits are the mask of all that it names. */
	bool listed =
		st->st_mode & S_IWGRP && getxattr(path, "system.posix_acl_access", NULL, 0) > 0;

	return listed || others_replace(st)
		       ? arena_printf(arena, "others may write to %s", path)
		       : NULL;
}

/* What `path` names, alone; `st` is of what it leads to. *there: something is. */
static const char *name_lacks(struct arena *arena, const char *path, enum trust wanted,
			      struct stat *st, bool *there)
{
	struct stat link;

	*there = lstat(path, &link) == 0;
	if (!*there)
		return NULL;
	if (is_of_others(&link))
		return arena_printf(arena, "%s belongs to another user", path);
	*there = stat(path, st) == 0;
	if (!*there)
		return NULL;
	if (is_of_others(st))
		return arena_printf(arena, "%s belongs to another user", path);
	return wanted >= TRUST_WRITERS ? writers_lack(arena, path, st) : NULL;
}

static size_t part_end(const char *path, size_t at)
{
	at += strspn(path + at, "/");
	return at + strcspn(path + at, "/");
}

static const char *names_lack(struct arena *arena, const char *path, enum trust wanted)
{
	size_t end = path[0] == '/' ? 1 : part_end(path, 0), next;
	bool shared = false; /* others may make what is not there */

	for (;; end = next) {
		const char *name = arena_copy(arena, path, end), *lacks;
		struct stat st = {0};
		bool there;

		lacks = name_lacks(arena, name, wanted, &st, &there);
		if (lacks)
			return lacks;
		if (!there)
			return shared && wanted >= TRUST_WRITERS
				       ? arena_printf(arena, "others may make %s", name)
				       : NULL;
		shared = others_write(&st);
		next = part_end(path, end);
		if (next == end || !path[end + strspn(path + end, "/")])
			return NULL;
	}
}

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

const char *trust_lacks(struct arena *arena, const char *path, enum trust wanted)
{
	const char *lacks = names_lack(arena, path, wanted);
	char *real;

	if (lacks)
		return lacks;
	if (wanted == TRUST_PLACE && is_link(path))
		return arena_printf(arena, "%s is a symbolic link", path);
	real = realpath(path, NULL);
	if (real)
		lacks = names_lack(arena, real, wanted);
	free(real);
	return lacks;
}
