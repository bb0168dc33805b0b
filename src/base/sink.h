/*
 * base/sink: a small buffer before a stream, for output of many short pieces.
 *
 * stdio locks and looks at every call; a report of 10,000 threads is made of millions of pieces.
 * Write errors stay the stream's (ferror): who owns it checks once, at the end.
 */
#ifndef STACKER_BASE_SINK_H
#define STACKER_BASE_SINK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SINK_SIZE 16384

struct sink {
	FILE *stream;
	size_t used;
	char buffer[SINK_SIZE];
};

/* `sink` need not be cleared before. sink_flush hands everything to the stream. */
void sink_init(struct sink *sink, FILE *stream);
void sink_flush(struct sink *sink);

void sink_bytes_long(struct sink *sink, const void *at, size_t len);

static inline void sink_bytes(struct sink *sink, const void *at, size_t len)
{
	if (len <= SINK_SIZE - sink->used) {
		memcpy(sink->buffer + sink->used, at, len);
		sink->used += len;
	} else {
		sink_bytes_long(sink, at, len);
	}
}

static inline void sink_text(struct sink *sink, const char *text)
{
	sink_bytes(sink, text, strlen(text));
}

static inline void sink_char(struct sink *sink, char c)
{
	sink_bytes(sink, &c, 1);
}

/* Hex digits without "0x", at least `width`; decimal digits. */
void sink_hex(struct sink *sink, uint64_t value, size_t width);
void sink_decimal(struct sink *sink, uint64_t value);
void sink_spaces(struct sink *sink, size_t count);

/* Somebody else's string, harmless for a terminal (base/text: terminal_escape). */
void sink_foreign(struct sink *sink, const char *text);
void sink_foreign_part(struct sink *sink, const char *text, size_t length);

#endif
