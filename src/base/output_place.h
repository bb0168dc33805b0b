/*
 * base/output_place: how a finished output gets its name. Of base/output alone.
 */
#ifndef STACKER_BASE_OUTPUT_PLACE_H
#define STACKER_BASE_OUTPUT_PLACE_H

#include "base/output.h"

/* Makes a process that can put the opened output in its place, or remove what is unfinished of it
 * (base/placer): it asks nothing of what this process may do by then. */
bool output_set_apart(struct output *out, struct err *e);

/* The temporary name in out->to.dir, if it has one. */
void output_name_remove(struct output *out);
/* Short, so that a name of 255 bytes can be written beside. */
bool output_name_make(char *out, size_t size);

/* The name by which a link to what is open can be made. */
void output_self_path(char *out, size_t size, int fd);

/* Always false. */
bool output_commit_failed(const struct output *out, int number, struct err *e);

#endif
