/* Fuzzing of a cache file: the input is the file, with whatever checksum; it is given the right one. */
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/cache_image.h"

static volatile uint64_t sum;

static size_t length(const char *s, size_t size)
{
	if (s && strlen(s) >= size)
		abort();
	return s ? strlen(s) : 0;
}

static void answer_read(const struct symbol_answer *answer, size_t size)
{
	for (size_t f = 0; f < answer->frame_count; f++)
		sum += length(answer->frames[f].function, size) +
		       length(answer->frames[f].file, size) + answer->frames[f].line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct bytes key = {(const uint8_t *)"key", 3}; /* as in seeds.py */
	static struct arena arena;
	uint8_t *file = malloc(size ? size : 1); /* of this very size, for the sanitizers */
	struct cache_image image;

	if (!file)
		abort();
	if (size)
		memcpy(file, data, size);
	if (size >= CACHE_HEAD_SIZE)
		cache_image_seal(file, size);
	if (cache_image_read(&image, (struct bytes){file, size}, key)) {
		for (size_t i = 0; i < image.count; i++) {
			struct symbol_answer at, found;

			cache_image_at(&image, i, &arena, &at);
			answer_read(&at, size);
			found.ea = at.ea;
			if (!cache_image_find(&image, &arena, &found) ||
			    found.frame_count != at.frame_count)
				abort();
		}
	}
	arena_reset(&arena);
	free(file);
	return 0;
}
