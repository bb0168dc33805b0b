/*
 * Both libraries are used alike: they are shown what is left of the input and some room, and move
 * both on. When they want more of either, they say so by not moving. Damage shows at the latest
 * where the contents should end: there must be no more, and no less.
 *
 * Points (stream_mark). igzip says where a stream ends, not where a block does. So it is told, in the
 * middle of a block, that this one is the last (the bit is read with the block's header and only
 * looked at at its end): it stops behind it, to the bit, and goes on as if nothing had been.
 */
#include "elf/stream.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

/* igzip counts in 32 bits. */
#define STEP_MAX (UINT64_C(1) << 30)
/* Used input goes back to the kernel in pieces of this size: larger than any page. */
#define RELEASE_STEP ((uintptr_t)1 << 20)

/* RFC 1950: method and flags; Adler-32 behind the data. */
#define ZLIB_HEADER_SIZE 2
#define ZLIB_TRAILER_SIZE 4
#define ZLIB_METHOD 8     /* deflate, in the low half of the first byte */
#define ZLIB_WINDOW_MAX 7 /* in the high half */
#define ZLIB_DICTIONARY 0x20
#define ADLER_MODULUS 65521

enum mark { UNMARKED, WANTED, ENDING, REACHED };

/* Of a stream that points are wanted of. */
struct marking {
	enum mark mark;
	struct stream_point point;
	uint64_t seen;                 /* contents since it was WANTED */
	uint8_t window[STREAM_WINDOW]; /* the last of them */
};

struct stream {
	enum stream_format format;
	const uint8_t *begin;
	struct bytes in; /* what is not used yet */
	bool mapped;
	uintptr_t released;  /* pages below are given back */
	uint64_t size, left; /* stated; not read yet */
	union {
		struct inflate_state inflate;
		ZSTD_DStream *zstd;
	};
	bool between;            /* two zlib streams, or zstd frames: the end may be here */
	bool turned;             /* the last step came to a point */
	unsigned streams;        /* begun so far */
	struct marking *marking; /* NULL: no points are wanted */
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
	s->begin = in.at;
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
	if (stream)
		free(stream->marking);
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

/* ---- zlib ---- */

static void zlib_state_init(struct stream *s)
{
	isal_inflate_init(&s->inflate);
	s->inflate.crc_flag =
		ISAL_ZLIB_NO_HDR; /* makes the checksum and compares it with nothing */
	s->between = false;
	s->streams++;
}

static bool zlib_begin(struct stream *s, struct err *e)
{
	const uint8_t *header = s->in.at;

	zlib_state_init(s);
	if (s->in.len < ZLIB_HEADER_SIZE) {
		input_use(s, s->in.len);
		return true;
	}
	if ((header[0] & 15) != ZLIB_METHOD || header[0] >> 4 > ZLIB_WINDOW_MAX ||
	    (header[1] & ZLIB_DICTIONARY) || (header[0] << 8 | header[1]) % 31 != 0)
		return err_set(e, ERR_FORMAT, "damaged zlib data");
	input_use(s, ZLIB_HEADER_SIZE);
	return true;
}

/* Where the data ends. Without the whole trailer there is no end. */
static bool zlib_end(struct stream *s, struct err *e)
{
	const uint8_t *at = s->in.at;

	if (s->in.len < ZLIB_TRAILER_SIZE) {
		input_use(s, s->in.len);
		return true;
	}
	if (((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]) !=
	    s->inflate.crc)
		return err_set(e, ERR_FORMAT, "damaged zlib data");
	input_use(s, ZLIB_TRAILER_SIZE);
	s->between = true;
	return true;
}

/* igzip keeps the sum without the 1 that it begins with, and adds that at the end. */
static uint32_t adler_unfinished(uint32_t adler)
{
	return (adler & 0xffff0000) | ((adler & 0xffff) + ADLER_MODULUS - 1) % ADLER_MODULUS;
}

/* The last bytes of what was given so far. */
static void window_move(uint8_t *window, const uint8_t *given, size_t len)
{
	size_t kept = len < STREAM_WINDOW ? STREAM_WINDOW - len : 0;

	memmove(window, window + STREAM_WINDOW - kept, kept);
	memcpy(window + kept, given + len - (STREAM_WINDOW - kept), STREAM_WINDOW - kept);
}

/* Inside of a block that is not the last, once the window is known. */
static void mark_begin(struct stream *s)
{
	struct inflate_state *state = &s->inflate;

	if (s->marking->mark != WANTED || state->bfinal || s->marking->seen < STREAM_WINDOW ||
	    s->streams != 1 ||
	    (state->block_state != ISAL_BLOCK_CODED && state->block_state != ISAL_BLOCK_TYPE0))
		return;
	state->bfinal = 1;
	s->marking->mark = ENDING;
}

static void mark_see(struct marking *m, const uint8_t *given, size_t len)
{
	if (m->mark != WANTED && m->mark != ENDING)
		return;
	window_move(m->window, given, len);
	m->seen += len;
}

/* The block has ended, and all of it was given; `in` is what is left of the input. */
static void mark_reach(struct stream *s, uint64_t off)
{
	struct inflate_state *state = &s->inflate;
	struct marking *m = s->marking;
	uint64_t used = (uint64_t)(state->next_in - s->begin);

	state->crc = adler_unfinished(state->crc);
	m->point = (struct stream_point){off, used * 8 - (uint64_t)state->read_in_length,
					 state->crc};
	m->mark = REACHED;
	s->turned = true;
	state->bfinal = 0;
	state->block_state = ISAL_BLOCK_NEW_HDR;
	isal_inflate_set_dict(state, m->window, STREAM_WINDOW);
}

static bool inflate_end(struct stream *s, size_t given, struct err *e)
{
	size_t ahead = (size_t)s->inflate.read_in_length / 8;

	if (s->marking && s->marking->mark == ENDING) {
		mark_reach(s, s->size - s->left + given);
		return true;
	}
	/* It reads ahead: what it did not need belongs to the next stream. */
	s->in = (struct bytes){s->inflate.next_in - ahead, s->in.len + ahead};
	s->inflate.read_in_length = 0;
	return zlib_end(s, e);
}

/* One call of the library each: moves s->in on and says how many bytes it gave. */
static bool inflate_step(struct stream *s, uint8_t *to, size_t room, size_t *given,
			 struct err *e)
{
	struct inflate_state *state = &s->inflate;
	uint32_t in;
	int result;

