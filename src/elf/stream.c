/*
 * Both libraries are used alike: they are shown what is left of the input and some room, and move
 * both on. When they want more of either, they say so by not moving. Damage shows at the latest
 * where the contents should end: there must be no more, and no less.
 */
#include "elf/stream.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <zstd.h>

/* igzip counts in 32 bits. */
#define STEP_MAX (UINT64_C(1) << 30)
/* Used input goes back to the kernel in pieces of this size: larger than any page. */
#define RELEASE_STEP ((uintptr_t)1 << 20)

struct stream {
	enum stream_format format;
	struct bytes in; /* what is not used yet */
	bool mapped;
	uintptr_t released;  /* pages below are given back */
	uint64_t size, left; /* stated; not read yet */
	union {
		struct inflate_state inflate;
		ZSTD_DStream *zstd;
	};
	bool between; /* two zlib streams, or zstd frames: the end may be here */
};

struct stream *stream_open(enum stream_format format, struct bytes in, bool mapped,
			   uint64_t size, struct err *e)
{
	struct stream *s = calloc(1, sizeof *s);

	if (s && format == STREAM_ZSTD)
		s->zstd = ZSTD_createDStream();
	if (!s || (format == STREAM_ZSTD && !s->zstd)) {
		free(s);
		err_set(e, ERR_LIMIT, "no memory to decompress");
		return NULL;
	}
	s->format = format;
	s->in = in;
	s->mapped = mapped;
	s->size = s->left = size;
	s->between = true;
	s->released = ((uintptr_t)in.at + RELEASE_STEP - 1) & ~(RELEASE_STEP - 1);
	return s;
}

void stream_close(struct stream *stream)
{
	if (stream && stream->format == STREAM_ZSTD)
		ZSTD_freeDStream(stream->zstd);
	free(stream);
}

static void input_release(struct stream *s)
{
	uintptr_t used = (uintptr_t)s->in.at & ~(RELEASE_STEP - 1);

	if (!s->mapped || used <= s->released)
		return;
	madvise((void *)s->released, used - s->released, MADV_DONTNEED);
	s->released = used;
}

/* The place stays one when nothing is left: inflate_step may have to go back from it. */
static void input_use(struct stream *s, size_t used)
{
	s->in = (struct bytes){s->in.at + used, s->in.len - used};
}

/* One call of the library each: moves s->in on and says how many bytes it gave. */
static bool inflate_step(struct stream *s, uint8_t *to, size_t room, size_t *given,
			 struct err *e)
{
	struct inflate_state *state = &s->inflate;
	uint32_t in = (uint32_t)(s->in.len < STEP_MAX ? s->in.len : STEP_MAX);
	int result;

	if (s->between) {
		isal_inflate_init(state);
		state->crc_flag = ISAL_ZLIB;
	}
	state->next_in = (uint8_t *)(uintptr_t)s->in.at;
	state->avail_in = in;
	state->next_out = to;
	state->avail_out = (uint32_t)room;
	result = isal_inflate(state);
	*given = room - state->avail_out;
	input_use(s, in - state->avail_in);
	if (result != ISAL_DECOMP_OK)
		return err_set(e, ERR_FORMAT, "damaged zlib data");
	s->between = state->block_state == ISAL_BLOCK_FINISH;
	/* It reads ahead: what it did not need belongs to the next stream. */
	if (s->between) {
		size_t ahead = (size_t)state->read_in_length / 8;

		s->in = (struct bytes){state->next_in - ahead, s->in.len + ahead};
	}
	return true;
}

static bool zstd_step(struct stream *s, uint8_t *to, size_t room, size_t *given, struct err *e)
{
	ZSTD_inBuffer in = {s->in.at, s->in.len, 0};
	ZSTD_outBuffer out = {to, room, 0};
	size_t result = ZSTD_decompressStream(s->zstd, &out, &in);

	*given = out.pos;
	input_use(s, in.pos);
	if (ZSTD_isError(result))
		return err_set(e, ERR_FORMAT, "damaged zstd data: %s",
			       ZSTD_getErrorName(result));
	s->between = result == 0;
	return true;
}

/* `moved`: there was anything to do. */
static bool stream_step(struct stream *s, uint8_t *to, uint64_t len, size_t *given, bool *moved,
			struct err *e)
{
	size_t room = (size_t)(len < STEP_MAX ? len : STEP_MAX), left = s->in.len;
	bool good;

	*moved = false;
	*given = 0;
	if (s->between && !left)
		return true;
	good = s->format == STREAM_ZLIB ? inflate_step(s, to, room, given, e)
					: zstd_step(s, to, room, given, e);
	*moved = *given || s->in.len != left || s->between;
	input_release(s);
	return good;
}

static const char *format_name(const struct stream *s)
{
	return s->format == STREAM_ZLIB ? "zlib" : "zstd";
}

/* What gives nothing may still stand behind the contents: an empty stream, a skippable frame, the
 * checksum. */
static bool end_check(struct stream *s, struct err *e)
{
	uint8_t more;
	size_t given;
	bool moved;

	do {
		if (!stream_step(s, &more, 1, &given, &moved, e))
			return false;
		if (given)
			return err_set(e, ERR_FORMAT,
				       "%s data gives more than the stated %llu bytes",
				       format_name(s), (unsigned long long)s->size);
	} while (moved);
	return s->between || err_set(e, ERR_FORMAT, "%s data is cut short", format_name(s));
}

bool stream_read(struct stream *s, uint8_t *to, uint64_t len, struct err *e)
{
	bool moved = true;
	size_t given;

	while (len && moved) {
		if (!stream_step(s, to, len, &given, &moved, e))
			return false;
		to += given;
		len -= given;
		s->left -= given;
	}
	if (len)
		return err_set(e, ERR_FORMAT, "%s data gives %llu of the stated %llu bytes",
			       format_name(s), (unsigned long long)(s->size - s->left),
			       (unsigned long long)s->size);
	return s->left || end_check(s, e);
}
