#include "symbol/points_file.h"

#include <inttypes.h>
#include <lzma.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "elf/debugfile.h"
#include "symbol/cache_key.h"
#include "symbol/points_image.h"

#define TABLES_MAX ((uint32_t)1 << 20)
#define WINDOWS_MAX ((uint32_t)((STORE_PIECES_MAX - TABLES_MAX) / STREAM_WINDOW))

struct points_file {
	struct arena *arena;
	const struct store *store;
	struct bytes key;
	const char *name;
	struct points points;
	int old;         /* what an earlier run left; -1: nothing */
	uint32_t copied; /* its windows */
	struct store_file fresh;
	bool begun;
	pthread_mutex_t lock; /* for `begun` */
};

/* ---- The old file ---- */

static bool read_at(int fd, uint64_t off, uint8_t *to, size_t len)
{
	while (len) {
		ssize_t got = pread(fd, to, len, (off_t)off);

		if (got <= 0)
			return false;
		to += got;
		off += (uint64_t)got;
		len -= (size_t)got;
	}
	return true;
}

static bool window_get(void *context, uint32_t number, uint8_t *window)
{
	const struct points_file *file = context;

	return number < file->copied &&
	       read_at(file->old, points_image_window(number), window, STREAM_WINDOW);
}

static bool old_read(struct points_file *file, uint64_t size)
{
	uint8_t head[POINTS_HEAD_SIZE], *tables;
	struct points_head h;

	if (!read_at(file->old, 0, head, sizeof head) || !points_head_read(&h, head) ||
	    h.windows > WINDOWS_MAX || h.tables > TABLES_MAX ||
	    size != points_image_window(h.windows) + h.tables)
		return false;
	tables = arena_alloc(file->arena, h.tables, 1);
	file->copied = h.windows;
	return read_at(file->old, points_image_window(h.windows), tables, h.tables) &&
	       points_image_read(&file->points, file->arena, head,
				 (struct bytes){tables, h.tables}, file->key);
}

static void old_open(struct points_file *file)
{
	uint64_t size;

	file->old = store_file_open(file->store, file->name, &size);
	file->points.given = file->old >= 0 && old_read(file, size);
	if (file->points.given)
		return;
	memset(file->points.sections, 0, sizeof file->points.sections);
	file->points.windows = file->copied = 0;
}

/* ---- The new one ---- */

static bool fresh_begin(struct points_file *file)
{
	pthread_mutex_lock(&file->lock);
	if (!file->begun)
		store_file_begin(file->store, &file->fresh);
	file->begun = true;
	pthread_mutex_unlock(&file->lock);
	return file->fresh.fd >= 0;
}

static bool window_put(void *context, uint32_t number, const uint8_t *window)
{
	struct points_file *file = context;

	return number < WINDOWS_MAX && fresh_begin(file) &&
	       store_file_put(&file->fresh, points_image_window(number),
			      (struct bytes){window, STREAM_WINDOW});
}

static bool old_windows_copy(struct points_file *file)
{
	uint8_t window[STREAM_WINDOW];

	for (uint32_t i = 0; i < file->copied; i++)
		if (!window_get(file, i, window) || !window_put(file, i, window))
			return false;
	return true;
}

static bool fresh_finish(struct points_file *file)
{
	struct points_image image;

	points_image_make(&image, file->arena, &file->points, file->key);
	return image.tables.len <= TABLES_MAX && old_windows_copy(file) &&
	       store_file_put(&file->fresh, points_image_window(file->points.windows),
			      image.tables) &&
	       store_file_put(&file->fresh, 0, (struct bytes){image.head, sizeof image.head}) &&
	       store_file_finish(file->store, &file->fresh, file->name);
}

/* ---- All of it ---- */

static bool is_worth(const struct elf *elf)
{
	struct packed info;

	return elf_section_packed(elf, elf_section(elf, ".debug_info"), &info) &&
	       info.format == STREAM_ZLIB && info.size >= POINTS_INFO_MIN;
}

static bool key_make(struct points_file *file, const struct elf *elf)
{
	const char *stamp = cache_key_stamp(file->arena, file->store, elf), *text;

	if (!stamp || !elf->build_id.len || elf->build_id.len > BUILD_ID_MAX)
		return false;
	text = arena_printf(file->arena, "%spoints %s\n", cache_key_own(file->arena), stamp);
	file->key = (struct bytes){(const uint8_t *)text, strlen(text)};
	file->name = arena_printf(file->arena, "%s-%016" PRIx64,
				  build_id_text(file->arena, elf->build_id),
				  lzma_crc64(file->key.at, file->key.len, 0));
	return true;
}

struct points_file *points_file_open(struct arena *arena, const struct store *store,
				     const struct elf *elf)
{
	struct points_file *file;

	if (!store || !is_worth(elf))
		return NULL;
	file = arena_new(arena, struct points_file);
	file->arena = arena;
	file->store = store;
	if (!key_make(file, elf))
		return NULL;
	file->points.context = file;
	file->points.get = window_get;
	file->points.put = window_put;
	file->fresh.fd = -1;
	pthread_mutex_init(&file->lock, NULL);
	old_open(file);
	return file;
}

struct points *points_file_points(struct points_file *file)
{
	return &file->points;
}

void points_file_close(struct points_file *file, bool good)
{
	bool failed = file->points.failed;

	if (file->points.given && failed)
		store_remove(file->store, file->name);
	if (file->begun && (!good || failed || !fresh_finish(file)))
		store_file_drop(file->store, &file->fresh);
	if (file->old >= 0)
		close(file->old);
}
