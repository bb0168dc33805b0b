#include "process/maps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DELETED " (deleted)"

/* seq_file escapes only newlines in maps, as a backslash and three octal digits. */
static char *path_unescaped(struct arena *arena, const char *text, size_t len)
{
	char *path = arena_copy(arena, text, len), *to = path;

	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && memcmp(text + i, "\\012", 4) == 0) {
			*to++ = '\n';
			i += 3;
		} else {
			*to++ = text[i];
		}
	}
	*to = '\0';
	return path;
}

static void path_set(struct arena *arena, struct map *map, const char *text, size_t len)
{
	size_t suffix = sizeof DELETED - 1;

	if (len > suffix && memcmp(text + len - suffix, DELETED, suffix) == 0) {
		map->deleted = true;
		len -= suffix;
	}
	map->path = path_unescaped(arena, text, len);
}

/* A number in the given base followed by `end`; moves past both. */
static bool number_read(const char **at, int base, char end, uint64_t *value)
{
	char *stop;

	if (!isxdigit((unsigned char)**at))
		return false;
	*value = strtoull(*at, &stop, base);
	if (*stop != end)
		return false;
	*at = stop + 1;
	return true;
}

/* start-end perms offset major:minor inode[spaces path]; `line` is NUL-terminated. */
static bool line_parse(struct arena *arena, const char *line, size_t len, struct map *map)
{
	const char *at = line;
	uint64_t major, minor;
	char *stop;

	*map = (struct map){.module = -1, .path = ""};
	if (!number_read(&at, 16, '-', &map->start) || !number_read(&at, 16, ' ', &map->end) ||
	    map->end <= map->start || strlen(at) < 5 || at[4] != ' ')
		return false;
	memcpy(map->permissions, at, 4);
	at += 5;
	if (!number_read(&at, 16, ' ', &map->off) || !number_read(&at, 16, ':', &major) ||
	    !number_read(&at, 16, ' ', &minor) || !isdigit((unsigned char)*at))
		return false;
	map->device_major = (uint32_t)major;
	map->device_minor = (uint32_t)minor;
	map->inode = strtoull(at, &stop, 10);
	at = stop + strspn(stop, " ");
	if (*at)
		path_set(arena, map, at, len - (size_t)(at - line));
	return true;
}

void maps_parse(struct arena *arena, struct bytes text, struct map **maps, size_t *count)
{
	VEC(struct map) all = {0};
	const char *at = (const char *)text.at, *end = at + text.len;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);
		char *line = arena_copy(arena, at, len);
		struct map map;

		if (line_parse(arena, line, len, &map) &&
		    (all.count == 0 || map.start >= all.at[all.count - 1].end))
			*vec_push(arena, &all) = map;
		at += len + 1;
	}
	*maps = all.at;
	*count = all.count;
}

/* The next executable mapping from `at` on, or NULL. */
static const struct map *next_code(const struct map *at, const struct map *end)
{
	while (at < end && !MAP_EXECUTABLE(at))
		at++;
	return at < end ? at : NULL;
}

bool maps_have_same_code(const struct map *a, size_t a_count, const struct map *b,
			 size_t b_count)
{
	const struct map *a_end = a + a_count, *b_end = b + b_count;

	for (;; a++, b++) {
		a = next_code(a, a_end);
		b = next_code(b, b_end);
		if (!a || !b)
			return !a && !b;
		if (a->start != b->start || a->end != b->end || a->inode != b->inode)
			return false;
	}
}
