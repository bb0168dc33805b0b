#include "symbol/cache_image.h"

#include <lzma.h>
#include <string.h>

#include "base/search.h"

static const char magic[8] = "stackerC"; /* without a NUL */

#define CHECKED_OFF (CACHE_CHECKSUM_OFF + sizeof(uint64_t))

static uint64_t checksum_of(const uint8_t *file, size_t len)
{
	return lzma_crc64(file + CHECKED_OFF, len - CHECKED_OFF, 0);
}

/* ---- Reading ---- */

struct head {
	uint32_t version, flags, key, addresses, frames, strings;
};

static bool head_read(struct reader *r, struct bytes file, struct head *head)
{
	struct bytes begin = read_block(r, sizeof magic);
	uint64_t checksum = read_u64(r);

	head->version = read_u32(r);
	head->flags = read_u32(r);
	head->key = read_u32(r);
	head->addresses = read_u32(r);
	head->frames = read_u32(r);
	head->strings = read_u32(r);
	return !reader_failed(r) && memcmp(begin.at, magic, sizeof magic) == 0 &&
	       head->version == CACHE_VERSION && checksum == checksum_of(file.at, file.len);
}

/* Ascending, and every frame belongs to one of them: else a small file could stand for answers without
 * end. */
static bool addresses_are_good(const struct cache_image *image, uint64_t frame_count)
{
	struct reader r = reader_over(image->addresses);
	uint64_t before = 0, next = 0;

	for (size_t i = 0; i < image->count; i++) {
		uint64_t ea = read_u64(&r);
		uint32_t first = read_u32(&r), count = read_u32(&r);

		if ((i && ea <= before) || first != next || count > frame_count - next)
			return false;
		before = ea;
		next += count;
	}
	return next == frame_count;
}

static bool frames_are_good(const struct cache_image *image)
{
	struct reader r = reader_over(image->frames);

	while (reader_more(&r)) {
		uint32_t function, file;

		read_u64(&r);
		function = read_u32(&r);
		file = read_u32(&r);
		reader_skip(&r, 3 * sizeof(uint32_t));
		if (function >= image->strings.len || file >= image->strings.len)
			return false;
	}
	return !reader_failed(&r);
}

bool cache_image_read(struct cache_image *out, struct bytes file, struct bytes key)
{
	struct reader r = reader_over(file);
	struct head head;

	if (file.len < CACHE_HEAD_SIZE || !head_read(&r, file, &head) ||
	    !bytes_equal(read_block(&r, head.key), key))
		return false;
	out->count = head.addresses;
	out->informed = head.flags & CACHE_INFORMED;
	out->addresses = read_block(&r, (uint64_t)head.addresses * CACHE_ADDRESS_SIZE);
	out->frames = read_block(&r, (uint64_t)head.frames * CACHE_FRAME_SIZE);
	out->strings = read_block(&r, head.strings);
	return !reader_failed(&r) && !reader_more(&r) && out->strings.len &&
	       out->strings.at[0] == '\0' && out->strings.at[out->strings.len - 1] == '\0' &&
	       addresses_are_good(out, head.frames) && frames_are_good(out);
}

static const char *string_read(const struct cache_image *image, struct reader *r)
{
	uint32_t place = read_u32(r);

	return place == CACHE_NO_STRING ? NULL : strings_at(image->strings, place);
}

static struct symbol_frame frame_read(const struct cache_image *image, struct reader *r)
{
	struct symbol_frame frame = {.function_ea = read_u64(r)};
	uint32_t flags;

	frame.function = string_read(image, r);
	frame.file = string_read(image, r);
	frame.line = read_u32(r);
	frame.column = read_u32(r);
	flags = read_u32(r);
	frame.inlined = flags & CACHE_FRAME_INLINED;
	frame.has_function_ea = flags & CACHE_FRAME_HAS_EA;
	return frame;
}

static uint64_t ea_at(const struct cache_image *image, size_t i)
{
	struct reader r = reader_at(image->addresses, (uint64_t)i * CACHE_ADDRESS_SIZE);

	return read_u64(&r);
}

void cache_image_at(const struct cache_image *image, size_t i, struct arena *arena,
		    struct symbol_answer *out)
{
	struct reader r = reader_at(image->addresses, (uint64_t)i * CACHE_ADDRESS_SIZE);
	uint64_t first;

	out->ea = read_u64(&r);
	first = read_u32(&r);
	out->frame_count = read_u32(&r);
	out->frames = out->frame_count
			      ? arena_array(arena, struct symbol_frame, out->frame_count)
			      : NULL;
	r = reader_at(image->frames, first * CACHE_FRAME_SIZE);
	for (size_t f = 0; f < out->frame_count; f++)
		out->frames[f] = frame_read(image, &r);
}

bool cache_image_find(const struct cache_image *image, struct arena *arena,
		      struct symbol_answer *out)
{
	size_t i = FIRST_INDEX(image->count, k, ea_at(image, k) >= out->ea);

	if (i == image->count || ea_at(image, i) != out->ea)
		return false;
	cache_image_at(image, i, arena, out);
	return true;
}

/* ---- Writing ---- */

/* How often a string may occur, on the average, before it is too much to look at all of them. */
#define REPEATED 32

