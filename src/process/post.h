/*
 * process/post: open files, and words, from the process that captures to the one that waits
 * (unix(7), SCM_RIGHTS), by a socket that keeps messages apart.
 */
#ifndef STACKER_PROCESS_POST_H
#define STACKER_PROCESS_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Of one message; the kernel's limit is 253 (SCM_MAX_FD). */
#define POST_FILES_MAX 128

enum post_kind {
	POST_FILES,  /* of modules */
	POST_USABLE, /* all but the extras is there */
	POST_DONE,   /* with the root directory, if it is another one */
};

struct post {
	uint32_t kind, count;
	uint32_t modules[POST_FILES_MAX];
	int files[POST_FILES_MAX];
};

/* Sends those of files[0..count) that are open. False: the other end is gone. */
bool post_files(int socket, const int *files, size_t count);
/* Sends a word, with a file unless it is -1. */
bool post_word(int socket, enum post_kind kind, int file);

/* False when the other end is closed and nothing is left. Files are the caller's. */
bool post_receive(int socket, struct post *post);

/* Room for the files of so many modules, none there yet. */
int *post_files_room(struct arena *arena, size_t count);
/* Puts the files of a message where they belong. */
void post_files_take(const struct post *post, int *files, size_t count);

#endif
