#include "snapshot/json_out.h"

#include <json-c/json.h>

#include "base/text.h"

/* Bytes turned into base64 at a time: a multiple of 3, so that padding comes only at the end. */
enum { BASE64_STEP = 3072 };

void json_out_init(struct json_out *out, FILE *stream)
{
	sink_init(&out->sink, stream);
	out->scratch = (struct arena){0};
	out->follows = out->new_line = out->failed = false;
}

bool json_out_finish(struct json_out *out)
{
	sink_flush(&out->sink);
	arena_free(&out->scratch);
	return !out->failed;
}

/* What stands between the value before and the one that comes. */
static void put_separator(struct json_out *out)
{
	if (out->follows)
		sink_char(&out->sink, ',');
	if (out->new_line)
		sink_char(&out->sink, '\n');
	out->new_line = false;
}

static void put_key(struct json_out *out, const char *key)
{
	put_separator(out);
	out->follows = true;
	if (!key)
		return;
	sink_char(&out->sink, '"');
	sink_text(&out->sink, key);
	sink_bytes(&out->sink, "\":", 2);
}

void json_open(struct json_out *out, const char *key, char bracket)
{
	put_key(out, key);
	sink_char(&out->sink, bracket);
	out->follows = false;
}

void json_close(struct json_out *out, char bracket)
{
	out->follows = false;
	put_separator(out);
	sink_char(&out->sink, bracket);
	out->follows = true;
}

void json_new_line(struct json_out *out)
{
	out->new_line = true;
}

/* Whether a string is the same inside JSON quotes. */
static bool is_plain(struct bytes text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.at[i] < 0x20 || text.at[i] > 0x7e || text.at[i] == '"' ||
		    text.at[i] == '\\')
			return false;
	return true;
}

/* JSON text in quotes, in which DEL, C1 controls and the like may still stand: JSON allows them, but
 * it may be shown on a terminal. All of them are below U+10000. */
static void put_quoted(struct json_out *out, const char *quoted)
{
	struct bytes left = {(const uint8_t *)quoted, strlen(quoted)};
	char escape[sizeof "\\uNNNN"];

	while (left.len) {
		uint32_t code = 0;
		size_t length = utf8_sequence(left, &code);

		if (code_is_harmful(code)) {
			snprintf(escape, sizeof escape, "\\u%04x", code & 0xffff);
			sink_text(&out->sink, escape);
		} else {
			sink_bytes(&out->sink, left.at, length);
		}
		/* What text_escape made is UTF-8 throughout, so length is never 0. */
		left = bytes_from(left, length);
	}
}

static void put_escaped(struct json_out *out, struct bytes text)
{
	const char *escaped = text_escape(&out->scratch, text);
	struct json_object *string = json_object_new_string(escaped);
	const char *quoted = NULL;

	if (string)
		quoted = json_object_to_json_string_ext(string, JSON_C_TO_STRING_NOSLASHESCAPE);
	put_quoted(out, quoted ? quoted : "null");
	out->failed |= !quoted;
	json_object_put(string);
	arena_reset(&out->scratch);
}

static void put_text(struct json_out *out, const char *text)
{
	struct bytes bytes = {(const uint8_t *)text, strlen(text)};

	if (!is_plain(bytes)) {
		put_escaped(out, bytes);
		return;
	}
	sink_char(&out->sink, '"');
	sink_bytes(&out->sink, bytes.at, bytes.len);
	sink_char(&out->sink, '"');
}

void json_text(struct json_out *out, const char *key, const char *text)
{
	put_key(out, key);
	if (text)
		put_text(out, text);
	else
		sink_text(&out->sink, "null");
}

void json_key_text(struct json_out *out, const char *text)
{
	put_separator(out);
	put_text(out, text);
	sink_char(&out->sink, ':');
	out->follows = false;
}

void json_hex(struct json_out *out, const char *key, uint64_t value)
{
	put_key(out, key);
	sink_bytes(&out->sink, "\"0x", 3);
	sink_hex(&out->sink, value, 1);
	sink_char(&out->sink, '"');
}

void json_count(struct json_out *out, const char *key, uint64_t value)
{
	put_key(out, key);
	sink_decimal(&out->sink, value);
}

void json_count_or_null(struct json_out *out, const char *key, bool known, uint64_t value)
{
	if (known)
		json_count(out, key, value);
	else
		json_null(out, key);
}

void json_flag(struct json_out *out, const char *key, bool value)
{
	put_key(out, key);
	sink_text(&out->sink, value ? "true" : "false");
}

void json_null(struct json_out *out, const char *key)
{
	put_key(out, key);
	sink_text(&out->sink, "null");
}

void json_base64(struct json_out *out, const char *key, struct bytes bytes)
{
	put_key(out, key);
	sink_char(&out->sink, '"');
	for (size_t done = 0; done < bytes.len;) {
		char text[BASE64_SIZE(BASE64_STEP)];
		size_t left = bytes.len - done;
		size_t count = left < BASE64_STEP ? left : BASE64_STEP;

		sink_bytes(&out->sink, text,
			   base64_encode(text, bytes_part(bytes, done, count)));
		done += count;
	}
	sink_char(&out->sink, '"');
}
