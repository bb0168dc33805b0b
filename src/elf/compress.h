/*
 * elf/compress: contents that are stored compressed.
 *
 * SHF_COMPRESSED with an Elf64_Chdr (ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD), .zdebug_* ("ZLIB", 8
 * bytes big-endian size, zlib stream), and the xz stream of .gnu_debugdata. The stated size is
 * hostile input: it must be at most DECOMPRESS_RATIO_MAX times the input and at most
 * DECOMPRESS_SIZE_MAX, and fit what the run may still hold (base/budget); a section that does not is refused
 * (ERR_LIMIT) as a damaged one is. Output memory comes from the arena and, when the data turns
 * out bad, goes back to it. Not for two threads at once.
 */
#ifndef STACKER_ELF_COMPRESS_H
#define STACKER_ELF_COMPRESS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "elf/stream.h"

/* deflate cannot do better than 1032:1; zstd can, on runs, but debug sections reach about 20. */
#define DECOMPRESS_RATIO_MAX 1100
#define DECOMPRESS_SIZE_MAX (UINT64_C(16) << 30)

/* Contents that are stored compressed, of a size that was checked. */
struct packed {
	enum stream_format format;
	bool mapped; /* see stream_open; false until the caller sets it */
	struct bytes in;
	uint64_t size;
};

/* SHF_COMPRESSED contents, header included. */
bool packed_section(struct bytes in, struct packed *out, struct err *e);
/* .zdebug_ contents, header included. */
bool packed_zdebug(struct bytes in, struct packed *out, struct err *e);

bool packed_load(struct arena *arena, const struct packed *packed, struct bytes *out,
		 struct err *e);

/* For contents of which not all is needed: room for all of them, zeros that cost nothing until
 * they are written to (who does draws on the budget for it; NULL: there is no such room), and
 * the stream to fill it from (NULL: ERR_LIMIT). What is read of it is work, needed or not. */
uint8_t *packed_room(struct arena *arena, const struct packed *packed);
void packed_room_drop(struct arena *arena, const struct packed *packed, const uint8_t *room);
/* So much of the room is about to be written to: its pages are made in one call, which takes less
 * than making each when it is touched. */
void packed_room_expect(uint8_t *at, uint64_t len);
bool packed_work(uint64_t bytes, struct err *e);
struct stream *packed_stream(const struct packed *packed, struct err *e);

/* .gnu_debugdata. The size is not stored where it could be trusted: grows as needed. */
bool decompress_xz(struct arena *arena, struct bytes in, struct bytes *out, struct err *e);

#endif
