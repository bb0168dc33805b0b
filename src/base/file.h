/*
 * base/file: files of other people, opened so that nothing can go wrong with them.
 */
#ifndef STACKER_BASE_FILE_H
#define STACKER_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/bytes.h"

/* Closes a descriptor by scope: `SCOPED_FD int fd = ...`. */
#define SCOPED_FD __attribute__((cleanup(fd_close_scoped)))
void fd_close_scoped(int *fd);

/* For the beginning of main. Of descriptors 0 to 2 those that are closed would go to the next
 * files that are opened, which then were taken for stdin, stdout or stderr. They are given to
 * what can neither be read nor written, so that whoever tries it has the same error as before. */
void standard_files_guard(void);

/* As many open files as may be: a process with many modules has all of theirs opened before it
 * is held. */
void open_files_allow(void);

/* Opens a regular file for reading without ever opening anything else: the path is looked at
 * with O_PATH first, since opening a device or a FIFO already does something. `dir` is a
 * directory descriptor or AT_FDCWD; a final symbolic link is followed unless `nofollow`. Fills
 * `st`. Returns -1 with errno; EINVAL when it is not a regular file. */
int file_open_at(int dir, const char *path, bool nofollow, struct stat *st);

/* As file_open_at, for a path as it is seen from inside another root directory, given as a
 * descriptor: absolute symbolic links and `..` stay inside (base/inside). */
int file_open_inside(int root, const char *path, bool nofollow, struct stat *st);
/* What is at such a path; false with errno. */
bool file_look_inside(int root, const char *path, struct stat *st);

/* Such a path with all symbolic links resolved, from the root on; NULL when nothing is there. */
const char *file_real_inside(struct arena *arena, int root, const char *path);

/* By what name the kernel knows an open file; NULL: none that fits. */
const char *file_handle_name(struct arena *arena, int handle);

/* As file_open_at with an error: ERR_NOT_FOUND, ERR_PERMISSION, ERR_SYSTEM, or ERR_UNSUPPORTED
 * for what is not a regular file. */
int file_open(const char *path, struct err *e);

/* Likewise of a path below a directory descriptor, which `name` is for messages. */
int file_open_below(int dir, const char *path, const char *name, struct err *e);

/* Likewise of a path inside `root`, a directory descriptor. */
int file_open_rooted(int root, const char *path, struct err *e);

/* Maps a regular file read-only and private. The mapping outlives `fd`. An empty file gives
 * empty bytes. `name` is for messages, and for base/mapping, which keeps it as long as the
 * mapping. */
bool file_map_fd(int fd, const char *name, struct bytes *out, struct err *e);
/* Of a path inside `root`, a directory descriptor, as file_open_inside takes it. */
bool file_map_inside(int root, const char *path, struct bytes *out, struct err *e);
bool file_map(const char *path, struct bytes *out, struct err *e);
void file_unmap(struct bytes bytes);

/* The whole text of a small or unsized file (/proc) in the arena, NUL-terminated (the NUL is
 * not counted). At most `limit` bytes, else ERR_LIMIT. `at` is a directory descriptor or
 * AT_FDCWD. */
bool file_read_all(struct arena *arena, int at, const char *path, size_t limit,
		   struct bytes *out, struct err *e);

/* The same of an open descriptor. */
bool file_read_fd(struct arena *arena, int fd, const char *name, size_t limit,
		  struct bytes *out, struct err *e);

/* All of it; false with errno. */
bool file_write_whole(int fd, struct bytes contents);

#endif
