/*
 * Maps of one file become neighbours by sorting: a process may have as many files as maps, and chooses
 * their names and inodes, so that a hash would not do.
 */
#include "process/map_modules.h"

#include <stdlib.h>
#include <string.h>

bool map_is_vdso(const struct map *map)
{
	return strcmp(map->path, "[vdso]") == 0;
}

static int order_of(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* 0: the same file. */
static int compare_files(const struct map *a, const struct map *b)
{
	int order = order_of(a->inode, b->inode);

	if (!order)
		order = order_of(a->device_minor, b->device_minor);
	if (!order)
		order = order_of(a->device_major, b->device_major);
	if (!order)
		order = order_of(a->deleted, b->deleted);
	return order || a->path == b->path ? order : strcmp(a->path, b->path);
}

/* The maps of a file by address. */
static int compare(const void *left, const void *right)
{
	const struct map *a = *(struct map *const *)left, *b = *(struct map *const *)right;
	int order = compare_files(a, b);

	return order ? order : order_of(a->start, b->start);
}

/* Code of a file, or a file whose code was replaced by anonymous memory right behind this part of
 * it (programs that move their text to huge pages). */
static bool begins_module(const struct map *map, const struct map *end)
{
	const struct map *next = map + 1;

	if (map_is_vdso(map) || (map->inode != 0 && MAP_EXECUTABLE(map)))
		return true;
	if (map->inode == 0)
		return false;
	return next < end && next->start == map->end && MAP_EXECUTABLE(next) &&
	       next->inode == 0 && next->path[0] == '\0';
}

/* Gives each map the number of its file for the time being: the index, in `sorted`, of the first of them. */
static void files_number(struct map **sorted, size_t count)
{
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		if (compare_files(sorted[first], sorted[i]) != 0)
			first = i;
		sorted[i]->module = (int32_t)first;
	}
}

struct map_modules maps_group(struct arena *arena, struct map *maps, size_t count)
{
	struct map_modules out = {arena_array(arena, const struct map *, count), 0};
	struct arena scratch = {0};
	struct map **sorted = arena_array(&scratch, struct map *, count);
	int32_t *modules = arena_array(&scratch, int32_t, count); /* + 1; 0: not begun */
	size_t sorted_count = 0;

	for (size_t i = 0; i < count; i++) {
		maps[i].module = -1;
		if (maps[i].inode != 0 || map_is_vdso(&maps[i]))
			sorted[sorted_count++] = &maps[i];
	}
	qsort(sorted, sorted_count, sizeof *sorted, compare);
	files_number(sorted, sorted_count);
	for (size_t i = 0; i < count; i++) {
		if (maps[i].module < 0 || !begins_module(&maps[i], maps + count) ||
		    modules[maps[i].module])
			continue;
		out.firsts[out.count++] = &maps[i];
		modules[maps[i].module] = (int32_t)out.count;
	}
	for (size_t i = 0; i < sorted_count; i++)
		sorted[i]->module = modules[sorted[i]->module] - 1;
	arena_free(&scratch);
	return out;
}
