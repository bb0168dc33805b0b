/* Fuzzing of the file of points: the input is its head and its tables, which are given the right checksum. */
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/points_image.h"

static void section_look(const struct points_section *s, uint32_t windows)
{
	uint64_t off = 0;

	for (size_t i = 0; i < s->at.count; i++) {
		const struct point *point = &s->at.at[i];

		if (point->at.off <= off || point->at.off >= s->size ||
		    point->window >= windows)
			abort();
		off = point->at.off;
	}
	if (s->end > s->size || (s->end < s->size && s->end > points_last(s)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct bytes key = {(const uint8_t *)"key", 3}; /* as in seeds.py */
	struct points points = {0};
	struct arena arena = {0};
	uint8_t head[POINTS_HEAD_SIZE];
	struct bytes tables;
	uint8_t *copy;

	if (size < sizeof head)
		return 0;
	tables.len = size - sizeof head;
	copy = malloc(tables.len ? tables.len : 1); /* of this very size, for the sanitizers */
	if (!copy)
		abort();
	memcpy(head, data, sizeof head);
	memcpy(copy, data + sizeof head, tables.len);
	tables.at = copy;
	points_image_seal(head, tables);
	if (points_image_read(&points, &arena, head, tables, key))
		for (size_t i = 0; i < SECTION_COUNT; i++)
			section_look(&points.sections[i], points.windows);
	arena_free(&arena);
	free(copy);
	return 0;
}
