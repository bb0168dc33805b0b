#include "symbol/cache.h"

#include <inttypes.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "elf/debugfile.h"
#include "symbol/cache_image.h"
#include "symbol/cache_key.h"

/* More than fit in a file are of no use. */
#define FRESH_MAX (STORE_FILE_MAX / (CACHE_ADDRESS_SIZE + CACHE_FRAME_SIZE))

typedef VEC(struct symbol_answer) answers;

struct symbol_cache {
	struct arena *arena;
	const struct store *store;
	struct bytes key;
	const char *name;         /* of the file */
	struct cache_image image; /* as it was found: count 0 where there was none */
	answers fresh;
	uint64_t spent_ns;
};

/* ---- The key ---- */

static bool key_make(struct symbol_cache *cache, const struct cache_subject *subject)
{
	struct arena *arena = cache->arena;
	const char *module = cache_key_stamp(arena, cache->store, subject->module);
	const char *debug = cache_key_stamp(arena, cache->store, subject->debug);
	size_t id_size = subject->module->build_id.len;
	const char *id, *text;

	if (!module || !debug || !id_size || id_size > BUILD_ID_MAX)
		return false;
	id = build_id_text(arena, subject->module->build_id);
	text = arena_printf(arena,
			    "%s"
			    "build-id %s\nmodule %s\ndebug %s\nnames %d demangle %d\n",
			    cache_key_own(arena), id, module, debug,
			    (int)subject->options->names, subject->options->demangle ? 1 : 0);
	cache->key = (struct bytes){(const uint8_t *)text, strlen(text)};
	cache->name = arena_printf(arena, "%s-%016" PRIx64, id,
				   lzma_crc64(cache->key.at, cache->key.len, 0));
	return true;
}

/* ---- Answers ---- */

static struct cache_image image_load(const struct symbol_cache *cache, struct arena *arena)
{
	struct cache_image image = {.count = 0};
	struct bytes file;

	if (!store_read(cache->store, arena, cache->name, &file) ||
	    !cache_image_read(&image, file, cache->key))
		image.count = 0;
	return image;
}

struct symbol_cache *symbol_cache_open(struct arena *arena, const struct store *store,
				       const struct cache_subject *subject)
{
	struct symbol_cache *cache = arena_new(arena, struct symbol_cache);

	cache->arena = arena;
	cache->store = store;
	if (!key_make(cache, subject))
		return NULL;
	cache->image = image_load(cache, arena);
	return cache;
}

bool symbol_cache_find(const struct symbol_cache *cache, struct symbol_answer *out)
{
	return cache_image_find(&cache->image, cache->arena, out);
}

bool symbol_cache_informed(const struct symbol_cache *cache)
{
	return !cache->image.count || cache->image.informed;
}

void symbol_cache_add(struct symbol_cache *cache, const struct symbol_answer *answer)
{
	if (cache->fresh.count < FRESH_MAX)
		*vec_push(cache->arena, &cache->fresh) = *answer;
}

void symbol_cache_spent(struct symbol_cache *cache, uint64_t ns)
{
	cache->spent_ns += ns;
}

/* ---- Keeping them ---- */

static int compare_ea(const void *left, const void *right)
{
	const struct symbol_answer *a = left, *b = right;

	return a->ea < b->ea ? -1 : a->ea > b->ea;
}

/* By address, each once. */
static struct cache_contents contents_of(answers *all, bool informed)
{
	size_t count = 0;

	qsort(all->at, all->count, sizeof all->at[0], compare_ea);
	for (size_t i = 0; i < all->count; i++)
		if (count == 0 || all->at[count - 1].ea != all->at[i].ea)
			all->at[count++] = all->at[i];
	return (struct cache_contents){all->at, count, informed};
}

/* The new answers, and those of the file as it is now: other runs may have written it meanwhile. */
static answers merged(const struct symbol_cache *cache, struct arena *scratch, bool with_old)
{
	struct cache_image now =
		with_old ? image_load(cache, scratch) : (struct cache_image){.count = 0};
	answers all = {0};

	for (size_t i = 0; i < now.count; i++)
		cache_image_at(&now, i, scratch, vec_push(scratch, &all));
	for (size_t i = 0; i < cache->fresh.count; i++)
		*vec_push(scratch, &all) = cache->fresh.at[i];
	return all;
}

/* Where all together are too much, the new ones: they are more likely to be asked for again. */
static struct bytes file_make(const struct symbol_cache *cache, struct arena *scratch,
			      bool informed)
{
	struct bytes file = {NULL, 0};

	for (int with_old = 1; !file.len && with_old >= 0; with_old--) {
		answers all = merged(cache, scratch, with_old);
		struct cache_contents contents = contents_of(&all, informed);

		file = cache_image_make(scratch, &contents, cache->key, STORE_FILE_MAX);
	}
	return file;
}

void symbol_cache_save(const struct symbol_cache *cache, bool informed)
{
	struct arena scratch = {0};
	struct bytes file;

	if (!cache->fresh.count || cache->spent_ns < CACHE_WORTH_NS)
		return;
	file = file_make(cache, &scratch, informed);
	if (file.len && cache->spent_ns - CACHE_WORTH_NS >= file.len * CACHE_WORTH_BYTE_NS)
		store_write(cache->store, cache->name, file);
	arena_free(&scratch);
}
