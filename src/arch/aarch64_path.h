/*
 * arch/aarch64_path: what the instructions on one path through a function do to its frame.
 *
 * Nothing but SP, the frame pointer and where callee-saved registers and x30 lie is followed.
 * It stands apart from the search (arch/path), which chooses among paths and reads no
 * instructions.
 *
 * Instructions: Arm Architecture Reference Manual, C4.1 and C6.2. What is not recognized has no
 * part in this: it does not touch SP, and if it loads a register, the old value is loaded
 * later.
 */
#ifndef STACKER_ARCH_AARCH64_PATH_H
#define STACKER_ARCH_AARCH64_PATH_H

#include "arch/path.h"

/* x19 to x28 are callee-saved, x29 and x30 saved too (AAPCS64, 6.1.1). */
enum { AARCH64_FIRST_SAVED = 19, AARCH64_LR = 30 };

#define AARCH64_SAVED_COUNT (AARCH64_LR + 1 - AARCH64_FIRST_SAVED)

/* What a register holds: what it does where the path begins, what lies somewhere in the stack,
 * or nobody knows. */
enum aarch64_holds { AARCH64_HOLDS_OWN, AARCH64_HOLDS_LOADED, AARCH64_HOLDS_UNKNOWN };

struct aarch64_content {
	enum aarch64_holds holds;
	struct tracked from; /* AARCH64_HOLDS_LOADED */
};

/* Where a register was stored last on the path, and what it held then. */
struct aarch64_stored {
	struct tracked to; /* TRACKED_NONE: not at all, or nobody knows where */
	struct aarch64_content content;
};

struct aarch64_path {
	struct path base;
	struct tracked top;                                /* the highest that SP has been */
	struct aarch64_content now[AARCH64_SAVED_COUNT];   /* x19 and up */
	struct aarch64_stored stored[AARCH64_SAVED_COUNT]; /* x19 and up */
	bool strayed;                                      /* into another function */
};

/* A path that begins at `at`; `called`: behind a call, which has written x30. */
struct aarch64_path aarch64_path_begin(size_t at, bool called);

extern const struct path_rules aarch64_path_rules;

bool aarch64_is_call(uint32_t code);
/* Whether nothing need go on behind it: a jump, a call that may not return, padding. */
bool aarch64_may_end_function(uint32_t code);

#endif
