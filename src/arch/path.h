/*
 * arch/path: the search for a frame along the paths through a function's code.
 *
 * Code is run along one path after the other until one of them tells the frame: from the pc to a
 * return, or from an entry to the pc. Of a conditional jump the path straight on is taken first;
 * the other one stays open. What one instruction does to a path is each architecture's own, and
 * comes in as `struct path_rules`; a third architecture writes a step and nothing of the search.
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

/* What every architecture knows of a path; the first member of its own struct. */
struct path {
	size_t at;     /* the next instruction, as an offset in the text */
	size_t target; /* of the last jump; outside the text it leads nowhere */
	struct tracked sp, fp;
};

/* Where an instruction leads. PATH_JUMP and PATH_BRANCH (also straight on): to the path's
 * `target`. */
enum path_step { PATH_ON, PATH_JUMP, PATH_BRANCH, PATH_RETURN, PATH_ASTRAY };

struct path_rules {
	size_t size; /* of the architecture's struct, which begins with struct path */
	/* Runs the instruction at path->at, which moves on. PATH_ASTRAY where there is none. */
	enum path_step (*step)(struct bytes text, struct path *path);
};

/* The goal of a path that ends at a return. */
#define PATH_TO_RETURN SIZE_MAX
/* The jumps that one search has come by. */
#define PATH_JUMPS_MAX 128

struct path_search {
	const struct path_rules *rules;
	struct bytes text;
	size_t goal;                /* where the path is to lead, or PATH_TO_RETURN */
	unsigned instructions_left; /* of all paths together */
	size_t jumps[PATH_JUMPS_MAX];
	size_t jump_count;
	uint8_t *open; /* room for `open_max` paths of `rules->size` bytes each */
	size_t open_max, open_count;
};

/* Runs `path` to its goal. False when it leads astray, comes by a jump a second time, or the
 * instructions are used up. Nothing goes on from a return: a goal behind one is not reached. */
bool path_run(struct path_search *search, struct path *path);

/* Makes `path` the other path of the last jump that has one; false: there is none. */
bool path_next(struct path_search *search, struct path *path);

#endif
