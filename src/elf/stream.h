/*
 * elf/stream: compressed contents, read from front to back; they need not be in memory whole.
 *
 * Formats: zlib (RFC 1950, by ISA-L's igzip) and zstd (RFC 8878). Several streams one behind the
 * other are one: `ld -r` and others put compressed sections of the same name one behind the other.
 * The contents must be exactly as long as stated; whether the stated size can be believed is
 * elf/compress's question. A stream belongs to one thread at a time.
 */
#ifndef STACKER_ELF_STREAM_H
#define STACKER_ELF_STREAM_H

#include "base/bytes.h"

enum stream_format { STREAM_ZLIB, STREAM_ZSTD };

struct stream;

/* A place in the middle where reading can begin, if the STREAM_WINDOW bytes of contents before it are
 * known. Only zlib streams have such places: between two deflate blocks; zstd frames have none. */
struct stream_point {
	uint64_t off; /* in the contents */
	uint64_t bit; /* in the input, from its beginning; the lowest of a byte comes first */
	uint32_t checksum; /* stream_checksum there */
};
#define STREAM_WINDOW ((size_t)32 << 10)

/* `in` must outlive the stream. `mapped`: it lies in a file mapped by base/file, whose pages are
 * given back as they are used up. NULL: no memory (ERR_LIMIT). */
struct stream *stream_open(enum stream_format format, struct bytes in, bool mapped,
			   uint64_t size, struct err *e);

/* The next `len` bytes. The read that reaches the stated size makes sure that this was all, and
 * that the checksum is right. False for damage. */
bool stream_read(struct stream *stream, uint8_t *to, uint64_t len, struct err *e);

void stream_close(struct stream *stream);

/* The same from a point on. A point that is not true, or another window, gives other contents or damage:
 * stream_checksum tells. */
struct stream *stream_open_at(struct bytes in, bool mapped, uint64_t size,
			      const struct stream_point *point, const uint8_t *window,
			      struct err *e);

/* What was read so far as a number; 0 where none is made (zstd). Of a zlib stream its Adler-32 (RFC 1950)
 * minus one: read from a point on, it is the same as read from the beginning. */
uint32_t stream_checksum(const struct stream *stream);

/* Asks for a point: the first that comes, soon or later or never. Costs nothing by itself. */
void stream_mark(struct stream *stream);
/* True once when a point has come: `window` is valid until the next read. */
bool stream_marked(struct stream *stream, struct stream_point *out, const uint8_t **window);

#endif
