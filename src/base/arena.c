#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small enough that a short run stays small, large enough that malloc is no cost. */
#define CHUNK_SIZE ((size_t)256 << 10)
#define OWN_CHUNK_ABOVE (CHUNK_SIZE / 4)
#define ALIGNMENT alignof(max_align_t)

struct arena_chunk {
	struct arena_chunk *older;
	size_t size; /* of `data` */
	alignas(ALIGNMENT) uint8_t data[];
};

void out_of_memory(void)
{
	static const char line[] = "stacker: out of memory\n";

	fwrite(line, 1, sizeof line - 1, stderr);
	exit(1);
}

/* Large items get a chunk of their own, put behind the newest one so that its free space is not
 * lost. calloc gives fresh pages of zeros without touching them. NULL when it does not. */
static void *chunk_add(struct arena *arena, size_t size)
{
	bool own = size > OWN_CHUNK_ABOVE;
	size_t data_size = own ? size : CHUNK_SIZE;
	struct arena_chunk *chunk;

	if (arena->fixed || data_size > SIZE_MAX - sizeof *chunk)
		return NULL;
	chunk = calloc(1, sizeof *chunk + data_size);
	if (!chunk)
		return NULL;
	chunk->size = data_size;
	if (own && arena->chunk) {
		chunk->older = arena->chunk->older;
		arena->chunk->older = chunk;
		return chunk->data;
	}
	chunk->older = arena->chunk;
	arena->chunk = chunk;
	arena->next = chunk->data + size;
	arena->end = chunk->data + data_size;
	return chunk->data;
}

struct arena arena_over(void *at, size_t size)
{
	size_t gap = -(uintptr_t)at & (ALIGNMENT - 1);
	uint8_t *begin = at;

	gap = gap < size ? gap : size;
	return (struct arena){.next = begin + gap, .end = begin + size, .fixed = true};
}

void *arena_try(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;
	void *at;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - ALIGNMENT)
		return NULL;
	bytes = bytes ? (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1) : ALIGNMENT;
	if (bytes > (size_t)(arena->end - arena->next))
		return chunk_add(arena, bytes);
	at = arena->next;
	arena->next += bytes;
	return at;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
	void *at = arena_try(arena, count, size);

	if (!at)
		out_of_memory();
	return at;
}

/* It is near the front: a walk to the end is only made for what was never there. */
bool arena_drop(struct arena *arena, const void *at, size_t size)
{
	struct arena_chunk **link = &arena->chunk, *chunk;

	if (size <= OWN_CHUNK_ABOVE)
		return false;
	while (*link && (*link)->data != at)
		link = &(*link)->older;
	chunk = *link;
	if (!chunk)
		return false;
	*link = chunk->older;
	if (link == &arena->chunk) {
		/* What is the newest now has no free space that is known. */
		arena->end = *link ? (*link)->data + (*link)->size : NULL;
		arena->next = arena->end;
	}
	free(chunk);
	return true;
}

size_t arena_held(const struct arena *arena)
{
	size_t held = 0;

	for (const struct arena_chunk *chunk = arena->chunk; chunk; chunk = chunk->older)
		held += chunk->size;
	return held;
}

char *arena_copy(struct arena *arena, const void *at, size_t len)
{
	char *copy = arena_alloc(arena, len + 1, 1);

	if (len)
		memcpy(copy, at, len);
	return copy;
}

char *arena_string(struct arena *arena, const char *s)
{
	return arena_copy(arena, s, strlen(s));
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args, again;
	int len;
	char *text;

	va_start(args, fmt);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0)
		len = 0;
	text = arena_alloc(arena, (size_t)len + 1, 1);
	vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}

/* The kept chunk is the newest: memory that was used is zeroed again, as arena_alloc promises. */
void arena_reset(struct arena *arena)
{
	struct arena_chunk *keep = arena->chunk, *chunk, *older;

	if (!keep)
		return;
	for (chunk = keep->older; chunk; chunk = older) {
		older = chunk->older;
		free(chunk);
	}
	keep->older = NULL;
	memset(keep->data, 0, (size_t)(arena->next - keep->data));
	arena->next = keep->data;
	arena->end = keep->data + keep->size;
}

void arena_free(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunk, *older;

	for (; chunk; chunk = older) {
		older = chunk->older;
		free(chunk);
	}
	*arena = (struct arena){0};
}

/* Put behind the newest chunk, so that its free space is not lost. */
void arena_take(struct arena *arena, struct arena *from)
{
	struct arena_chunk *oldest = from->chunk;

	if (!arena->chunk) {
		*arena = *from;
	} else if (oldest) {
		while (oldest->older)
			oldest = oldest->older;
		oldest->older = arena->chunk->older;
		arena->chunk->older = from->chunk;
	}
	*from = (struct arena){0};
}

void *vec_grown(struct arena *arena, void *at, size_t count, size_t *capacity, size_t size)
{
	size_t wanted = *capacity ? *capacity * 2 : 16;
	void *grown = arena_alloc(arena, wanted, size);

	if (count)
		memcpy(grown, at, count * size);
	*capacity = wanted;
	return grown;
}
