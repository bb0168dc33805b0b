#include "base/cgroup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define TEXT_MAX ((size_t)4 << 20) /* mountinfo of a machine with thousands of containers */
#define FILE_MAX ((size_t)64 << 10)
#define FIELDS_MAX 32
/* Version 1 says that there is no limit by a number of pages that does not fit. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* How the files of a version are called. memory.stat counts the group and all below it, by names that
 * begin with "total_" in version 1. */
struct names {
	const char *limits[2], *used, *cached[2];
	const char *above; /* in memory.stat: the limit of groups that may be out of sight */
};

/* clang-format off */
static const struct names names_of[] = {
	[CGROUP_1] = {{"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes",
		      {"total_inactive_file ", "total_active_file "},
		      "hierarchical_memory_limit "},
	[CGROUP_2] = {{"memory.max", "memory.high"}, "memory.current",
		      {"inactive_file ", "active_file "}, NULL},
};
/* clang-format on */

/* ---- Which group, and where ---- */

/* The next line, copied; NULL at the end. */
static char *line_next(struct arena *arena, const char **text)
{
	size_t len = strcspn(*text, "\n");
	char *line;

	if (!**text)
		return NULL;
	line = arena_copy(arena, *text, len);
	*text += len + ((*text)[len] != '\0');
	return line;
}

/* Is `word` one of those in `list`, which commas separate? */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strncmp(list, word, len) == 0 && (!list[len] || list[len] == ','))
			return true;
	return false;
}

/* "4:cpu,memory:/path" or, in version 2, "0::/path": the path, or NULL. */
static const char *group_path(char *line, enum cgroup_version version)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return NULL;
	*controllers++ = *path++ = '\0';
	if (version == CGROUP_2 ? strcmp(line, "0") != 0 || *controllers
				: !list_has(controllers, "memory"))
		return NULL;
	return path[0] == '/' ? path : NULL;
}

/* In place: "\040" and the like, as the kernel writes blanks. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*to++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
				       (text[3] - '0'));
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static size_t fields_split(char *line, char *fields[FIELDS_MAX])
{
	char *rest;
	size_t count = 0;

	for (char *field = strtok_r(line, " ", &rest); field && count < FIELDS_MAX;
	     field = strtok_r(NULL, " ", &rest))
		fields[count++] = field;
	return count;
}

/* A line of mountinfo: id, parent, device, root, mount point, options, any number of others, "-",
 * type, source, options of the file system. */
static bool mount_read(char *line, enum cgroup_version version, char **root, char **point)
{
	char *fields[FIELDS_MAX];
	size_t count = fields_split(line, fields), dash = 6;

	while (dash < count && strcmp(fields[dash], "-") != 0)
		dash++;
	if (dash + 3 >= count)
		return false;
	if (version == CGROUP_2 ? strcmp(fields[dash + 1], "cgroup2") != 0
				: strcmp(fields[dash + 1], "cgroup") != 0 ||
					  !list_has(fields[dash + 3], "memory"))
		return false;
	*root = fields[3];
	*point = fields[4];
	unescape(*root);
	unescape(*point);
	return true;
}

/* What is left of `path` below `root`; "" when it lies elsewhere: then what is mounted is all that can
 * be seen. */
static const char *path_below(const char *path, const char *root)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, len) != 0 || path[len] != '/' || strstr(path, "/.."))
		return "";
	return path[len + 1] ? path + len : "";
}

bool cgroup_place(struct arena *arena, const char *groups, const char *mounts,
		  enum cgroup_version version, struct cgroup_place *out)
{
	const char *path = NULL;
	char *line, *root;

	while (!path && (line = line_next(arena, &groups)))
		path = group_path(line, version);
	while (path && (line = line_next(arena, &mounts))) {
		char *point;

		if (!mount_read(line, version, &root, &point))
			continue;
		*out = (struct cgroup_place){point, path_below(path, root)};
		return true;
	}
	return false;
}

/* ---- What they leave ---- */

static const char *file_text(struct arena *arena, const char *directory, const char *name)
{
	const char *path = arena_printf(arena, "%s/%s", directory, name);
	struct bytes text;

	return file_read_all(arena, AT_FDCWD, path, FILE_MAX, &text, NULL)
		       ? (const char *)text.at
		       : NULL;
}

/* "max" and what is no number: `none`. */
static uint64_t number_in(const char *text, uint64_t none)
{
	return text && *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : none;
}

/* Of a line "name 123"; `name` ends in the blank. */
static uint64_t stat_number(const char *text, const char *name, uint64_t none)
{
	const char *at = text;

	while (at && strncmp(at, name, strlen(name)) != 0)
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	return at ? number_in(at + strlen(name), none) : none;
}

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* memory.stat is read last, and only of groups with a limit: the kernel has to add up what all
 * processors have counted. */
static uint64_t left_in(struct arena *arena, const char *directory, const struct names *names,
			uint64_t limit)
{
	const char *stat;
	uint64_t used;

	for (size_t i = 0; i < 2 && names->limits[i]; i++) {
		uint64_t one =
			number_in(file_text(arena, directory, names->limits[i]), UINT64_MAX);

		limit = one < limit ? one : limit;
	}
	if (limit >= NO_LIMIT)
		return UINT64_MAX;
	stat = file_text(arena, directory, "memory.stat");
	used = number_in(file_text(arena, directory, names->used), 0);
	for (size_t i = 0; i < 2; i++)
		used = difference(used, stat_number(stat, names->cached[i], 0));
	return difference(limit, used);
}

uint64_t cgroup_left(struct arena *arena, const struct cgroup_place *place,
		     enum cgroup_version version)
{
	const struct names *names = &names_of[version];
	char *path = arena_string(arena, place->path), *end = path + strlen(path);
	uint64_t least = UINT64_MAX, limit = UINT64_MAX;
	const char *directory = arena_printf(arena, "%s%s", place->mount, path);

	if (names->above) {
		limit = stat_number(file_text(arena, directory, "memory.stat"), names->above,
				    UINT64_MAX);
		if (limit >= NO_LIMIT && limit != UINT64_MAX)
			return UINT64_MAX; /* it says so of all together */
	}
	for (;; limit = UINT64_MAX) {
		uint64_t left = left_in(arena, arena_printf(arena, "%s%s", place->mount, path),
					names, limit);

		least = left < least ? left : least;
		if (end == path)
			return least;
		while (end > path && *--end != '/')
			;
		*end = '\0';
	}
}

uint64_t cgroup_memory_left(struct arena *arena)
{
	uint64_t least = UINT64_MAX;
	struct bytes groups, mounts;

	if (!file_read_all(arena, AT_FDCWD, "/proc/self/cgroup", TEXT_MAX, &groups, NULL) ||
	    !file_read_all(arena, AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &mounts, NULL))
		return least;
	for (enum cgroup_version version = CGROUP_1; version <= CGROUP_2; version++) {
		struct cgroup_place place;
		uint64_t left;

		if (!cgroup_place(arena, (const char *)groups.at, (const char *)mounts.at,
				  version, &place))
			continue;
		left = cgroup_left(arena, &place, version);
		least = left < least ? left : least;
	}
	return least;
}
