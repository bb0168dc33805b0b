/*
 * A run goes from unit to unit: the beginning is put into its place, the length that stands there
 * says where the next one is, and the rest is put into its place or thrown away. Units that a run
 * before this one has put into place are not touched: other threads may be reading them.
 */
#include "dwarf/sparse.h"

#include <pthread.h>
#include <string.h>

#include "base/budget.h"
#include "base/search.h"
#include "dwarf/context.h"
#include "dwarf/form.h"
#include "dwarf/lazy.h"
#include "dwarf/unit.h"

/* What is thrown away is decompressed piece by piece into so much room, which stays in the
 * processor's second-level cache. */
#define WASTE_SIZE ((size_t)256 << 10)

/* The second run is still for what was wished for only, the third is for all. */
#define RUNS_MAX 2

/* A point comes a block after it is asked for: who does not come so soon does not come. */
#define POINT_REACH_STEPS 4
/* So much of the section is worth reading for later runs. */
#define POINT_REACH_PART 16
#define PAGE_SIZE_LEAST UINT64_C(4096)

struct sparse {
	struct packed packed;
	uint8_t *room;         /* of the whole section */
	struct stream *stream; /* of the run under way; NULL: none */
	uint64_t at;           /* how far it read */
	uint64_t drawn;        /* pages before this are paid for */
	size_t next;           /* the unit that begins there */
	unsigned padding;      /* units too small for a header so far */
	unsigned runs;
	bool all; /* is wanted from now on */
	VEC(struct unit_extent) units;
	VEC(bool) whole; /* of units.at[i]: it is all there */
	bool learning;   /* points, in the first run */
	bool indexed;    /* no unit is missing in `units` */
	bool complete;   /* everything is there */
	bool failed;     /* and that is final */
	struct err why;
	uint8_t *waste;
	struct points *points; /* that are learned; NULL: none */
	struct points_section *learned;
	struct lazy
		*by_points;   /* the same section by what an earlier run has learned; or NULL */
	struct arena arena;   /* its own: a run may be in a thread of its own */
	pthread_mutex_t lock; /* for sparse_need */
	/* A run by a thread of its own, beside others that need what it brings. */
	bool running;
	struct sparse_wish brings;
	uint64_t passed; /* a unit's end, or beginning: what it brings lies below */
	pthread_cond_t progress;
};

void sparse_open(struct sections *sections)
{
	struct elf *elf = sections->elf;
	struct packed packed;
	struct sparse *sparse;
	uint8_t *room;

	if (sections->loaded[SECTION_INFO] ||
	    !elf_section_packed(elf, elf_section(elf, ".debug_info"), &packed))
		return;
	room = packed_room(elf->arena, &packed);
	if (!room)
		return;
	sparse = arena_new(sections->dwarf->arena, struct sparse);
	sparse->packed = packed;
	sparse->room = room;
	pthread_mutex_init(&sparse->lock, NULL);
	pthread_cond_init(&sparse->progress, NULL);
	sections->sparse = sparse;
	sections->loaded[SECTION_INFO] = true;
	sections->at[SECTION_INFO] = (struct bytes){room, packed.size};
	if (!sections->points || packed.format != STREAM_ZLIB)
		return;
	points_begin(sections->points, SECTION_INFO, &packed);
	sparse->points = sections->points;
	sparse->learned = &sections->points->sections[SECTION_INFO];
	sparse->by_points = lazy_open(sections->dwarf->arena, sections->points, SECTION_INFO,
				      &packed, room);
}

/* For more units than this one run over the section takes less work, and less memory. */
static uint64_t units_by_points(const struct sections *sections)
{
	return sections->at[SECTION_INFO].len / (4 * sections->sparse->learned->step);
}

bool sparse_use_points(struct sections *sections, const struct sparse_wish *wish)
{
	struct lazy *lazy = sections->sparse->by_points;
	bool few = lazy && !wish->all_roots && wish->count <= units_by_points(sections);
	bool all = few && (wish->count == 0 || wish->units[wish->count - 1] < lazy_end(lazy));

	sections->few_units = few;
	sections->lazy[SECTION_INFO] = all ? lazy : NULL;
	return all;
}

void sparse_pause(struct sparse *s, struct arena *arena)
{
	stream_close(s->stream);
	s->stream = NULL;
	arena_take(arena, &s->arena);
}

/* ---- One run ---- */

static bool run_begin(struct sparse *s, struct err *e)
{
	stream_close(s->stream);
	s->stream = packed_stream(&s->packed, e);
	s->at = s->drawn = 0;
	s->next = 0;
	s->runs++;
	s->learning = s->points && s->runs == 1;
	if (!s->waste)
		s->waste = arena_array(&s->arena, uint8_t, WASTE_SIZE);
	return s->stream != NULL;
}

