/*
 * snapshot/json_out: JSON written piece by piece, so that memory does not grow with the document.
 *
 * Commas and quotes are kept here; a string that holds anything but plain ASCII is escaped by
 * json-c. `key` is a literal of the program (never escaped), or NULL inside an array. Strings of
 * the target go through the reversible escape of base/text first, so that the document is always
 * valid UTF-8. NULL strings are written as null.
 */
#ifndef STACKER_SNAPSHOT_JSON_OUT_H
#define STACKER_SNAPSHOT_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/sink.h"

struct json_out {
	struct sink sink;
	struct arena scratch; /* of one string */
	bool follows;         /* a value stands before: the next one needs a comma */
	bool new_line;        /* the next value begins a line */
	bool failed;          /* json-c had no memory */
};

void json_out_init(struct json_out *out, FILE *stream);
/* Hands everything to the stream. False when json-c failed somewhere. */
bool json_out_finish(struct json_out *out);

void json_open(struct json_out *out, const char *key, char bracket);
void json_close(struct json_out *out, char bracket);
/* The next value, or closing bracket, begins on a line of its own. */
void json_new_line(struct json_out *out);

/* The target's string, or ours. */
void json_text(struct json_out *out, const char *key, const char *text);
/* The target's string as a key: a value must follow, with key NULL. */
void json_key_text(struct json_out *out, const char *text);
/* "0x..."; a plain number; a plain number or null; true or false; null. */
void json_hex(struct json_out *out, const char *key, uint64_t value);
void json_count(struct json_out *out, const char *key, uint64_t value);
void json_count_or_null(struct json_out *out, const char *key, bool known, uint64_t value);
void json_flag(struct json_out *out, const char *key, bool value);
void json_null(struct json_out *out, const char *key);
void json_base64(struct json_out *out, const char *key, struct bytes bytes);

#endif