/* Every string once, by a hash table of places in the block. */
struct writer {
	uint8_t *at, *end;
	char *strings;
	uint32_t strings_len;
	uint32_t *slots; /* CACHE_NO_STRING: free */
	size_t slot_count;
};

static void put(struct writer *w, const void *value, size_t size)
{
	memcpy(w->at, value, size);
	w->at += size;
}

static void put_u32(struct writer *w, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	put(w, &narrow, sizeof narrow);
}

static void put_u64(struct writer *w, uint64_t value)
{
	put(w, &value, sizeof value);
}

static uint32_t string_place(struct writer *w, const char *s)
{
	size_t len, slot;
	uint32_t *place;

	if (!s)
		return CACHE_NO_STRING;
	len = strlen(s);
	slot = (size_t)lzma_crc64((const uint8_t *)s, len, 0);
	for (;; slot++) {
		place = &w->slots[slot & (w->slot_count - 1)];
		if (*place == CACHE_NO_STRING || strcmp(w->strings + *place, s) == 0)
			break;
	}
	if (*place == CACHE_NO_STRING) {
		*place = w->strings_len;
		memcpy(w->strings + w->strings_len, s, len + 1);
		w->strings_len += (uint32_t)(len + 1);
	}
	return *place;
}

static void put_frame(struct writer *w, const struct symbol_frame *frame)
{
	put_u64(w, frame->function_ea);
	put_u32(w, string_place(w, frame->function));
	put_u32(w, string_place(w, frame->file));
	put_u32(w, frame->line);
	put_u32(w, frame->column);
	put_u32(w, (frame->inlined ? CACHE_FRAME_INLINED : 0u) |
			   (frame->has_function_ea ? CACHE_FRAME_HAS_EA : 0u));
}

/* What the answers need at most: strings that occur twice are counted twice. */
struct need {
	size_t frames, string_bytes;
};

static struct need need_of(const struct cache_contents *contents)
{
	struct need need = {0, 1};

	for (size_t i = 0; i < contents->count; i++) {
		const struct symbol_answer *answer = &contents->answers[i];

		need.frames += answer->frame_count;
		for (size_t f = 0; f < answer->frame_count; f++) {
			const struct symbol_frame *frame = &answer->frames[f];

			need.string_bytes += frame->function ? strlen(frame->function) + 1 : 0;
			need.string_bytes += frame->file ? strlen(frame->file) + 1 : 0;
		}
	}
	return need;
}

/* All but the checksum. */
static void put_head(struct writer *w, const struct cache_contents *contents, size_t key,
		     size_t frames)
{
	put(w, magic, sizeof magic);
	put_u64(w, 0);
	put_u32(w, CACHE_VERSION);
	put_u32(w, contents->informed ? CACHE_INFORMED : 0);
	put_u32(w, key);
	put_u32(w, contents->count);
	put_u32(w, frames);
	put_u32(w, w->strings_len);
}

static void put_tables(struct writer *w, const struct cache_contents *contents)
{
	size_t first = 0;

	for (size_t i = 0; i < contents->count; i++) {
		put_u64(w, contents->answers[i].ea);
		put_u32(w, first);
		put_u32(w, contents->answers[i].frame_count);
		first += contents->answers[i].frame_count;
	}
	for (size_t i = 0; i < contents->count; i++)
		for (size_t f = 0; f < contents->answers[i].frame_count; f++)
			put_frame(w, &contents->answers[i].frames[f]);
}

static size_t slots_for(size_t strings)
{
	size_t slots = 64;

	while (slots < 2 * strings)
		slots *= 2;
	return slots;
}

struct bytes cache_image_make(struct arena *arena, const struct cache_contents *contents,
			      struct bytes key, size_t limit)
{
	struct need need = need_of(contents);
	size_t tables = contents->count * CACHE_ADDRESS_SIZE + need.frames * CACHE_FRAME_SIZE;
	size_t fixed = CACHE_HEAD_SIZE + key.len + tables;
	struct writer w = {.strings_len = CACHE_NO_STRING + 1,
			   .slot_count = slots_for(2 * need.frames)};
	uint8_t *file;

	if (fixed > limit || need.string_bytes > limit * REPEATED)
		return (struct bytes){NULL, 0};
	w.strings = arena_try(arena, need.string_bytes, 1);
	w.slots = arena_try(arena, w.slot_count, sizeof w.slots[0]);
	file = arena_try(arena, fixed + need.string_bytes, 1);
	if (!w.strings || !w.slots || !file)
		return (struct bytes){NULL, 0};
	w.at = file + CACHE_HEAD_SIZE;
	put(&w, key.at, key.len);
	put_tables(&w, contents);
	put(&w, w.strings, w.strings_len);
	w.end = w.at;
	w.at = file;
	put_head(&w, contents, key.len, need.frames);
	if ((size_t)(w.end - file) > limit)
		return (struct bytes){NULL, 0};
	cache_image_seal(file, (size_t)(w.end - file));
	return (struct bytes){file, (size_t)(w.end - file)};
}

void cache_image_seal(uint8_t *file, size_t len)
{
	uint64_t checksum = checksum_of(file, len);

	memcpy(file + CACHE_CHECKSUM_OFF, &checksum, sizeof checksum);
}
