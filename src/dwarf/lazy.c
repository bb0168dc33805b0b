#include "dwarf/lazy.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/search.h"

/* Piece 0 begins with the section, piece n at point n - 1. */
struct piece {
	uint64_t begin, end;
	atomic_ullong there; /* it is there up to here */
	bool taken;          /* somebody is reading it */
};

struct lazy {
	struct points *points;
	const struct points_section *section;
	struct packed packed;
	uint8_t *room;
	uint64_t end; /* see lazy_end */
	struct piece *pieces;
	size_t count;
	unsigned busy;         /* pieces that are being read */
	bool distrusted;       /* the points */
	bool complete, failed; /* the section, without them */
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

struct lazy *lazy_open(struct arena *arena, struct points *points, enum section_id id,
		       const struct packed *packed, uint8_t *room)
{
	const struct points_section *section = &points->sections[id];
	uint64_t begin = 0;
	struct lazy *lazy;

	if (!points->given || points->failed || !section->at.count)
		return NULL;
	lazy = arena_new(arena, struct lazy);
	lazy->points = points;
	lazy->section = section;
	lazy->packed = *packed;
	lazy->room = room;
	lazy->end = section->end;
	lazy->count = section->at.count + (section->end == section->size);
	lazy->pieces = arena_array(arena, struct piece, lazy->count);
	for (size_t i = 0; i < lazy->count; i++) {
		struct piece *piece = &lazy->pieces[i];

		piece->begin = begin;
		piece->there = begin;
		begin = i < section->at.count ? section->at.at[i].at.off : section->size;
		piece->end = begin;
	}
	pthread_mutex_init(&lazy->lock, NULL);
	pthread_cond_init(&lazy->changed, NULL);
	return lazy;
}

uint64_t lazy_end(const struct lazy *lazy)
{
	return lazy->end;
}

/* ---- By points ---- */

static struct stream *piece_stream(const struct lazy *lazy, size_t i)
{
	const struct packed *packed = &lazy->packed;
	const struct point *point = &lazy->section->at.at[i - 1];
	struct points *points = lazy->points;
	uint8_t window[STREAM_WINDOW];

	if (i == 0)
		return packed_stream(packed, NULL);
	if (!points->get(points->context, point->window, window))
		return NULL;
	return stream_open_at(packed->in, packed->mapped, packed->size, &point->at, window,
			      NULL);
}

/* Where reading may end that is to reach `wanted`, and what the checksum is there. The stream itself
 * checks the end of the section. */
static struct points_check piece_goal(const struct lazy *lazy, size_t i, uint64_t wanted)
{
	const struct points_section *s = lazy->section;
	const struct piece *piece = &lazy->pieces[i];
	size_t k = FIRST_INDEX(s->checks.count, n, s->checks.at[n].off >= wanted);

