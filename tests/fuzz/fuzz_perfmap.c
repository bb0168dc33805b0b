/* Fuzzing of perf's map of code made at run time. */
#include <stdlib.h>

#include "fuzz.h"
#include "symbol/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	struct perfmap *map = perfmap_parse(&arena, (struct bytes){data, size});
	struct perfmap_place place;

	for (unsigned bit = 0; bit < 64; bit++)
		for (unsigned less = 0; less < 2; less++)
			if (perfmap_find(map, (UINT64_C(1) << bit) - less, &place) &&
			    (place.va > (UINT64_C(1) << bit) - less ||
			     strlen(place.function) > size))
				abort();
	arena_reset(&arena);
	return 0;
}
