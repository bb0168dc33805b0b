/*
 * How overlaps are decided: the entries are walked by where they begin, and those that are open
 * are kept in a heap whose top is the one written last. Between two beginnings the top owns what
 * it covers; when it ends the next one does. The result is disjoint spans, found by binary search.
 */
#include "symbol/perfmap.h"

#include <stdlib.h>

#include "base/budget.h"
#include "base/search.h"
#include "base/sort.h"

/* A name is cut there: V8's may hold the source text of a whole pattern. */
#define NAME_MAX_LENGTH 4096

/* "0 1 f", which is shorter than any that a compiler writes. */
#define LINE_MIN 5
/* A line costs 80 bytes. Maps of the largest programs have some hundred thousand lines, mostly of
 * more than 50 bytes; what comes behind so many is left out. */
#define ENTRIES_MAX ((size_t)8 << 20)

struct entry {
	uint64_t start, end;
	const char *name; /* in the text, not terminated */
	uint32_t name_len;
	uint32_t order; /* of lines */
};

struct span {
	uint64_t start, end;
	uint32_t owner; /* index of an entry */
};

struct perfmap {
	struct arena *arena;
	struct entry *entries; /* by start */
	size_t entry_count;
	struct span *spans;
	size_t span_count;
	bool is_cut;
};

/* What an entry takes until the map is made, and what it costs in nanoseconds beside its bytes. */
#define ENTRY_MEMORY (2 * sizeof(struct entry) + 2 * sizeof(struct span) + sizeof(uint32_t))
#define ENTRY_WORK 500

/* ---- Lines ---- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hex number with or without 0x, and the blanks behind it. Fails the reader when there is none
 * or it does not fit. */
static uint64_t read_hex(struct reader *r)
{
	uint64_t value = 0;
	size_t digits = 0;

	if (reader_left(r) > 2 && r->at[0] == '0' && (r->at[1] | 0x20) == 'x')
		reader_skip(r, 2);
	for (; reader_more(r) && digit_of((char)*r->at) >= 0; digits++) {
		if (value >> 60)
			reader_fail(r);
		else
			value = value << 4 | (unsigned)digit_of((char)read_u8(r));
	}
	if (!digits || !reader_more(r) || (*r->at != ' ' && *r->at != '\t'))
		reader_fail(r);
	while (reader_more(r) && (*r->at == ' ' || *r->at == '\t'))
		reader_skip(r, 1);
	return value;
}

static struct bytes line_at(struct bytes text)
{
	const uint8_t *newline = text.len ? memchr(text.at, '\n', text.len) : NULL;

	return newline ? bytes_part(text, 0, (uint64_t)(newline - text.at)) : text;
}

static bool entry_read(struct bytes line, struct entry *out)
{
	struct reader r = reader_over(line);
	uint64_t size;

	out->start = read_hex(&r);
	size = read_hex(&r);
	while (reader_more(&r) && r.end[-1] == '\r')
		r.end--;
	if (reader_failed(&r) || !size || !reader_more(&r))
		return false;
	out->end = size > UINT64_MAX - out->start ? UINT64_MAX : out->start + size;
	out->name = (const char *)r.at;
	out->name_len =
		reader_left(&r) < NAME_MAX_LENGTH ? (uint32_t)reader_left(&r) : NAME_MAX_LENGTH;
	return true;
}

/* Lines that are long enough to be one of a map; at most ENTRIES_MAX. */
static size_t line_count(struct bytes text)
{
	size_t count = 0;

	while (text.len && count < ENTRIES_MAX) {
		struct bytes line = line_at(text);

		count += line.len >= LINE_MIN;
		text = bytes_from(text, line.len + 1);
	}
	return count;
}

/* As many as the run's budget has room for, of which the rest of it keeps half. */
static size_t entries_allowed(size_t wanted)
{
	uint64_t by_memory = budget_left() / 2 / ENTRY_MEMORY;
	uint64_t by_work = budget_work_left() / 2 / ENTRY_WORK;
	uint64_t most = by_memory < by_work ? by_memory : by_work;

	if (wanted > most)
		wanted = (size_t)most;
	budget_take(wanted * ENTRY_MEMORY);
	budget_work(wanted * ENTRY_WORK);
	return wanted;
}

