/*
 * cli/sandbox_mounts: places where other rules hold than for what is around them.
 */
#ifndef STACKER_CLI_SANDBOX_MOUNTS_H
#define STACKER_CLI_SANDBOX_MOUNTS_H

#include <stdbool.h>

#include "base/arena.h"

struct exception {
	const char *path;
	bool excluded; /* not to be read; else: on a file server, which may not answer */
};

struct exceptions {
	struct exception *at;
	size_t count, capacity;
};

/* Adds the kernel's file systems and those of servers that this process sees. */
void mounts_read(struct arena *arena, struct exceptions *out);

enum verdict {
	ALLOW, /* the directory, with all below it */
	EXCLUDE,
	ASK_LATER, /* it is on a file server, and `asks_remote` is false */
	GO_INSIDE, /* something below it is excluded */
};

enum verdict verdict_of(const struct exceptions *exceptions, const char *path,
			bool asks_remote);

#endif
