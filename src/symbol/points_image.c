#include "symbol/points_image.h"

#include <lzma.h>
#include <string.h>

static const char magic[8] = "stackerP"; /* without a NUL */

#define CHECKED_OFF (POINTS_CHECKSUM_OFF + sizeof(uint64_t))
#define POINT_SIZE 24
#define CHECK_SIZE 12
#define SECTION_SIZE 36

static uint64_t checksum_of(const uint8_t *head, struct bytes tables)
{
	uint64_t crc = lzma_crc64(head + CHECKED_OFF, POINTS_HEAD_SIZE - CHECKED_OFF, 0);

	return lzma_crc64(tables.at, tables.len, crc);
}

/* ---- Reading ---- */

bool points_head_read(struct points_head *out, const uint8_t *head)
{
	struct reader r = reader_over((struct bytes){head, POINTS_HEAD_SIZE});
	struct bytes begin = read_block(&r, sizeof magic);
	uint32_t version;

	out->checksum = read_u64(&r);
	version = read_u32(&r);
	out->windows = read_u32(&r);
	out->tables = read_u32(&r);
	out->key = read_u32(&r);
	return begin.len == sizeof magic && memcmp(begin.at, magic, begin.len) == 0 &&
	       version == POINTS_VERSION;
}

/* The next one lies behind the one before, in both. */
static bool point_read(struct reader *r, const struct points_section *section, uint32_t windows,
		       struct point *out)
{
	size_t count = section->at.count;
	const struct stream_point *before = count ? &section->at.at[count - 1].at : NULL;

	out->at.off = read_u64(r);
	out->at.bit = read_u64(r);
	out->at.checksum = read_u32(r);
	out->window = read_u32(r);
	return !reader_failed(r) && out->at.off >= STREAM_WINDOW &&
	       out->at.off < section->size && out->at.bit / 8 < section->packed &&
	       out->window < windows &&
	       (!before || (out->at.off > before->off && out->at.bit > before->bit));
}

static bool check_read(struct reader *r, const struct points_section *section,
		       struct points_check *out)
{
	size_t count = section->checks.count;

	out->off = read_u64(r);
	out->checksum = read_u32(r);
	return !reader_failed(r) && out->off && out->off <= section->size &&
	       (!count || out->off > section->checks.at[count - 1].off);
}

static bool section_read(struct points *points, struct arena *arena, struct reader *r,
			 uint32_t windows)
{
	uint32_t id = read_u32(r), count = read_u32(r), checks = read_u32(r);
	struct points_section *section = &points->sections[id < SECTION_COUNT ? id : 0];
	struct points_check check;
	struct point point;

	if (id >= SECTION_COUNT || section->size)
		return false;
	section->packed = read_u64(r);
	section->size = read_u64(r);
	section->end = read_u64(r);
	for (; count; count--) {
		if (!point_read(r, section, windows, &point))
			return false;
		*vec_push(arena, &section->at) = point;
	}
	for (; checks; checks--) {
		if (!check_read(r, section, &check))
			return false;
		*vec_push(arena, &section->checks) = check;
	}
	return section->size &&
	       (section->end == section->size || section->end <= points_last(section));
}

bool points_image_read(struct points *points, struct arena *arena, const uint8_t *head,
		       struct bytes tables, struct bytes key)
{
	struct reader r = reader_over(tables);
	struct points_head h;

	if (!points_head_read(&h, head) || h.tables != tables.len ||
	    checksum_of(head, tables) != h.checksum || !bytes_equal(read_block(&r, h.key), key))
		return false;
	while (reader_more(&r))
		if (!section_read(points, arena, &r, h.windows))
			return false;
	points->windows = h.windows;
	return !reader_failed(&r);
}

/* ---- Writing ---- */

static void put(uint8_t **at, const void *value, size_t size)
{
	memcpy(*at, value, size);
	*at += size;
}

static void put_u32(uint8_t **at, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	put(at, &narrow, sizeof narrow);
}

static void put_u64(uint8_t **at, uint64_t value)
{
	put(at, &value, sizeof value);
}

static void put_section(uint8_t **at, uint32_t id, const struct points_section *section)
{
	put_u32(at, id);
	put_u32(at, section->at.count);
	put_u32(at, section->checks.count);
	put_u64(at, section->packed);
	put_u64(at, section->size);
	put_u64(at, section->end);
	for (size_t i = 0; i < section->at.count; i++) {
		const struct point *point = &section->at.at[i];

		put_u64(at, point->at.off);
		put_u64(at, point->at.bit);
		put_u32(at, point->at.checksum);
		put_u32(at, point->window);
	}
	for (size_t i = 0; i < section->checks.count; i++) {
		put_u64(at, section->checks.at[i].off);
		put_u32(at, section->checks.at[i].checksum);
	}
}

/* 0: not worth it. */
static size_t size_of(const struct points_section *section)
{
	if (!section->at.count || !section->end)
		return 0;
	return SECTION_SIZE + section->at.count * POINT_SIZE +
	       section->checks.count * CHECK_SIZE;
}

void points_image_make(struct points_image *out, struct arena *arena,
		       const struct points *points, struct bytes key)
{
	size_t size = key.len;
	uint8_t *begin, *at = out->head;

	for (size_t i = 0; i < SECTION_COUNT; i++)
		size += size_of(&points->sections[i]);
	begin = arena_alloc(arena, size, 1);
	put(&at, magic, sizeof magic);
	put_u64(&at, 0);
	put_u32(&at, POINTS_VERSION);
	put_u32(&at, points->windows);
	put_u32(&at, size);
	put_u32(&at, key.len);
	at = begin;
	put(&at, key.at, key.len);
	for (uint32_t i = 0; i < SECTION_COUNT; i++)
		if (size_of(&points->sections[i]))
			put_section(&at, i, &points->sections[i]);
	out->tables = (struct bytes){begin, size};
	points_image_seal(out->head, out->tables);
}

void points_image_seal(uint8_t *head, struct bytes tables)
{
	uint64_t checksum = checksum_of(head, tables);

	memcpy(head + POINTS_CHECKSUM_OFF, &checksum, sizeof checksum);
}
