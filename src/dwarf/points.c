#include "dwarf/points.h"

static uint64_t step_of(uint64_t size, unsigned points_max, uint64_t least)
{
	return size / points_max > least ? size / points_max : least;
}

void points_begin(struct points *points, enum section_id id, const struct packed *packed)
{
	struct points_section *section = &points->sections[id];

	if (!points->given || section->packed != packed->in.len ||
	    section->size != packed->size)
		*section =
			(struct points_section){.packed = packed->in.len, .size = packed->size};
	section->step = id == SECTION_INFO
				? step_of(packed->size, POINTS_INFO_MAX, POINTS_STEP)
				: step_of(packed->size, POINTS_OTHER_MAX, POINTS_OTHER_STEP);
	if (points->step)
		section->step = points->step;
}

static void keep(struct points *points, struct points_section *section,
		 const struct stream_point *at, const uint8_t *window, struct arena *arena)
{
	uint32_t number = atomic_fetch_add(&points->windows, 1);

	if (points->put(points->context, number, window))
		*vec_push(arena, &section->at) = (struct point){*at, number};
	else
		points->failed = true;
}

static void check(struct points_section *section, const struct stream *stream, uint64_t off,
		  struct arena *arena)
{
	size_t count = section->checks.count;
	uint64_t last = count ? section->checks.at[count - 1].off : 0;

	if (off >=
	    last + (section->step < POINTS_CHECK_STEP ? section->step / 4 : POINTS_CHECK_STEP))
		*vec_push(arena, &section->checks) =
			(struct points_check){off, stream_checksum(stream)};
}

uint64_t points_last(const struct points_section *section)
{
	return section->at.count ? section->at.at[section->at.count - 1].at.off : 0;
}

void points_follow(struct points *points, struct points_section *section, struct stream *stream,
		   uint64_t off, struct arena *arena)
{
	uint64_t last = points_last(section);
	struct stream_point point;
	const uint8_t *window;

	if (stream_marked(stream, &point, &window)) {
		keep(points, section, &point, window, arena);
		last = point.off;
	}
	check(section, stream, off, arena);
	if (off >= last + section->step && off < section->size && !points->failed)
		stream_mark(stream);
}
