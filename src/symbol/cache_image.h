/*
 * symbol/cache_image: answers of a symbolizer as the bytes of a file, for exact addresses.
 *
 * All numbers little-endian, no padding:
 *
 *   head       CACHE_HEAD_SIZE bytes
 *     0   magic "stackerC"
 *     8   u64 checksum: CRC-64 (ECMA-182) of everything behind it
 *     16  u32 version of this format
 *     20  u32 flags: CACHE_INFORMED
 *     24  u32 sizes: key, addresses, frames, strings (bytes, count, count, bytes)
 *   key        whom the answers are about and who gave them: see symbol/cache
 *   addresses  {u64 ea; u32 first, count of its frames}: ascending, no two alike; the frames of
 *              one follow those of the one before
 *   frames     {u64 function_ea; u32 function, file, line, column, flags}
 *   strings    each with a NUL, the last byte is one; what begins at CACHE_NO_STRING stands for NULL
 *
 * The file may be damaged or made to hurt: cache_image_read takes it only whole, with its checksum, with
 * every number inside its bounds; there is nothing to check later.
 */
#ifndef STACKER_SYMBOL_CACHE_IMAGE_H
#define STACKER_SYMBOL_CACHE_IMAGE_H

#include "symbol/symbol.h"

#define CACHE_VERSION 1
#define CACHE_HEAD_SIZE 40
#define CACHE_CHECKSUM_OFF 8
#define CACHE_ADDRESS_SIZE 16
#define CACHE_FRAME_SIZE 28
#define CACHE_NO_STRING 0

enum cache_flag {
	CACHE_INFORMED = 1, /* the module had debug information of some kind */
};

enum cache_frame_flag {
	CACHE_FRAME_INLINED = 1,
	CACHE_FRAME_HAS_EA = 2,
};

/* Parts of the file's bytes, checked. */
struct cache_image {
	struct bytes addresses, frames, strings;
	size_t count; /* of addresses */
	bool informed;
};

/* False when the bytes are not such a file, or another key's. The bytes must outlive `out` and its answers,
 * and not change. O(size). */
bool cache_image_read(struct cache_image *out, struct bytes file, struct bytes key);

/* The answer for out->ea, its frames in the arena; false: it is not there. O(log n). */
bool cache_image_find(const struct cache_image *image, struct arena *arena,
		      struct symbol_answer *out);
/* The address number `i`, and its answer. */
void cache_image_at(const struct cache_image *image, size_t i, struct arena *arena,
		    struct symbol_answer *out);

/* The bytes of a file: `answers` ascending by ea, no two alike. Empty when that would be more than
 * `limit`. */
struct cache_contents {
	const struct symbol_answer *answers;
	size_t count;
	bool informed;
};
struct bytes cache_image_make(struct arena *arena, const struct cache_contents *contents,
			      struct bytes key, size_t limit);

/* Writes the checksum that the bytes must have; those of at least CACHE_HEAD_SIZE. */
void cache_image_seal(uint8_t *file, size_t len);

#endif
