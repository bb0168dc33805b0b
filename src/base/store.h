/*
 * base/store: a directory of the user's own for small files that can be made again.
 *
 * A file is there whole or not at all (written beside, then renamed), so any number of programs may
 * use the directory at once, without a lock: who writes last wins. Nothing is trusted that somebody
 * else could have put there: directory and files must belong to the effective user and be writable
 * for nobody else, files must be regular, symbolic links are not followed; what leads there must belong
 * to that user or root. Errors are for who asks:
 * a store that does not work is none.
 */
#ifndef STACKER_BASE_STORE_H
#define STACKER_BASE_STORE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

/* Of one file. It is read and checked as a whole each time: a larger one costs more than it saves. */
#define STORE_FILE_MAX ((size_t)8 << 20)
/* Of all files, and how many: looking through them is part of every write. */
#define STORE_TOTAL_MAX ((uint64_t)128 << 20)
#define STORE_COUNT_MAX 4096

/* Longest name of a file, without the NUL. Names are [0-9a-f-]+: all else in the directory is somebody
 * else's, and left alone. */
#define STORE_NAME_MAX 200

struct store {
	const char *path;
	int dir;                 /* -1: not opened */
	int64_t clock_offset_ns; /* added to the wall clock: 0, but for tests of what time does */
};

struct store_size {
	uint64_t files, bytes;
};

/* The path of "$XDG_CACHE_HOME/stacker", else "$HOME/.cache/stacker"; NULL: neither is set (to an
 * absolute path). */
const char *store_path(struct arena *arena);

/* Opens it; `make`: makes it where it is missing (mode 0700), and at most one directory above it,
 * but only inside a directory of the effective user: a root user by sudo leaves nothing in the home
 * of another. */
bool store_open(struct store *store, struct arena *arena, bool make, struct err *e);

/* The wall clock by which files are young or old, since 1970. */
int64_t store_now_ns(const struct store *store);

/* The whole file; false when there is none, or none that can be trusted. */
bool store_read(const struct store *store, struct arena *arena, const char *name,
		struct bytes *out);

/* Writes or replaces a file, and removes the oldest ones where the limits are exceeded. False: it is as
 * it was. */
bool store_write(const struct store *store, const char *name, struct bytes contents);

/* A file that is written piece by piece, and is there once it is finished. */
struct store_file {
	int fd; /* -1: it could not be made, or a write failed */
	char unfinished[32];
};

/* Of such a file: it is not read as a whole. */
#define STORE_PIECES_MAX ((uint64_t)32 << 20)

void store_file_begin(const struct store *store, struct store_file *file);
/* By several threads at once, if they like. */
bool store_file_put(struct store_file *file, uint64_t off, struct bytes contents);
/* Gives it its name, as store_write does; store_file_drop removes it. */
bool store_file_finish(const struct store *store, struct store_file *file, const char *name);
void store_file_drop(const struct store *store, struct store_file *file);

/* Opens a file that can be trusted, of at most STORE_PIECES_MAX; -1: there is none. */
int store_file_open(const struct store *store, const char *name, uint64_t *size);
void store_remove(const struct store *store, const char *name);

struct store_size store_measure(const struct store *store);
/* Removes the store's files. Says what was there and could be removed. */
struct store_size store_clear(const struct store *store);

#endif
