/*
 * base/destination: what the name of an output stands for, and whether it may be written.
 *
 * The name is resolved part by part, each from the descriptor of the part before it, so that
 * what is judged is what is used, whoever renames things meanwhile. Three rules keep others
 * from choosing what is overwritten, and from reading along:
 *
 * - a symbolic link is followed if it is ours or root's, else refused. (Links of /proc are the
 *   kernel's, and followed.)
 * - where others may write, nothing of another owner is filled or replaced: a file, a FIFO, a
 *   device. "Others may write" is any directory but one of ours or of root's in which nobody
 *   else has the right to make files.
 * - /proc/self/fd/N and all that leads there (/dev/stdout, /dev/fd/N) is the open descriptor N.
 */
#ifndef STACKER_BASE_DESTINATION_H
#define STACKER_BASE_DESTINATION_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"

enum destination_kind {
	DESTINATION_DESCRIPTOR, /* an open one of ours: `descriptor` */
	DESTINATION_NEW,        /* nothing is there: a file can be made in `dir` */
	DESTINATION_REPLACED,   /* a regular file, to be renamed onto */
	DESTINATION_FILLED,     /* a regular file that has to stay the same file */
	DESTINATION_STREAM,     /* a FIFO or a device */
};

struct destination {
	enum destination_kind kind;
	int descriptor;
	int dir;          /* where it is, O_PATH; -1 where no directory is known */
	const char *name; /* in `dir` */
	int handle;       /* what is there, O_PATH; -1: nothing */
	struct stat st;   /* of `handle` */
	bool is_private;  /* nobody else may write to `dir` */
};

/* False: nothing can be written there, and the reason with its cure. */
bool destination_find(struct destination *out, struct arena *arena, const char *path,
		      struct err *e);

/* Once more, when all is written: may what is in `dir` now under this name be replaced? Sets
 * `exists`. */
bool destination_still_good(const struct destination *destination, const char *path,
			    bool *exists, struct err *e);

/* Opens what `handle` stands for; -1 with errno. */
int destination_open(const struct destination *destination, int flags);

void destination_close(struct destination *destination);

/* The number N of a name that is one of our open descriptors, /dev/stdin, /dev/stdout,
 * /dev/stderr, /dev/fd/N or /proc/self/fd/N, by its spelling alone; -1: another name. */
int descriptor_named(const char *path);

#endif
