/*
 * All three formats say how large their contents become, or can be made to expand without end;
 * neither is believed. A stated size is checked against the two limits before memory is taken,
 * and the data must then give exactly that many bytes, from exactly the bytes that are there
 * (elf/stream): less, more, or something behind the end is damage, and damaged debugging
 * information is worse than none.
 *
 * One bad section must not end the run: memory for contents is asked for, not demanded, it is
 * given back when the data was bad, and all contents that are there at one time draw on the
 * budget of the run.
 */
#include "elf/compress.h"

#include <elf.h>
#include <lzma.h>
#include <string.h>
#include <sys/mman.h>

#include "base/budget.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14; musl does not know it yet */
#define MADV_POPULATE_WRITE 23
#endif

#ifndef ELFCOMPRESS_ZSTD /* younger than glibc 2.36 */
#define ELFCOMPRESS_ZSTD 2
#endif

/* The largest page of both architectures. */
#define PAGE_MAX ((uintptr_t)64 << 10)
/* What is expected and then does not come must not take memory. */
#define EXPECT_MAX ((uint64_t)4 << 20)

/* What an xz stream may make its decoder use: `xz -9` needs 65 MiB, .gnu_debugdata 9 MiB. */
#define XZ_MEMORY_MAX (UINT64_C(128) << 20)
#define XZ_FIRST_SIZE ((size_t)256 << 10)

#define CHDR_SIZE 24   /* Elf64_Chdr: type, reserved, size, alignment */
#define ZDEBUG_SIZE 12 /* "ZLIB" and a big-endian size */

/* ---- Memory ---- */

static uint8_t *room_take(struct arena *arena, uint64_t size, struct err *e)
{
	uint8_t *room;

	if (!budget_take(size)) {
		err_set(e, ERR_LIMIT, "needs %llu bytes; %llu more may be held (--max-memory)",
			(unsigned long long)size, (unsigned long long)budget_left());
		return NULL;
	}
	room = arena_try(arena, size, 1);
	if (!room) {
		budget_give_back(size);
		err_set(e, ERR_LIMIT, "no memory for %llu bytes", (unsigned long long)size);
	}
	return room;
}

static void room_give_back(struct arena *arena, const uint8_t *room, uint64_t size)
{
	if (arena_drop(arena, room, size))
		budget_give_back(size);
}

/* ---- The formats ---- */

/* The most that `in` may become. */
static uint64_t size_limit(struct bytes in)
{
	uint64_t by_ratio;

	if (__builtin_mul_overflow((uint64_t)in.len, DECOMPRESS_RATIO_MAX, &by_ratio))
		return DECOMPRESS_SIZE_MAX;
	return by_ratio < DECOMPRESS_SIZE_MAX ? by_ratio : DECOMPRESS_SIZE_MAX;
}

static bool size_check(struct bytes in, uint64_t size, struct err *e)
{
	if (size <= size_limit(in))
		return true;
	budget_refuse();
	return err_set(e, ERR_LIMIT, "states %llu bytes from %zu compressed ones",
		       (unsigned long long)size, in.len);
}

/* Reads the header of the section's contents; what follows it is the stream. */
static bool section_header(struct bytes in, struct packed *out, struct err *e)
{
	struct reader r = reader_over(in);
	uint32_t type = read_u32(&r);

	read_u32(&r); /* ch_reserved */
	out->size = read_u64(&r);
	read_u64(&r); /* ch_addralign */
	if (!reader_ok(&r, "compression header", e))
		return false;
	if (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD)
		return err_set(e, ERR_UNSUPPORTED, "compression type %u", type);
	out->format = type == ELFCOMPRESS_ZLIB ? STREAM_ZLIB : STREAM_ZSTD;
	out->in = bytes_from(in, CHDR_SIZE);
	return true;
}

static bool zdebug_header(struct bytes in, struct packed *out, struct err *e)
{
	struct reader r = reader_over(in);
	struct bytes magic = read_block(&r, 4);

	out->size = __builtin_bswap64(read_u64(&r));
	if (!reader_ok(&r, "compression header", e))
		return false;
	if (magic.len != 4 || memcmp(magic.at, "ZLIB", 4) != 0)
		return err_set(e, ERR_FORMAT, "compression header without \"ZLIB\"");
	out->format = STREAM_ZLIB;
	out->in = bytes_from(in, ZDEBUG_SIZE);
	return true;
}

bool packed_section(struct bytes in, struct packed *out, struct err *e)
{
	*out = (struct packed){0};
	return section_header(in, out, e) && size_check(out->in, out->size, e);
}

bool packed_zdebug(struct bytes in, struct packed *out, struct err *e)
{
	*out = (struct packed){0};
	return zdebug_header(in, out, e) && size_check(out->in, out->size, e);
}

