/*
 * symbol/points_image: the points of a file's compressed debug sections (dwarf/points) as the bytes of a
 * file.
 *
 * All numbers little-endian, no padding:
 *
 *   head      POINTS_HEAD_SIZE bytes
 *     0   magic "stackerP"
 *     8   u64 checksum: CRC-64 (ECMA-182) of the head behind it and of the tables
 *     16  u32 version of this format
 *     20  u32 number of windows
 *     24  u32 size of the tables
 *     28  u32 size of the key
 *   windows   STREAM_WINDOW bytes each, by number; what is read with one is checked (dwarf/lazy)
 *   tables
 *     key       whose points these are
 *     sections  {u32 section; u32 points, checks (counts); u64 packed, size, end}; behind each its
 *               points {u64 off, bit; u32 checksum, window}: ascending, and its
 *               checks {u64 off; u32 checksum}: ascending
 *
 * The file may be damaged or made to hurt: points_image_read takes the tables only whole, with their
 * checksum, with every number inside its bounds.
 */
#ifndef STACKER_SYMBOL_POINTS_IMAGE_H
#define STACKER_SYMBOL_POINTS_IMAGE_H

#include "dwarf/points.h"

#define POINTS_VERSION 1
#define POINTS_HEAD_SIZE 32
#define POINTS_CHECKSUM_OFF 8

/* Where in the file a window is, and behind the last the tables. */
static inline uint64_t points_image_window(uint32_t number)
{
	return POINTS_HEAD_SIZE + (uint64_t)number * STREAM_WINDOW;
}

struct points_head {
	uint64_t checksum;
	uint32_t windows, tables, key;
};

/* False when these POINTS_HEAD_SIZE bytes are no head. */
bool points_head_read(struct points_head *out, const uint8_t *head);

/* Fills points->sections (in the arena) and the number of windows. False when the tables are not those of
 * the head and the key, or lie. */
bool points_image_read(struct points *points, struct arena *arena, const uint8_t *head,
		       struct bytes tables, struct bytes key);

/* Writes the checksum that head and tables must have. */
void points_image_seal(uint8_t *head, struct bytes tables);

/* The two parts, for points->windows windows between them. */
struct points_image {
	uint8_t head[POINTS_HEAD_SIZE];
	struct bytes tables;
};
void points_image_make(struct points_image *out, struct arena *arena,
		       const struct points *points, struct bytes key);

#endif
