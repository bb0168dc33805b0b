/*
 * Snapshots made up for tests: every field has a value of its own, and strings are as nasty as the
 * kernel allows.
 */
#ifndef STACKER_TESTS_SAMPLE_SNAPSHOT_H
#define STACKER_TESTS_SAMPLE_SNAPSHOT_H

#include <stdio.h>

#include "snapshot/snapshot.h"

/* x86_64: a main thread with the usual stack, one with a signal frame and an elision, one left out. */
struct snapshot sample_x86_64(struct arena *arena);
/* aarch64: pointer authentication, frame pointers, no load bias, nothing known about the host. */
struct snapshot sample_aarch64(struct arena *arena);
/* Names that are not UTF-8, hold escapes, quotes, control characters. */
struct snapshot sample_hostile(struct arena *arena);

/* What is written to the stream by `body` as a string in the arena. */
#define WRITTEN_TO(arena, stream, body)                           \
	({                                                        \
		char *written_ = NULL, *copy_;                    \
		size_t size_ = 0;                                 \
		FILE *stream = open_memstream(&written_, &size_); \
		body;                                             \
		fclose(stream);                                   \
		copy_ = arena_copy((arena), written_, size_);     \
		free(written_);                                   \
		copy_;                                            \
	})

#endif