struct stream *packed_stream(const struct packed *packed, struct err *e)
{
	return stream_open(packed->format, packed->in, packed->mapped, packed->size, e);
}

uint8_t *packed_room(struct arena *arena, const struct packed *packed)
{
	return arena_try(arena, packed->size, 1);
}

bool packed_work(uint64_t bytes, struct err *e)
{
	return budget_work(bytes) ||
	       err_set(e, ERR_LIMIT, "needs unreasonable work (--max-memory)");
}

void packed_room_drop(struct arena *arena, const struct packed *packed, const uint8_t *room)
{
	room_give_back(arena, room, packed->size);
}

void packed_room_expect(uint8_t *at, uint64_t len)
{
	uintptr_t begin = ((uintptr_t)at + PAGE_MAX - 1) & ~(PAGE_MAX - 1);
	uintptr_t end =
		((uintptr_t)at + (len < EXPECT_MAX ? len : EXPECT_MAX)) & ~(PAGE_MAX - 1);

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

bool packed_load(struct arena *arena, const struct packed *packed, struct bytes *out,
		 struct err *e)
{
	uint8_t *to = room_take(arena, packed->size, e);
	struct stream *stream =
		to && packed_work(packed->size, e) ? packed_stream(packed, e) : NULL;
	bool good = stream && stream_read(stream, to, packed->size, e);

	stream_close(stream);
	*out = (struct bytes){NULL, 0};
	if (good && packed->size)
		*out = (struct bytes){to, packed->size};
	else if (to)
		room_give_back(arena, to, packed->size);
	return good;
}

static bool xz_problem(lzma_ret result, struct err *e)
{
	switch (result) {
	case LZMA_MEM_ERROR:
		return err_set(e, ERR_LIMIT, "no memory to decompress");
	case LZMA_MEMLIMIT_ERROR:
		return err_set(e, ERR_LIMIT, "xz data needs more than %llu MiB to decompress",
			       (unsigned long long)(XZ_MEMORY_MAX >> 20));
	case LZMA_FORMAT_ERROR:
		return err_set(e, ERR_FORMAT, "not xz data");
	case LZMA_OPTIONS_ERROR:
		return err_set(e, ERR_UNSUPPORTED, "xz data uses a filter that is not read");
	case LZMA_BUF_ERROR:
		return err_set(e, ERR_FORMAT, "xz data is cut short");
	default:
		return err_set(e, ERR_FORMAT, "damaged xz data");
	}
}

/* Makes room for as much again; false at a limit. */
static bool xz_grow(struct arena *arena, lzma_stream *stream, struct bytes *space,
		    uint64_t limit, struct err *e)
{
	size_t size = space->len ? space->len * 2 : XZ_FIRST_SIZE;
	uint8_t *grown;

	if (space->len >= limit)
		return err_set(e, ERR_LIMIT, "xz data gives more than %llu bytes",
			       (unsigned long long)limit);
	if (size > limit)
		size = limit;
	grown = packed_work(size, e) ? room_take(arena, size, e) : NULL;
	if (!grown)
		return false;
	if (space->len) {
		memcpy(grown, space->at, space->len);
		room_give_back(arena, space->at, space->len);
	}
	stream->next_out = grown + space->len;
	stream->avail_out = size - space->len;
	*space = (struct bytes){grown, size};
	return true;
}

static bool xz_run(struct arena *arena, lzma_stream *stream, uint64_t limit,
		   struct bytes *space, struct err *e)
{
	lzma_ret result = LZMA_OK;

	while (result == LZMA_OK) {
		if (stream->avail_out == 0 && !xz_grow(arena, stream, space, limit, e))
			return false;
		result = lzma_code(stream, LZMA_FINISH);
	}
	return result == LZMA_STREAM_END || xz_problem(result, e);
}

bool decompress_xz(struct arena *arena, struct bytes in, struct bytes *out, struct err *e)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	struct bytes space = {NULL, 0};
	lzma_ret result;
	bool good;

	*out = (struct bytes){NULL, 0};
	/* CONCATENATED: several streams are one file, and what is neither stream nor padding is
	 * damage. */
	result = lzma_stream_decoder(&stream, XZ_MEMORY_MAX, LZMA_CONCATENATED);
	if (result != LZMA_OK)
		return xz_problem(result, e);
	stream.next_in = in.at;
	stream.avail_in = in.len;
	good = xz_run(arena, &stream, size_limit(in), &space, e);
	if (good)
		*out = bytes_part(space, 0, stream.total_out);
	else if (space.len)
		room_give_back(arena, space.at, space.len);
	lzma_end(&stream);
	return good;
}
