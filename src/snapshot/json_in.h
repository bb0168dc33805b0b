/*
 * snapshot/json_in: JSON from somebody else, read with a place for every complaint.
 *
 * json-c parses; a `struct node` is one value and the way to it, so that an error can say
 * "threads[3].registers.RAX". Reading fails stickily, as in base/bytes: the first wrong value is
 * remembered in `struct json_in`, later ones are ignored, absent values read as 0 or NULL, and the
 * caller checks once at the end. A JSON null is the same as an absent member.
 */
#ifndef STACKER_SNAPSHOT_JSON_IN_H
#define STACKER_SNAPSHOT_JSON_IN_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

struct json_in {
	struct arena *arena; /* of all strings and bytes that are returned */
	const char *name;    /* of the file, for messages */
	struct bytes text;   /* of the file, for offsets */
	struct err *e;
	bool failed;
	bool escaped; /* strings of the target carry the escape of base/text */
};

struct node {
	struct json_in *in;
	struct json_object *json; /* NULL: absent or null */
	const struct node *up;    /* NULL: the document */
	const char *key;          /* NULL: an item of an array */
	size_t index;
};

/*
 * One JSON value out of `count` stretches of text that follow each other; the last one is a part
 * of the file. To be given back with json_object_put; NULL for a JSON null and after a failure:
 * not JSON, cut short, nested too deeply, or made of more objects than an honest file of its
 * length (each costs json-c some hundred times the two bytes that "{}" takes).
 */
struct json_object *json_parse(struct json_in *in, const struct bytes *parts, size_t count);

struct node node_member(const struct node *up, const char *key);
struct node node_item(const struct node *up, size_t index);
bool node_is_object(const struct node *node);

/* Records "NAME: PLACE: ..." unless something failed before. Always returns false. */
bool node_fail(const struct node *node, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Fails when the value is absent. */
bool node_require(const struct node *node);
/* Fails when the value is there and is not an object. */
void node_want_object(const struct node *node);
/* Number of items; fails when the value is there and is not an array. */
size_t node_count(const struct node *node);

/* A plain integer, or a string of "0x..." or decimal digits, at most `max`. */
uint64_t node_number(const struct node *node, uint64_t max);
bool node_flag(const struct node *node);
/* A string as it stands in the JSON, valid until json_object_put: for words and numbers. */
const char *node_word(const struct node *node);
/* A string of the target in the arena, unescaped; one that holds a NUL is refused. */
const char *node_text(const struct node *node);
/* Base64. */
struct bytes node_bytes(const struct node *node);

/* The same of a member; required_number fails when it is absent. */
uint64_t member_number(const struct node *up, const char *key, uint64_t max);
uint64_t required_number(const struct node *up, const char *key, uint64_t max);
const char *member_text(const struct node *up, const char *key);
bool member_flag(const struct node *up, const char *key);

#endif
