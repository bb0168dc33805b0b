/*
 * arch/path: what the searches for a caller by a function's code have in common.
 *
 * Code is run along one path after the other until one of them tells the frame
 * (arch/x86_64_code, arch/aarch64_code). What an instruction does to a path is each
 * architecture's own.
 */
#ifndef STACKER_ARCH_PATH_H
#define STACKER_ARCH_PATH_H

#include "arch/arch.h"

/* What is known of SP or the frame pointer, or where something lies in the stack: SP or the
 * frame pointer as it is where the path begins, plus an offset. */
enum tracked_base { TRACKED_NONE, TRACKED_SP, TRACKED_FP };

struct tracked {
	enum tracked_base base;
	int64_t offset;
};

static inline struct tracked tracked_moved(struct tracked value, int64_t distance)
{
	value.offset += distance;
	return value;
}

static inline struct arch_place tracked_place(struct tracked value)
{
	return (struct arch_place){value.base == TRACKED_FP, value.offset};
}

/* Where an instruction leads. PATH_JUMP and PATH_BRANCH (also straight on): to the path's
 * `target`. */
enum path_step { PATH_ON, PATH_JUMP, PATH_BRANCH, PATH_RETURN, PATH_ASTRAY };

/* The jumps that one search has come by. */
#define PATH_JUMPS_MAX 128

struct path_jumps {
	size_t at[PATH_JUMPS_MAX];
	size_t count;
};

/* False when this jump was come by before: the path is the same from there. */
static inline bool path_jumps_add(struct path_jumps *jumps, size_t at)
{
	for (size_t i = 0; i < jumps->count; i++)
		if (jumps->at[i] == at)
			return false;
	if (jumps->count == PATH_JUMPS_MAX)
		return false;
	jumps->at[jumps->count++] = at;
	return true;
}

#endif