	if (s->between && !zlib_begin(s, e))
		return false;
	if (s->marking)
		mark_begin(s);
	in = (uint32_t)(s->in.len < STEP_MAX ? s->in.len : STEP_MAX);
	state->next_in = (uint8_t *)(uintptr_t)s->in.at;
	state->avail_in = in;
	state->next_out = to;
	state->avail_out = (uint32_t)room;
	result = isal_inflate(state);
	*given = room - state->avail_out;
	input_use(s, in - state->avail_in);
	if (s->marking)
		mark_see(s->marking, to, *given);
	if (result != ISAL_DECOMP_OK)
		return err_set(e, ERR_FORMAT, "damaged zlib data");
	return state->block_state != ISAL_BLOCK_FINISH || inflate_end(s, *given, e);
}

/* ---- Points ---- */

struct stream *stream_open_at(struct bytes in, bool mapped, uint64_t size,
			      const struct stream_point *point, const uint8_t *window,
			      struct err *e)
{
	struct stream *s = stream_open(STREAM_ZLIB, in, mapped, size, e);
	unsigned used = point->bit % 8;

	if (!s)
		return NULL;
	zlib_state_init(s);
	s->left = point->off < size ? size - point->off : 0;
	input_use(s, point->bit / 8 < in.len ? (size_t)(point->bit / 8) : in.len);
	s->released = ((uintptr_t)s->in.at + RELEASE_STEP - 1) & ~(RELEASE_STEP - 1);
	if (used && s->in.len) {
		s->inflate.read_in = s->in.at[0] >> used;
		s->inflate.read_in_length = (int32_t)(8 - used);
		input_use(s, 1);
	}
	isal_inflate_set_dict(&s->inflate, (uint8_t *)(uintptr_t)window, STREAM_WINDOW);
	s->inflate.crc = point->checksum;
	return s;
}

uint32_t stream_checksum(const struct stream *s)
{
	if (s->format != STREAM_ZLIB || s->streams != 1)
		return 0;
	if (s->inflate.block_state == ISAL_BLOCK_FINISH)
		return adler_unfinished(s->inflate.crc);
	return s->inflate.crc;
}

void stream_mark(struct stream *s)
{
	if (s->format != STREAM_ZLIB)
		return;
	if (!s->marking)
		s->marking = calloc(1, sizeof *s->marking);
	if (s->marking && (s->marking->mark == UNMARKED || s->marking->mark == REACHED))
		*s->marking = (struct marking){.mark = WANTED};
}

bool stream_marked(struct stream *s, struct stream_point *out, const uint8_t **window)
{
	if (!s->marking || s->marking->mark != REACHED)
		return false;
	s->marking->mark = UNMARKED;
	*out = s->marking->point;
	*window = s->marking->window;
	return true;
}

/* ---- All formats ---- */

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
	s->turned = false;
	if (s->between && !left)
		return true;
	good = s->format == STREAM_ZLIB ? inflate_step(s, to, room, given, e)
					: zstd_step(s, to, room, given, e);
	*moved = *given || s->in.len != left || s->between || s->turned;
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
