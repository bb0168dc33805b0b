/* Fuzzing of the text of /proc/PID/maps. What comes out must be in order. */
#include <stdlib.h>

#include "fuzz.h"
#include "process/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	struct map *maps;
	size_t count;

	maps_parse(&arena, (struct bytes){data, size}, &maps, &count);
	for (size_t i = 0; i < count; i++)
		if (maps[i].start >= maps[i].end || (i && maps[i].start < maps[i - 1].end) ||
		    strlen(maps[i].path) > size)
			abort();
	arena_reset(&arena);
	return 0;
}
