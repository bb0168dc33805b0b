/*
 * base/trust: paths that nobody but the effective user and root can lead elsewhere.
 *
 * The environment may be another user's (sudo -E, su without -): what HOME and PATH lead to must not be believed
 * or run for that alone.
 */
#ifndef STACKER_BASE_TRUST_H
#define STACKER_BASE_TRUST_H

#include "base/arena.h"

enum trust {
	TRUST_OWNERS, /* every directory and link of the path belongs to the effective user or root */
	TRUST_WRITERS, /* and nobody else may write to any of them, nor to what it leads to */
	TRUST_PLACE,   /* and the last one is no link */
};

/* NULL, or why not: "X belongs to another user", "others may write to X", "X is a symbolic link". Of a path of which
 * the end is not there, what is there is judged. A group of the user's own (its number is the user's) is nobody else. */
const char *trust_lacks(struct arena *arena, const char *path, enum trust wanted);

#endif
