#include "snapshot/capture_split.h"

static bool is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_spaces(struct reader *r)
{
	while (reader_more(r) && is_space(*r->at))
		r->at++;
}

/* After the opening quote: the string's bytes; the reader is left after the closing one. */
static struct bytes skip_string(struct reader *r)
{
	const uint8_t *begin = r->at;

	while (reader_more(r) && *r->at != '"')
		reader_skip(r, *r->at == '\\' ? 2 : 1);
	reader_skip(r, 1);
	return (struct bytes){begin, reader_failed(r) ? 0 : (size_t)(r->at - 1 - begin)};
}

static bool skip_char(struct reader *r, uint8_t c)
{
	skip_spaces(r);
	if (!reader_more(r) || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* Leaves the reader after the `[` of the member "threads" of the outermost object. */
static bool find_threads(struct reader *r)
{
	const struct bytes wanted = {(const uint8_t *)"threads", sizeof "threads" - 1};
	size_t depth = 1;

	if (!skip_char(r, '{'))
		return false;
	while (depth && reader_more(r)) {
		uint8_t c = read_u8(r);

		if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		else if (c == '"' && bytes_equal(skip_string(r), wanted) && depth == 1 &&
			 skip_char(r, ':'))
			return skip_char(r, '[');
	}
	return false;
}

static void push_item(struct arena *arena, struct capture_split *out, const uint8_t *begin,
		      const uint8_t *end)
{
	*(struct bytes *)vec_push(arena, &out->threads) =
		(struct bytes){begin, (size_t)(end - begin)};
}

/* Leaves the reader at the `]` that ends the array. */
static bool split_items(struct arena *arena, struct reader *r, struct capture_split *out)
{
	const uint8_t *begin;
	size_t depth = 0;

	skip_spaces(r);
	if (reader_more(r) && *r->at == ']')
		return true;
	begin = r->at;
	for (; reader_more(r); r->at++) {
		uint8_t c = *r->at;

		if (c == '"') {
			r->at++;
			skip_string(r);
			if (reader_failed(r))
				return false;
			r->at--;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == ',' && !depth) {
			push_item(arena, out, begin, r->at);
			begin = r->at + 1;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		} else if (c == '}') {
			return false;
		} else if (c == ']') {
			push_item(arena, out, begin, r->at);
			return true;
		}
	}
	return false;
}

bool capture_split(struct arena *arena, struct bytes text, struct capture_split *out)
{
	struct reader r = reader_over(text);

	*out = (struct capture_split){0};
	if (!find_threads(&r))
		return false;
	out->before = bytes_part(text, 0, reader_offset(&r) - 1);
	if (!split_items(arena, &r, out))
		return false;
	out->after = (struct bytes){r.at + 1, reader_left(&r) - 1};
	return true;
}