	if (k < s->checks.count && s->checks.at[k].off < piece->end)
		return s->checks.at[k];
	return (struct points_check){piece->end, i < s->at.count ? s->at.at[i].at.checksum : 0};
}

/* Contents [at, end) to their place, or to nowhere. */
static bool stretch_read(const struct lazy *lazy, struct stream *stream, uint64_t at,
			 uint64_t end, uint8_t *waste, struct err *e)
{
	for (uint64_t len; at < end; at += len) {
		len = waste && end - at > POINTS_STEP ? POINTS_STEP : end - at;
		if (!stream_read(stream, waste ? waste : lazy->room + at, len, e))
			return false;
	}
	return true;
}

/* What is there already may be read by others: it is left alone. */
static bool piece_read(const struct lazy *lazy, size_t i, struct points_check goal)
{
	const struct piece *piece = &lazy->pieces[i];
	uint64_t there = piece->there;
	struct stream *stream = piece_stream(lazy, i);
	uint8_t *waste = there > piece->begin ? malloc(POINTS_STEP) : NULL;
	bool good = stream && (waste || there == piece->begin) &&
		    budget_work(goal.off - piece->begin) && budget_take(goal.off - there);

	if (good)
		packed_room_expect(lazy->room + there, goal.off - there);
	good = good && stretch_read(lazy, stream, piece->begin, there, waste, NULL) &&
	       stretch_read(lazy, stream, there, goal.off, NULL, NULL) &&
	       (goal.off == lazy->packed.size || stream_checksum(stream) == goal.checksum);
	free(waste);
	stream_close(stream);
	return good;
}

/* ---- Without ---- */

static bool rest_pay(const struct lazy *lazy, struct err *e)
{
	uint64_t missing = lazy->packed.size;

	for (size_t i = 0; i < lazy->count; i++)
		missing -= lazy->pieces[i].there - lazy->pieces[i].begin;
	return packed_work(lazy->packed.size, e) &&
	       (budget_take(missing) ||
		err_set(e, ERR_LIMIT, "needs %llu bytes; %llu more may be held (--max-memory)",
			(unsigned long long)missing, (unsigned long long)budget_left()));
}

/* All that is missing, from front to back. */
static bool rest_read(struct lazy *lazy, struct err *e)
{
	struct stream *stream = rest_pay(lazy, e) ? packed_stream(&lazy->packed, e) : NULL;
	uint8_t *waste = malloc(POINTS_STEP);
	bool good = stream && waste;
	uint64_t end = 0;

	for (size_t i = 0; i < lazy->count && good; i++) {
		const struct piece *piece = &lazy->pieces[i];

		end = piece->end;
		good = stretch_read(lazy, stream, piece->begin, piece->there, waste, e) &&
		       stretch_read(lazy, stream, piece->there, end, NULL, e);
	}
	good = good && stretch_read(lazy, stream, end, lazy->section->size, NULL, e);
	for (size_t i = 0; i < lazy->count && good; i++)
		lazy->pieces[i].there = lazy->pieces[i].end;
	free(waste);
	stream_close(stream);
	return good;
}

/* Points are not used any more. With the lock, once nobody reads by them. */
static bool rest_need(struct lazy *lazy, struct err *e)
{
	lazy->distrusted = true;
	while (lazy->busy)
		pthread_cond_wait(&lazy->changed, &lazy->lock);
	if (lazy->failed)
		return err_set(e, ERR_FORMAT, "damaged");
	if (!lazy->complete)
		lazy->complete = rest_read(lazy, e);
	lazy->failed = !lazy->complete;
	return lazy->complete;
}

/* ---- What is asked for ---- */

/* The lock is let go while the piece is read. Who asks for more of it a second time gets all of it. */
static void piece_take(struct lazy *lazy, size_t i, uint64_t wanted)
{
	struct piece *piece = &lazy->pieces[i];
	struct points_check goal =
		piece_goal(lazy, i, piece->there > piece->begin ? piece->end : wanted);
	bool good;

	piece->taken = true;
	lazy->busy++;
	pthread_mutex_unlock(&lazy->lock);
	good = piece_read(lazy, i, goal);
	pthread_mutex_lock(&lazy->lock);
	lazy->busy--;
	piece->taken = false;
	if (good)
		piece->there = goal.off;
	else
		lazy->points->failed = lazy->distrusted = true;
	pthread_cond_broadcast(&lazy->changed);
}

static bool piece_need(struct lazy *lazy, size_t i, uint64_t wanted, struct err *e)
{
	struct piece *piece = &lazy->pieces[i];
	bool good;

	if (piece->there >= wanted)
		return true;
	pthread_mutex_lock(&lazy->lock);
	while (piece->taken)
		pthread_cond_wait(&lazy->changed, &lazy->lock);
	if (piece->there < wanted && !lazy->distrusted)
		piece_take(lazy, i, wanted);
	good = piece->there >= wanted || rest_need(lazy, e);
	pthread_mutex_unlock(&lazy->lock);
	return good;
}

/* Behind the last piece. */
static bool beyond_need(struct lazy *lazy, struct err *e)
{
	bool good;

	pthread_mutex_lock(&lazy->lock);
	good = lazy->complete || rest_need(lazy, e);
	pthread_mutex_unlock(&lazy->lock);
	return good;
}

bool lazy_need(struct lazy *lazy, uint64_t off, uint64_t len, struct err *e)
{
	uint64_t size = lazy->packed.size, end;
	size_t i = FIRST_INDEX(lazy->count, k, lazy->pieces[k].end > off);

	if (off >= size)
		return true;
	end = len < size - off ? off + len : size;
	for (; i < lazy->count && lazy->pieces[i].begin < end; i++)
		if (!piece_need(lazy, i, end < lazy->pieces[i].end ? end : lazy->pieces[i].end,
				e))
			return false;
	return end <= lazy->pieces[lazy->count - 1].end || beyond_need(lazy, e);
}
