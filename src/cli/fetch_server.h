/*
 * cli/fetch_server: the process that runs debuginfod-find, and what goes through the pipes to it.
 */
#ifndef STACKER_CLI_FETCH_SERVER_H
#define STACKER_CLI_FETCH_SERVER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "cli/fetch_command.h"
#include "elf/debugfile.h"

/* What goes through the pipes, whole. Both ends are one program, but what Stacker reads may
 * have taken its end over. */
struct fetch_question {
	char build_id[2 * BUILD_ID_MAX + 1];
};
struct fetch_answer {
	bool found;
	char text[PATH_MAX]; /* the path, or why there is none */
};

void fetch_refuse(struct fetch_answer *answer, const char *why);

/* Whole, or false. */
bool fetch_read(int fd, void *to, size_t size);
bool fetch_write(int fd, const void *from, size_t size);

struct fetch_server {
	int questions, answers;
	int stacker; /* a descriptor of that process, -1: not to be had (before Linux 5.3) */
	int signals; /* awaited(), to be read */
	bool verbose;
	uint64_t limit_s;
	bool begun;
	struct timespec end; /* CLOCK_MONOTONIC; once begun */
	struct arena arena;
	const char *command;     /* its path; NULL: not looked for yet */
	char given_up[PATH_MAX]; /* asking again is no use; "": go on */
};

/* All that the process does, to its end. */
void fetch_serve(struct fetch_server *server) __attribute__((noreturn));

#endif
