#include "snapshot/json_in.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Captures nest five levels deep; members of others that are not known here may nest deeper. */
#define JSON_DEPTH_LIMIT 32

/* An honest object or array takes more bytes than this on average (docs/capture-format.md: the
 * smallest, a run of frames, takes 45); the allowance is for brackets inside strings. */
#define JSON_BYTES_PER_OBJECT 16
#define JSON_OBJECTS_ALLOWED 65536

/* Enough for all levels that are read. */
#define PLACE_LEVELS 8

static size_t put_level(char *out, size_t size, const struct node *node, bool first)
{
	int count = node->key ? snprintf(out, size, "%s%s", first ? "" : ".", node->key)
			      : snprintf(out, size, "[%zu]", node->index);

	return count > 0 && (size_t)count < size ? (size_t)count : 0;
}

/* "threads[3].registers.RAX: ", or "" for the document itself. */
static const char *place_of(const struct node *node, char *buf, size_t size)
{
	const struct node *levels[PLACE_LEVELS];
	size_t count = 0, used = 0;

	for (; node->up && count < PLACE_LEVELS; node = node->up)
		levels[count++] = node;
	buf[0] = '\0';
	for (size_t i = count; i-- > 0;)
		used += put_level(buf + used, size - used, levels[i], i + 1 == count);
	snprintf(buf + used, size - used, "%s", count ? ": " : "");
	return buf;
}

bool node_fail(const struct node *node, enum err_kind kind, const char *fmt, ...)
{
	struct json_in *in = node->in;
	char place[160], text[256];
	va_list args;

	if (in->failed)
		return false;
	in->failed = true;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return err_set(in->e, kind, "%s: %s%s", in->name, place_of(node, place, sizeof place),
		       text);
}

/* Parsing. */

/* `at` lies in the file, or its end. */
static struct json_object *parse_failed(struct json_in *in, const char *what, const uint8_t *at)
{
	if (!in->failed)
		err_set(in->e, ERR_FORMAT, "%s: %s at offset %zu", in->name, what,
			(size_t)(at - in->text.at));
	in->failed = true;
	return NULL;
}

static bool has_too_many_objects(const struct bytes *parts, size_t count)
{
	size_t objects = 0, length = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < parts[i].len; k++)
			objects += parts[i].at[k] == '{' || parts[i].at[k] == '[';
		length += parts[i].len;
	}
	return objects > length / JSON_BYTES_PER_OBJECT + JSON_OBJECTS_ALLOWED;
}

/* Whether the text begins with none of the characters that say how it will end: then it is a
 * number or a word, and over only when something else follows. */
static bool is_bare_word(const struct bytes *text)
{
	size_t at = 0;

	while (at < text->len && strchr(" \t\r\n", text->at[at]))
		at++;
	return at < text->len && !strchr("{[\"", text->at[at]);
}

static struct json_object *parse_parts(struct json_in *in, struct json_tokener *tokener,
				       const struct bytes *parts, size_t count)
{
	struct json_object *json = NULL;
	enum json_tokener_error error = json_tokener_continue;
	const uint8_t *at = parts[0].at;
	char what[80];

	/* A value that ends before the last part ends leaves an error there, not a success. */
	for (size_t i = 0; i < count && error == json_tokener_continue; i++) {
		json = json_tokener_parse_ex(tokener, (const char *)parts[i].at,
					     (int)parts[i].len);
		error = json_tokener_get_error(tokener);
		at = parts[i].at + json_tokener_get_parse_end(tokener);
	}
	if (error == json_tokener_continue && is_bare_word(&parts[0])) {
		json = json_tokener_parse_ex(tokener, " ", 1);
		error = json_tokener_get_error(tokener);
	}
	if (error == json_tokener_success)
		return json;
	if (error == json_tokener_continue)
		return parse_failed(in, "not a whole JSON document: cut short", at);
	snprintf(what, sizeof what, "not JSON: %s", json_tokener_error_desc(error));
	return parse_failed(in, what, at);
}

struct json_object *json_parse(struct json_in *in, const struct bytes *parts, size_t count)
{
	struct json_tokener *tokener;
	struct json_object *json;

	if (in->failed)
		return NULL;
	if (has_too_many_objects(parts, count))
		return parse_failed(in, "more objects than a capture of this length has",
				    parts[0].at);
	tokener = json_tokener_new_ex(JSON_DEPTH_LIMIT);
	if (!tokener)
		out_of_memory();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	json = parse_parts(in, tokener, parts, count);
	json_tokener_free(tokener);
	return json;
}