static void entries_read(struct perfmap *map, struct bytes text)
{
	size_t limit = entries_allowed(line_count(text));

	map->entries = arena_array(map->arena, struct entry, limit);
	while (text.len && map->entry_count < limit) {
		struct bytes line = line_at(text);
		struct entry entry;

		if (entry_read(line, &entry)) {
			entry.order = (uint32_t)map->entry_count;
			map->entries[map->entry_count++] = entry;
		}
		text = bytes_from(text, line.len + 1);
	}
	map->is_cut = line_count(text) > 0;
}

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* ---- The sweep ---- */

struct sweep {
	struct perfmap *map;
	uint32_t *heap; /* entries; a parent was written later than its children */
	size_t open;
	uint64_t at; /* everything below is decided */
};

static uint32_t order_of(const struct sweep *s, size_t i)
{
	return s->map->entries[s->heap[i]].order;
}

static void heap_swap(struct sweep *s, size_t a, size_t b)
{
	uint32_t kept = s->heap[a];

	s->heap[a] = s->heap[b];
	s->heap[b] = kept;
}

static void heap_push(struct sweep *s, uint32_t entry)
{
	size_t i = s->open++;

	s->heap[i] = entry;
	for (; i && order_of(s, (i - 1) / 2) < order_of(s, i); i = (i - 1) / 2)
		heap_swap(s, i, (i - 1) / 2);
}

static void heap_pop(struct sweep *s)
{
	size_t i = 0;

	s->heap[0] = s->heap[--s->open];
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < s->open && order_of(s, child + 1) > order_of(s, child))
			child++;
		if (child >= s->open || order_of(s, child) < order_of(s, i))
			return;
		heap_swap(s, i, child);
		i = child;
	}
}

/* Decides everything below `va`. */
static void sweep_to(struct sweep *s, uint64_t va)
{
	while (s->open && s->at < va) {
		const struct entry *top = &s->map->entries[s->heap[0]];
		uint64_t end = top->end < va ? top->end : va;

		if (s->at < end)
			s->map->spans[s->map->span_count++] =
				(struct span){s->at, end, s->heap[0]};
		s->at = s->at < end ? end : s->at;
		if (top->end <= s->at)
			heap_pop(s);
	}
	s->at = va;
}

struct perfmap *perfmap_parse(struct arena *arena, struct bytes text)
{
	struct perfmap *map = arena_new(arena, struct perfmap);
	struct arena scratch = {0};
	struct sweep s = {.map = map};

	map->arena = arena;
	entries_read(map, text);
	sort(&scratch, map->entries, map->entry_count, sizeof *map->entries, compare_entries);
	/* A span ends where an entry does or where the next one begins. */
	map->spans = arena_array(arena, struct span, 2 * map->entry_count);
	s.heap = arena_array(&scratch, uint32_t, map->entry_count);
	for (size_t i = 0; i < map->entry_count; i++) {
		sweep_to(&s, map->entries[i].start);
		heap_push(&s, (uint32_t)i);
	}
	sweep_to(&s, UINT64_MAX);
	arena_free(&scratch);
	return map;
}

bool perfmap_find(const struct perfmap *map, uint64_t va, struct perfmap_place *out)
{
	size_t first = FIRST_INDEX(map->span_count, i, map->spans[i].end > va);
	const struct entry *owner;

	if (first == map->span_count || map->spans[first].start > va)
		return false;
	owner = &map->entries[map->spans[first].owner];
	*out = (struct perfmap_place){arena_copy(map->arena, owner->name, owner->name_len),
				      owner->start};
	return true;
}

size_t perfmap_count(const struct perfmap *map)
{
	return map->entry_count;
}

bool perfmap_is_cut(const struct perfmap *map)
{
	return map->is_cut;
}
