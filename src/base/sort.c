#include "base/sort.h"

#include <assert.h>
#include <string.h>

/* So many are put in order by insertion first. */
#define RUN 8

struct sorting {
	size_t count, size;
	int (*compare)(const void *, const void *);
};

static bool is_sorted(const struct sorting *s, const uint8_t *at)
{
	for (size_t i = 1; i < s->count; i++)
		if (s->compare(at + (i - 1) * s->size, at + i * s->size) > 0)
			return false;
	return true;
}

static void run_sort(const struct sorting *s, uint8_t *at, size_t count)
{
	uint8_t element[SORT_SIZE_MAX];

	for (size_t i = 1; i < count; i++) {
		size_t to = i;

		while (to && s->compare(at + (to - 1) * s->size, at + i * s->size) > 0)
			to--;
		if (to == i)
			continue;
		memcpy(element, at + i * s->size, s->size);
		memmove(at + (to + 1) * s->size, at + to * s->size, (i - to) * s->size);
		memcpy(at + to * s->size, element, s->size);
	}
}

/* [0, middle) and [middle, end) of `from`, each in order, become one in `to`. */
static void merge(const struct sorting *s, const uint8_t *from, uint8_t *to, size_t middle,
		  size_t end)
{
	const uint8_t *a = from, *a_end = from + middle * s->size, *b = a_end,
		      *b_end = from + end * s->size;

	while (a < a_end && b < b_end) {
		const uint8_t **next = s->compare(a, b) <= 0 ? &a : &b;

		memcpy(to, *next, s->size);
		*next += s->size;
		to += s->size;
	}
	memcpy(to, a, (size_t)(a_end - a));
	memcpy(to + (a_end - a), b, (size_t)(b_end - b));
}

static size_t lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

void sort(struct arena *scratch, void *at, size_t count, size_t size,
	  int (*compare)(const void *, const void *))
{
	const struct sorting s = {count, size, compare};
	uint8_t *from = at, *to;

	assert(size <= SORT_SIZE_MAX);
	if (count < 2 || is_sorted(&s, at))
		return;
	to = arena_alloc(scratch, count, size);
	for (size_t i = 0; i < count; i += RUN)
		run_sort(&s, from + i * size, lesser(RUN, count - i));
	for (size_t run = RUN; run < count; run *= 2) {
		uint8_t *merged = to;

		for (size_t i = 0; i < count; i += 2 * run)
			merge(&s, from + i * size, to + i * size, lesser(run, count - i),
			      lesser(2 * run, count - i));
		to = from;
		from = merged;
	}
	if (from != at)
		memcpy(at, from, count * size);
}
