/*
 * dwarf/points: where reading can begin within a file's compressed sections (elf/stream's points).
 *
 * One run learns them while it decompresses from front to back; a later one, which is given them,
 * decompresses just the pieces that it needs (dwarf/lazy). They belong to the file as it is, and are
 * not believed: each piece must have the checksum that was met when they were learned.
 *
 * The windows, 32 KiB each, are kept elsewhere, by number. `put` and `get` are called by several
 * threads at once.
 */
#ifndef STACKER_DWARF_POINTS_H
#define STACKER_DWARF_POINTS_H

#include <stdatomic.h>

#include "dwarf/sections.h"

/* Contents between two points of .debug_info at least, and of the others, from which less is needed for a unit. A
 * window is a sixteenth, or an eighth, of it. */
#define POINTS_STEP (UINT64_C(512) << 10)
#define POINTS_OTHER_STEP (UINT64_C(256) << 10)
/* Contents between two checks. */
#define POINTS_CHECK_STEP (UINT64_C(96) << 10)
/* A run that learns reads at most so much at a time. */
#define POINTS_READ_MAX (UINT64_C(128) << 10)
/* Points of .debug_info, and of every other section, at most: the step is longer in larger ones. */
#define POINTS_INFO_MAX 512
#define POINTS_OTHER_MAX 120
/* Smaller sections are decompressed as a whole. */
#define POINTS_SECTION_MIN (UINT64_C(2) << 20)
/* And where .debug_info is smaller than this, all of them. */
#define POINTS_INFO_MIN (UINT64_C(16) << 20)

struct point {
	struct stream_point at;
	uint32_t window;
};

/* The checksum of what lies before a place: reading may end there. */
struct points_check {
	uint64_t off;
	uint32_t checksum;
};

struct points_section {
	uint64_t packed, size; /* of the stream, of its contents; size 0: no points here */
	uint64_t step;         /* from one point to the next that is learned */
	VEC(struct point) at;  /* ascending */
	VEC(struct points_check) checks; /* ascending; points are not among them */
	uint64_t
		end; /* contents that can be had by them: all, or whole units before the last point */
};

struct points {
	uint64_t step; /* instead of the usual ones, for tests; 0: the usual ones */
	struct points_section sections[SECTION_COUNT];
	bool given;          /* by an earlier run; else they are to be learned */
	atomic_uint windows; /* numbers given away */
	atomic_bool failed;  /* a window could not be kept, or what was given is not true */
	void *context;
	bool (*put)(void *context, uint32_t number, const uint8_t *window);
	bool (*get)(void *context, uint32_t number, uint8_t *window);
};

/* Says whose points they are; those of `given` that are not about this stream are forgotten. */
void points_begin(struct points *points, enum section_id id, const struct packed *packed);

/* Where the last point is; 0: there is none. */
uint64_t points_last(const struct points_section *section);

/* To be called after each piece that a run over a section has read up to `off`: keeps the point that
 * the stream came to, and asks for the next one. */
void points_follow(struct points *points, struct points_section *section, struct stream *stream,
		   uint64_t off, struct arena *arena);

#endif
