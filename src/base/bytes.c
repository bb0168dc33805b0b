#include "base/bytes.h"

struct bytes bytes_part(struct bytes bytes, uint64_t off, uint64_t len)
{
	if (!bytes.at || off > bytes.len || len > bytes.len - off)
		return (struct bytes){NULL, 0};
	return (struct bytes){bytes.at + off, len};
}

struct bytes bytes_from(struct bytes bytes, uint64_t off)
{
	if (off >= bytes.len)
		return (struct bytes){NULL, 0};
	return (struct bytes){bytes.at + off, bytes.len - off};
}

const char *bytes_string(struct bytes bytes, uint64_t off)
{
	if (off >= bytes.len || !memchr(bytes.at + off, 0, bytes.len - off))
		return NULL;
	return (const char *)(bytes.at + off);
}

struct bytes bytes_strings(struct bytes table)
{
	const uint8_t *last = table.len ? memrchr(table.at, 0, table.len) : NULL;

	return last ? bytes_part(table, 0, (uint64_t)(last - table.at) + 1)
		    : (struct bytes){NULL, 0};
}

bool bytes_equal(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool reader_ok(const struct reader *r, const char *what, struct err *e)
{
	if (!r->failed)
		return true;
	return err_set(e, ERR_FORMAT, "%s: truncated at offset 0x%zx", what, reader_offset(r));
}

void reader_limit(struct reader *r, uint64_t len)
{
	if (reader_has(r, len))
		r->end = r->at + len;
}

uint64_t read_uint(struct reader *r, unsigned size)
{
	uint64_t value = 0;

	if (size == 0 || size > 8) {
		reader_fail(r);
		return 0;
	}
	if (!reader_has(r, size))
		return 0;
	memcpy(&value, r->at, size);
	r->at += size;
	return value;
}

int64_t read_sint(struct reader *r, unsigned size)
{
	uint64_t value = read_uint(r, size);

	if (size < 8 && size > 0) {
		uint64_t sign = UINT64_C(1) << (8 * size - 1);

		value = (value ^ sign) - sign;
	}
	return (int64_t)value;
}

uint64_t read_uleb_long(struct reader *r)
{
	const uint8_t *at = r->at;
	uint64_t value = 0;

	if (reader_left(r) >= 2 && at[1] < 0x80) { /* nearly all that are no single byte */
		r->at += 2;
		return (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
	}
	for (unsigned shift = 0; at < r->end; shift += 7) {
		uint8_t byte = *at++;
		uint64_t part = byte & 0x7f;

		/* Padding with zero bits is legal at any length; set bits past the 64th are not. */
		if (shift < 64 && (part << shift) >> shift == part)
			value |= part << shift;
		else if (part)
			break;
		if (!(byte & 0x80)) {
			r->at = at;
			return value;
		}
	}
	reader_fail(r);
	return 0;
}

int64_t read_sleb_long(struct reader *r)
{
	const uint8_t *at = r->at;
	uint64_t value = 0;

	if (reader_left(r) >= 2 && at[1] < 0x80 && at[0] >= 0x80) {
		value = (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
		r->at += 2;
		return (int64_t)(value << 50) >> 50;
	}
	for (unsigned shift = 0; at < r->end; shift += 7) {
		uint8_t byte = *at++;
		uint64_t part = byte & 0x7f;

		if (shift < 63)
			value |= part << shift;
		else if (shift == 63)
			value |= part << 63;
		if (!(byte & 0x80)) {
			if ((byte & 0x40) && shift + 7 < 64)
				value |= ~UINT64_C(0) << (shift + 7);
			r->at = at;
			return (int64_t)value;
		}
	}
	reader_fail(r);
	return 0;
}

const char *read_string(struct reader *r)
{
	const uint8_t *end = reader_more(r) ? memchr(r->at, 0, reader_left(r)) : NULL;
	const char *text;

	if (!end) {
		reader_fail(r);
		return "";
	}
	text = (const char *)r->at;
	r->at = end + 1;
	return text;
}
