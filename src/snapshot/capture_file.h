/*
 * snapshot/capture_file: the snapshot as JSON, out and in. The format is docs/capture-format.md.
 *
 * 64-bit numbers are written as hex strings ("0x7f..."); the reader takes hex strings, decimal
 * strings and plain integers, and captures whose `stack_trace` is an array of plain integers.
 * Bytes that are not UTF-8 are escaped, never dropped (docs/capture-format.md, "Strings").
 */
#ifndef STACKER_SNAPSHOT_CAPTURE_FILE_H
#define STACKER_SNAPSHOT_CAPTURE_FILE_H

#include <stdio.h>

#include "base/err.h"
#include "snapshot/snapshot.h"

#define CAPTURE_FORMAT "stacker-capture"
#define CAPTURE_VERSION 1

struct capture_options {
	bool with_stacks; /* raw stack bytes too (base64) */
};

/* Writes the whole capture. Write errors are the stream's (output_commit reports them); false only
 * when the JSON library fails. */
bool capture_write(FILE *out, const struct snapshot *snapshot,
		   const struct capture_options *options, struct err *e);

/* Reads a capture. ERR_FORMAT with the place for what is not JSON, cut short or not a capture;
 * ERR_UNSUPPORTED for a newer version. Everything in it is untrusted: counts, sizes and addresses
 * are checked for what later stages rely on (maps sorted, no overlap; module indexes valid;
 * strings NUL-terminated). `name` is for messages. */
bool capture_read(struct arena *arena, struct bytes text, const char *name,
		  struct snapshot *out, struct err *e);

#endif
