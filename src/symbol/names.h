/*
 * symbol/names: demangled names, each distinct one made once.
 */
#ifndef STACKER_SYMBOL_NAMES_H
#define STACKER_SYMBOL_NAMES_H

#include "base/arena.h"

struct name_pair {
	const char *mangled; /* NULL: free place */
	const char *plain;
	uint64_t hash;
};

/* An open-addressing table; all zeros but the arena is an empty one. */
struct names {
	struct arena *arena;
	struct name_pair *at;
	size_t count, capacity; /* capacity: 0 or a power of two, at least twice the count */
};

/* demangle(name), remembered. `mangled` must live as long as the table. */
const char *names_demangled(struct names *names, const char *mangled);

#endif
