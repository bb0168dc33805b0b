/*
 * base/output: one output that is either there whole or not at all.
 *
 * "-" is stdout, and names of open descriptors (/dev/stdout, /dev/fd/N) are these: written as
 * they stand, nothing cut, nothing renamed. Any other name (base/destination says which are
 * refused) is
 *
 * - a new file: made without a name (O_TMPFILE) where the file system can, and given its name
 *   when it is whole, so that nothing is left however the program ends. Mode 0600.
 * - a regular file: replaced by such a new one, which gets its owner, group and permissions;
 *   where others may write to the directory only files of our own are, and get mode 0600, since
 *   others can put a file there that everybody may read.
 * - a regular file that has to stay the same one (other hard links, an access control list,
 *   mounted by itself, in a directory that cannot be written, or its owner cannot be kept):
 *   filled at the end, from memory, when all of it is known.
 * - a FIFO or a device: written at once. A FIFO without a reader is waited for, until a signal.
 */
#ifndef STACKER_BASE_OUTPUT_H
#define STACKER_BASE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/destination.h"
#include "base/err.h"
#include "base/placer.h"

/* A new file gets its name from a process that is set apart at the opening (base/placer): this one may
 * by then have given up all writing but to what is open. */
struct output {
	FILE *stream;
	const char *path; /* as the user gave it */
	struct destination to;
	char temporary[24];   /* the name in to.dir of what is written; "": it has none */
	int filled;           /* the file that is filled at the end, or -1 */
	bool makes_file;      /* in to.dir */
	struct placer placer; /* who gives it its name; only where it makes one */
};

bool output_open(struct output *out, struct arena *arena, const char *path, struct err *e);
/* Flushes, checks every write for errors (full disk, closed pipe), puts it in its place. */
bool output_commit(struct output *out, struct err *e);
void output_abandon(struct output *out);

/* Does it go where stdout goes? (Other words to stdout would stand in it.) */
bool output_is_stdout(const struct output *out);

#endif
