#include "symbol/names.h"

#include <string.h>

#include "symbol/symbol.h"

#define FIRST_CAPACITY 256

/* FNV-1a. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	return hash;
}

/* The place of this name, or the free one where it belongs. */
static struct name_pair *place_of(struct name_pair *at, size_t capacity, const char *name,
				  uint64_t hash)
{
	size_t i = hash & (capacity - 1);

	while (at[i].mangled && (at[i].hash != hash || strcmp(at[i].mangled, name) != 0))
		i = (i + 1) & (capacity - 1);
	return &at[i];
}

static void grow(struct names *names)
{
	size_t capacity = names->capacity ? names->capacity * 2 : FIRST_CAPACITY;
	struct name_pair *at = arena_array(names->arena, struct name_pair, capacity);

	for (size_t i = 0; i < names->capacity; i++)
		if (names->at[i].mangled)
			*place_of(at, capacity, names->at[i].mangled, names->at[i].hash) =
				names->at[i];
	names->at = at;
	names->capacity = capacity;
}

const char *names_demangled(struct names *names, const char *mangled)
{
	uint64_t hash = hash_of(mangled);
	struct name_pair *place;

	if (2 * (names->count + 1) > names->capacity)
		grow(names);
	place = place_of(names->at, names->capacity, mangled, hash);
	if (!place->mangled) {
		*place = (struct name_pair){mangled, demangle(names->arena, mangled), hash};
		names->count++;
	}
	return place->plain;
}
