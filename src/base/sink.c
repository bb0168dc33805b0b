#include "base/sink.h"

#include "base/text.h"

void sink_init(struct sink *sink, FILE *stream)
{
	sink->stream = stream;
	sink->used = 0;
}

void sink_flush(struct sink *sink)
{
	fwrite(sink->buffer, 1, sink->used, sink->stream);
	sink->used = 0;
}

void sink_bytes_long(struct sink *sink, const void *at, size_t len)
{
	sink_flush(sink);
	if (len >= SINK_SIZE) {
		fwrite(at, 1, len, sink->stream);
		return;
	}
	memcpy(sink->buffer, at, len);
	sink->used = len;
}

void sink_hex(struct sink *sink, uint64_t value, size_t width)
{
	char digits[HEX_SIZE];

	sink_bytes(sink, digits, hex_format(digits, value, width));
}

void sink_decimal(struct sink *sink, uint64_t value)
{
	char digits[DECIMAL_SIZE];

	sink_bytes(sink, digits, decimal_format(digits, value));
}

void sink_spaces(struct sink *sink, size_t count)
{
	while (count--)
		sink_char(sink, ' ');
}

/* How many bytes from the beginning are printable ASCII: nearly always all of them. */
static size_t plain_length(struct bytes text)
{
	size_t length = 0;

	while (length < text.len && text.at[length] >= 0x20 && text.at[length] < 0x7f)
		length++;
	return length;
}

void sink_foreign(struct sink *sink, const char *text)
{
	sink_foreign_part(sink, text, strlen(text));
}

void sink_foreign_part(struct sink *sink, const char *text, size_t length)
{
	struct bytes left = {(const uint8_t *)text, length};

	while (left.len) {
		size_t count = plain_length(left);

		if (count) {
			sink_bytes(sink, left.at, count);
		} else {
			char escape[TERMINAL_ESCAPE_SIZE];

			count = terminal_escape(left, escape);
			if (escape[0])
				sink_text(sink, escape);
			else
				sink_bytes(sink, left.at, count);
		}
		left = bytes_from(left, count);
	}
}
