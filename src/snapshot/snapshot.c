#include "snapshot/snapshot.h"

#include <string.h>

#include "base/search.h"

/* Index of text in a table of `count` words, or count. */
static size_t word_index(const char *const *words, size_t count, const char *text)
{
	size_t i = 0;

	while (i < count && strcmp(words[i], text) != 0)
		i++;
	return i;
}

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#define X(id, text) text,
static const char *const found_by_words[] = {FOUND_BY(X)};
static const char *const stop_words[] = {STOPS(X)};
#undef X
static const char *const method_words[] = {
	[CAPTURE_PTRACE] = "ptrace",
	[CAPTURE_PTRACE_ROLLING] = "ptrace-rolling",
	[CAPTURE_BPF] = "bpf",
	[CAPTURE_UNKNOWN] = "unknown",
};

/* An enum value that is none of its own reads as the "do not know" of its kind. */
const char *found_by_text(enum found_by found_by)
{
	size_t i = (size_t)found_by;

	return found_by_words[i < COUNT_OF(found_by_words) ? i : FOUND_RECORDED];
}

bool found_by_named(const char *text, enum found_by *out)
{
	size_t i = word_index(found_by_words, COUNT_OF(found_by_words), text);

	if (i == COUNT_OF(found_by_words))
		return false;
	*out = (enum found_by)i;
	return true;
}

const char *stop_text(enum stop stop)
{
	size_t i = (size_t)stop;

	return stop_words[i < COUNT_OF(stop_words) ? i : STOP_UNKNOWN];
}

bool stop_named(const char *text, enum stop *out)
{
	size_t i = word_index(stop_words, COUNT_OF(stop_words), text);

	if (i == COUNT_OF(stop_words))
		return false;
	*out = (enum stop)i;
	return true;
}

const char *capture_method_text(enum capture_method method)
{
	size_t i = (size_t)method;

	return method_words[i < COUNT_OF(method_words) ? i : CAPTURE_UNKNOWN];
}

bool capture_method_named(const char *text, enum capture_method *out)
{
	size_t i = word_index(method_words, COUNT_OF(method_words), text);

	if (i == COUNT_OF(method_words))
		return false;
	*out = (enum capture_method)i;
	return true;
}

const struct map *snapshot_map_at(const struct snapshot *snapshot, uint64_t va)
{
	size_t low = 0, high = snapshot->map_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct map *map = &snapshot->maps[middle];

		if (va < map->start)
			high = middle;
		else if (va >= map->end)
			low = middle + 1;
		else
			return map;
	}
	return NULL;
}

const struct code_name *snapshot_code_name(const struct snapshot *snapshot, uint64_t va)
{
	size_t first =
		FIRST_INDEX(snapshot->code_name_count, i, snapshot->code_names[i].va >= va);

	return first < snapshot->code_name_count && snapshot->code_names[first].va == va
		       ? &snapshot->code_names[first]
		       : NULL;
}
