/* Fuzzing of mangled names, as symbol tables of hostile files hold them. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	char *name = malloc(size + 1);

	memcpy(name, data, size);
	name[size] = '\0';
	if (!demangle(&arena, name))
		abort();
	arena_reset(&arena);
	free(name);
	return 0;
}