/* What is put into place is memory in use from then on, page by page. */
static bool place_pay(struct sparse *s, uint64_t end, struct err *e)
{
	uint64_t from = s->at & ~(PAGE_SIZE_LEAST - 1);
	uint64_t to = (end + PAGE_SIZE_LEAST - 1) & ~(PAGE_SIZE_LEAST - 1);

	from = from > s->drawn ? from : s->drawn;
	if (to <= from)
		return true;
	s->drawn = to;
	return budget_take(to - from) ||
	       err_set(e, ERR_LIMIT, "needs %llu bytes; %llu more may be held (--max-memory)",
		       (unsigned long long)(to - from), (unsigned long long)budget_left());
}

/* Reads on to `end`, into place or not. */
static bool run_to(struct sparse *s, uint64_t end, bool keep, struct err *e)
{
	if (s->at < end && (!packed_work(end - s->at, e) || (keep && !place_pay(s, end, e))))
		return false;
	if (keep)
		packed_room_expect(s->room + s->at, end - s->at);
	while (s->at < end) {
		uint64_t len = end - s->at;

		if (!keep && len > WASTE_SIZE)
			len = WASTE_SIZE;
		if (s->learning && len > POINTS_READ_MAX)
			len = POINTS_READ_MAX;
		if (!stream_read(s->stream, keep ? s->room + s->at : s->waste, len, e))
			return false;
		s->at += len;
		if (s->learning)
			points_follow(s->points, s->learned, s->stream, s->at, &s->arena);
	}
	return true;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Where so many bytes from here end, or the section. */
static uint64_t end_of(const struct sparse *s, uint64_t len)
{
	return s->at + lower(len, s->packed.size - s->at);
}

/* Puts the beginning of a unit that was not met before into its place. What follows something
 * that cannot be a unit is no unit either. */
static bool unit_meet(struct sparse *s, struct err *e)
{
	uint64_t off = s->at, end;
	struct reader r;
	uint8_t offset_size;

	if (!run_to(s, end_of(s, 4), true, e) ||
	    (s->at - off == 4 && memcmp(s->room + off, "\xff\xff\xff\xff", 4) == 0 &&
	     !run_to(s, end_of(s, 8), true, e)))
		return false;
	r = reader_at((struct bytes){s->room, s->packed.size}, off);
	if (!unit_length_read(&r, &offset_size) || reader_offset(&r) > s->at) {
		s->indexed = true;
		return true;
	}
	end = (uint64_t)(r.end - r.begin);
	s->padding += end - off < UNIT_SIZE_MIN;
	if (s->padding > UNIT_PADDING_MAX || s->units.count == UNITS_MAX) {
		s->indexed = true;
		return true;
	}
	*vec_push(&s->arena, &s->units) = (struct unit_extent){off, end};
	*vec_push(&s->arena, &s->whole) = end - off <= SPARSE_ROOT_SIZE;
	return run_to(s, lower(end, off + SPARSE_ROOT_SIZE), true, e);
}

/* The place of the unit at `off` among those that were met, or where it would be. */
static size_t unit_place(const struct sparse *s, uint64_t off)
{
	return FIRST_INDEX(s->units.count, i, s->units.at[i].off >= off);
}

static bool is_among(const struct sparse_wish *wish, uint64_t off)
{
	size_t first = FIRST_INDEX(wish->count, i, wish->units[i] >= off);

	return first < wish->count && wish->units[first] == off;
}

static void progress_say(struct sparse *s, bool running)
{
	pthread_mutex_lock(&s->lock);
	s->passed = s->at;
	s->running = running;
	pthread_cond_broadcast(&s->progress);
	pthread_mutex_unlock(&s->lock);
}

static bool unit_pass(struct sparse *s, const struct sparse_wish *wish, struct err *e)
{
	size_t i = s->next;
	bool keep;

	if (i == s->units.count && !s->indexed && !unit_meet(s, e))
		return false;
	if (i == s->units.count) /* all that is left is no unit */
		return run_to(s, s->packed.size, false, e);
	keep = !s->whole.at[i] && (s->all || is_among(wish, s->units.at[i].off));
	if (!run_to(s, s->units.at[i].end, keep, e))
		return false;
	s->whole.at[i] |= keep;
	s->next++;
	if (s->running)
		progress_say(s, true);
	return true;
}

/* ---- Wishes ---- */

/* Offsets a run must pass, from the lowest to the highest. */
struct span_wanted {
	bool any;
	uint64_t first, last;
};

static void want(struct span_wanted *span, uint64_t off)
{
	span->first = span->any ? lower(span->first, off) : off;
	span->last = span->any && span->last > off ? span->last : off;
	span->any = true;
}

/* Not there, as far as is known: what is no unit is missing until its place was passed. */
static bool is_missing(const struct sparse *s, uint64_t off)
{
	size_t place = unit_place(s, off);

	if (place < s->units.count)
		return s->units.at[place].off == off && !s->whole.at[place];
	return !s->indexed && (place == 0 || off >= s->units.at[place - 1].end);
}

static struct span_wanted missing(const struct sparse *s, const struct sparse_wish *wish)
{
	struct span_wanted span = {0};

	if (s->complete)
		return span;
	if (s->all) {
		want(&span, 0);
		want(&span, s->packed.size);
		return span;
	}
	for (size_t i = 0; i < wish->count; i++)
		if (is_missing(s, wish->units[i]))
			want(&span, wish->units[i]);
	if (wish->all_roots && !s->indexed)
		want(&span, s->packed.size);
	return span;
}

static bool must_begin(const struct sparse *s, struct span_wanted span)
{
	return !s->stream || span.first < s->at;
}

/* What was read can be had by points where one lies behind it. Where the end of the section is near,
 * later runs will want that, too. */
static bool point_reach(struct sparse *s, const struct sparse_wish *wish, struct err *e)
{
	uint64_t end = s->at, size = s->packed.size;
	bool near = size - end < size / POINT_REACH_PART;

	while (s->at < size && !s->points->failed &&
	       (near || (points_last(s->learned) < end &&
			 s->at - end < POINT_REACH_STEPS * s->learned->step)))
		if (!unit_pass(s, wish, e))
			return false;
	if (s->at == size)
		end = size;
	else if (points_last(s->learned) < end)
		return true;
	if (end > s->learned->end)
		s->learned->end = end;
	return true;
}

static bool run(struct sparse *s, const struct sparse_wish *wish, struct span_wanted span,
		struct err *e)
{
	if (must_begin(s, span) && !run_begin(s, e))
		return false;
	while (s->at <= span.last && s->at < s->packed.size)
		if (!unit_pass(s, wish, e))
			return false;
	if (s->learning && !point_reach(s, wish, e))
		return false;
	s->indexed |= s->at == s->packed.size;
	s->complete |= s->all;
	return true;
}

bool sparse_fetch(struct sparse *s, const struct sparse_wish *wish, struct err *e)
{
	struct span_wanted span = missing(s, wish);

	if (s->failed)
		return err_set(e, s->why.kind, "%s", s->why.text);
	if (span.any && s->runs == RUNS_MAX && must_begin(s, span)) {
		s->all = true;
		span = missing(s, wish);
	}
	if (!span.any || run(s, wish, span, &s->why))
		return true;
	s->failed = true;
	return err_set(e, s->why.kind, "%s", s->why.text);
}

void sparse_run_begin(struct sparse *s, const struct sparse_wish *wish)
{
	s->running = true;
	s->brings = *wish;
	s->passed = 0;
}

bool sparse_run(struct sparse *s, struct err *e)
{
	bool good = sparse_fetch(s, &s->brings, e);

	progress_say(s, false);
	return good;
}

void sparse_run_wait(struct sparse *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->running)
		pthread_cond_wait(&s->progress, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

/* With the lock: until the unit is there, or the run is over. */
static void run_await(struct sparse *s, const struct sparse_wish *wish)
{
	while (s->running && !(wish->count == 1 && wish->units[0] < s->passed &&
			       is_among(&s->brings, wish->units[0])))
		pthread_cond_wait(&s->progress, &s->lock);
}

/* Who needs what nobody wished for, needs more of it: debug information that refers to other units
 * does so everywhere. */
static bool need(struct sparse *s, const struct sparse_wish *wish, struct err *e)
{
	bool good;

	pthread_mutex_lock(&s->lock);
	run_await(s, wish);
	good = s->running;
	if (!good) {
		s->all |= missing(s, wish).any;
		good = sparse_fetch(s, wish, e);
	}
	pthread_mutex_unlock(&s->lock);
	return good;
}

bool sparse_need(struct sparse *s, uint64_t off, struct err *e)
{
	return need(s, &(struct sparse_wish){.units = &off, .count = 1}, e);
}

bool sparse_need_index(struct sparse *s, struct err *e)
{
	return need(s, &(struct sparse_wish){.all_roots = true}, e);
}

struct sparse_extents sparse_extents(const struct sparse *s)
{
	return (struct sparse_extents){s->units.at, s->units.count};
}
