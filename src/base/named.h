/*
 * base/named: a file to be read that the user has named, whatever it is.
 *
 * A regular file is mapped. A pipe or FIFO (`<(command)`, /dev/stdin) is read to its end, and
 * so is an open descriptor that does not stand at its beginning. Opening a FIFO waits for who
 * writes.
 */
#ifndef STACKER_BASE_NAMED_H
#define STACKER_BASE_NAMED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

/* A pipe may never end. Captures of 10,000 threads with all their stacks have some hundred
 * megabytes. */
#define NAMED_MAX ((size_t)1 << 30)

struct named_file {
	const char *name; /* as given */
	const char *real; /* where the kernel says it is; NULL: it is no file */
	struct bytes data;
	bool is_mapped; /* by base/file; else it is in the arena */
};

bool named_file_open(struct named_file *out, struct arena *arena, const char *name,
		     struct err *e);

/* The same of an open descriptor. */
bool named_file_read(struct named_file *out, struct arena *arena, int fd, const char *name,
		     struct err *e);

#endif
