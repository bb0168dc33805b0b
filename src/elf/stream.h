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

/* `in` must outlive the stream. `mapped`: it lies in a file mapped by base/file, whose pages are
 * given back as they are used up. NULL: no memory (ERR_LIMIT). */
struct stream *stream_open(enum stream_format format, struct bytes in, bool mapped,
			   uint64_t size, struct err *e);

/* The next `len` bytes. The read that reaches the stated size makes sure that this was all, and
 * that the checksum is right. False for damage. */
bool stream_read(struct stream *stream, uint8_t *to, uint64_t len, struct err *e);

void stream_close(struct stream *stream);

#endif
