/*
 * base/arena: memory with a stage instead of an owner.
 *
 * Everything allocated from an arena lives until the arena is freed or reset. There are two by
 * convention: `run` (snapshot, modules, report: to the end of the program) and `scratch` (one
 * lookup, then reset). Out of memory ends the program with one line and exit status 1: nothing is
 * allocated while a target is stopped. An arena must not be used by two threads at once.
 */
#ifndef STACKER_BASE_ARENA_H
#define STACKER_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunk; /* newest first; NULL when nothing was allocated yet */
	uint8_t *next, *end;       /* free space of the newest chunk */
	bool fixed;                /* of arena_over: it does not grow */
};

/* An arena in memory that is there already and all zeros: what it has no room for cannot be had.
 * The memory stays its owner's. */
struct arena arena_over(void *at, size_t size);

/* Zeroed memory for `count` items of `size` bytes, aligned for any type; never NULL, also for
 * count 0. The product is checked for overflow. */
void *arena_alloc(struct arena *arena, size_t count, size_t size)
	__attribute__((alloc_size(2, 3), malloc, returns_nonnull));

/* The same for sizes that a file states: NULL when there is no such memory. */
void *arena_try(struct arena *arena, size_t count, size_t size)
	__attribute__((alloc_size(2, 3), malloc));
/* Gives back `size` bytes that arena_try gave. Only large items (above 64 KiB) can be given back;
 * false: it stays. */
bool arena_drop(struct arena *arena, const void *at, size_t size);
/* Bytes that the arena holds, its free space included. */
size_t arena_held(const struct arena *arena);

#define arena_new(arena, type) ((type *)arena_alloc((arena), 1, sizeof(type)))
#define arena_array(arena, type, count) ((type *)arena_alloc((arena), (count), sizeof(type)))

/* A copy of `len` bytes with a NUL after it. */
char *arena_copy(struct arena *arena, const void *at, size_t len);
char *arena_string(struct arena *arena, const char *s);
char *arena_printf(struct arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Gives everything back except one chunk kept for reuse / everything. */
void arena_reset(struct arena *arena);
void arena_free(struct arena *arena);

/* Moves everything in `from` into `arena`, where it stays as it is; `from` is empty then. */
void arena_take(struct arena *arena, struct arena *from);

/* Says `program: out of memory` and exits with 1. */
void out_of_memory(void) __attribute__((noreturn));

/*
 * A growable array: `VEC(struct map) maps = {0};`, then `*vec_push(arena, &maps) = (...)`.
 * It grows by doubling into the arena, so old copies stay until the arena goes: at most as much
 * again as the array itself.
 */
#define VEC(type)                       \
	struct {                        \
		type *at;               \
		size_t count, capacity; \
	}

void *vec_grown(struct arena *arena, void *at, size_t count, size_t *capacity, size_t size)
	__attribute__((returns_nonnull));

#define vec_push(arena, vec)                                                                 \
	((vec)->at = (vec)->count < (vec)->capacity                                          \
			     ? (vec)->at                                                     \
			     : vec_grown((arena), (vec)->at, (vec)->count, &(vec)->capacity, \
					 sizeof *(vec)->at),                                 \
	 &(vec)->at[(vec)->count++])

#endif