/* Values. */

struct node node_member(const struct node *up, const char *key)
{
	struct node node = {.in = up->in, .up = up, .key = key};

	if (up->json && json_object_is_type(up->json, json_type_object))
		json_object_object_get_ex(up->json, key, &node.json);
	return node;
}

struct node node_item(const struct node *up, size_t index)
{
	struct node node = {.in = up->in, .up = up, .index = index};

	node.json = json_object_array_get_idx(up->json, index);
	return node;
}

bool node_is_object(const struct node *node)
{
	return node->json && json_object_is_type(node->json, json_type_object);
}

bool node_require(const struct node *node)
{
	return node->json || node_fail(node, ERR_FORMAT, "is missing");
}

static bool node_has_type(const struct node *node, enum json_type type, const char *wanted)
{
	if (!node->json)
		return false;
	return json_object_is_type(node->json, type) ||
	       node_fail(node, ERR_FORMAT, "should be %s, is of type %s", wanted,
			 json_type_to_name(json_object_get_type(node->json)));
}

void node_want_object(const struct node *node)
{
	node_has_type(node, json_type_object, "an object");
}

size_t node_count(const struct node *node)
{
	return node_has_type(node, json_type_array, "an array")
		       ? json_object_array_length(node->json)
		       : 0;
}

bool node_flag(const struct node *node)
{
	return node_has_type(node, json_type_boolean, "true or false") &&
	       json_object_get_boolean(node->json);
}

const char *node_word(const struct node *node)
{
	return node_has_type(node, json_type_string, "a string")
		       ? json_object_get_string(node->json)
		       : NULL;
}

/* The string's bytes, of which NUL may be one. */
static struct bytes string_bytes(const struct node *node)
{
	return (struct bytes){(const uint8_t *)json_object_get_string(node->json),
			      (size_t)json_object_get_string_len(node->json)};
}

static bool number_of(const struct node *node, uint64_t *value)
{
	struct bytes text;

	if (json_object_is_type(node->json, json_type_string)) {
		text = string_bytes(node);
		return number_parse((const char *)text.at, text.len, value) ||
		       node_fail(node, ERR_FORMAT,
				 "should be a number, or a string of \"0x...\" or digits "
				 "within 64 bits");
	}
	if (!node_has_type(node, json_type_int, "an integer or a hex string"))
		return false;
	/* The signed reading is negative for negative numbers only: larger ones saturate. */
	if (json_object_get_int64(node->json) < 0)
		return node_fail(node, ERR_FORMAT, "is negative");
	*value = json_object_get_uint64(node->json);
	return true;
}

uint64_t node_number(const struct node *node, uint64_t max)
{
	uint64_t value = 0;

	if (!node->json || !number_of(node, &value))
		return 0;
	if (value > max) {
		node_fail(node, ERR_FORMAT, "is %llu, more than %llu",
			  (unsigned long long)value, (unsigned long long)max);
		return 0;
	}
	return value;
}

const char *node_text(const struct node *node)
{
	struct bytes text;

	if (!node_has_type(node, json_type_string, "a string"))
		return NULL;
	text = string_bytes(node);
	if (node->in->escaped && memchr(text.at, '\\', text.len))
		text = text_unescape(node->in->arena, text);
	else
		text.at = (const uint8_t *)arena_copy(node->in->arena, text.at, text.len);
	if (memchr(text.at, '\0', text.len)) {
		node_fail(node, ERR_FORMAT, "holds a NUL byte");
		return NULL;
	}
	return (const char *)text.at;
}

struct bytes node_bytes(const struct node *node)
{
	struct bytes text, bytes = {NULL, 0};

	if (!node_has_type(node, json_type_string, "a string"))
		return bytes;
	text = string_bytes(node);
	if (!base64_decode(node->in->arena, (const char *)text.at, text.len, &bytes))
		node_fail(node, ERR_FORMAT, "is not base64");
	return bytes;
}

uint64_t member_number(const struct node *up, const char *key, uint64_t max)
{
	struct node node = node_member(up, key);

	return node_number(&node, max);
}

uint64_t required_number(const struct node *up, const char *key, uint64_t max)
{
	struct node node = node_member(up, key);

	node_require(&node);
	return node_number(&node, max);
}

const char *member_text(const struct node *up, const char *key)
{
	struct node node = node_member(up, key);

	return node_text(&node);
}

bool member_flag(const struct node *up, const char *key)
{
	struct node node = node_member(up, key);

	return node_flag(&node);
}
