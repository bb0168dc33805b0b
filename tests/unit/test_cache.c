/* symbol/cache: for whom answers are kept, and for whom they are not. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "elf_image.h"
#include "symbol/cache.h"

#define LONG_NS UINT64_C(1000000000)
#define LONG_NS_SIGNED ((int64_t)LONG_NS)

static const uint8_t build_id[] = {0x12, 0x34, 0x56, 0x78};
static const struct symbol_options plain = {.demangle = true};

struct place {
	struct arena arena;
	char directory[64], file[96];
	struct store store;
};

static void file_write(const struct place *place, bool with_build_id)
{
	const struct image image = {
		.build_id = {build_id, with_build_id ? sizeof build_id : 0},
	};
	struct arena arena = {0};
	struct bytes bytes = image_make(&arena, &image);
	FILE *file = fopen(place->file, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes.at, 1, bytes.len, file), bytes.len);
	assert_int_equal(fclose(file), 0);
	arena_free(&arena);
}

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof *place);

	strcpy(place->directory, "/tmp/stacker-cache-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	snprintf(place->file, sizeof place->file, "%s/module", place->directory);
	setenv("XDG_CACHE_HOME", place->directory, 1);
	assert_true(store_open(&place->store, &place->arena, true, NULL));
	file_write(place, true);
	*state = place;
	return 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s", place->directory);
	arena_free(&place->arena);
	close(place->store.dir);
	free(place);
	return system(command);
}

static struct symbol_cache *cache_of(struct place *place, const struct elf *debug,
				     const struct symbol_options *options)
{
	struct module module;

	assert_true(module_open_file(&module, &place->arena, place->file, NULL));
	return symbol_cache_open(&place->arena, &place->store,
				 &(struct cache_subject){module.elf, debug, options});
}

/* The clock stands so long after the file's last change. */
static void clock_set(struct place *place, int64_t after_ns)
{
	struct stat st;

	assert_int_equal(stat(place->file, &st), 0);
	place->store.clock_offset_ns = 0;
	place->store.clock_offset_ns = st.st_ctim.tv_sec * INT64_C(1000000000) +
				       st.st_ctim.tv_nsec + after_ns -
				       store_now_ns(&place->store);
}

/* The same, a long time after the file's last change. */
static struct symbol_cache *settled_cache(struct place *place)
{
	struct symbol_cache *cache;

	clock_set(place, 1000 * (int64_t)CACHE_SETTLED_NS);
	cache = cache_of(place, NULL, &plain);
	assert_non_null(cache);
	return cache;
}

static void keep(struct symbol_cache *cache, uint64_t ea)
{
	static struct symbol_frame frame = {.function = "f"};

	symbol_cache_add(cache, &(struct symbol_answer){ea, &frame, 1});
	symbol_cache_spent(cache, LONG_NS);
	symbol_cache_save(cache, true);
}

static bool knows(const struct symbol_cache *cache, uint64_t ea)
{
	struct symbol_answer answer = {.ea = ea};

	if (!symbol_cache_find(cache, &answer))
		return false;
	assert_int_equal(answer.frame_count, 1);
	assert_string_equal(answer.frames[0].function, "f");
	return true;
}

static void test_kept(void **state)
{
	struct place *place = *state;
	struct symbol_cache *cache = settled_cache(place);

	assert_true(symbol_cache_informed(cache));
	assert_false(knows(cache, 0x1000));
	keep(cache, 0x1000);
	cache = cache_of(place, NULL, &plain);
	assert_true(knows(cache, 0x1000));
	assert_false(knows(cache, 0x1001));
}

static void test_whether_informed(void **state)
{
	struct place *place = *state;
	struct symbol_cache *cache = settled_cache(place);

	symbol_cache_add(cache, &(struct symbol_answer){.ea = 7});
	symbol_cache_spent(cache, LONG_NS);
	symbol_cache_save(cache, false);
	assert_false(symbol_cache_informed(cache_of(place, NULL, &plain)));
}

/* Two runs at once: who writes last keeps what the other wrote. */
static void test_merged(void **state)
{
	struct place *place = *state;
	struct symbol_cache *a = settled_cache(place), *b = settled_cache(place);

	keep(a, 1);
	keep(b, 2);
	keep(b, 1);
	a = cache_of(place, NULL, &plain);
	assert_true(knows(a, 1));
	assert_true(knows(a, 2));
}

static void test_not_worth_it(void **state)
{
	struct place *place = *state;
	struct symbol_cache *cache = settled_cache(place);

	symbol_cache_add(cache, &(struct symbol_answer){.ea = 1});
	symbol_cache_spent(cache, CACHE_WORTH_NS);
	symbol_cache_save(cache, true);
	assert_int_equal(store_measure(&place->store).files, 0);
}

static void test_options_are_kept_apart(void **state)
{
	struct place *place = *state;
	const struct symbol_options others[] = {
		{.demangle = false},
		{.demangle = true, .names = SYMBOL_NAMES_DEBUG},
	};

	keep(settled_cache(place), 1);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_false(knows(cache_of(place, NULL, &others[i]), 1));
}

static void test_other_debug_file(void **state)
{
	struct place *place = *state;
	struct module debug;

	keep(settled_cache(place), 1);
	assert_true(module_open_file(&debug, &place->arena, place->file, NULL));
	assert_false(knows(cache_of(place, debug.elf, &plain), 1));
	assert_true(knows(cache_of(place, NULL, &plain), 1));
}

/* Younger and older files; the clock goes on meanwhile. */
static void test_settled(void **state)
{
	static const struct {
		int64_t after_ns;
		bool is_settled;
	} cases[] = {
		{-LONG_NS_SIGNED, false},
		{0, false},
		{(int64_t)CACHE_SETTLED_NS, true},
		{1000 * LONG_NS_SIGNED, true},
	};
	struct place *place = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		clock_set(place, cases[i].after_ns);
		assert_int_equal(cache_of(place, NULL, &plain) != NULL, cases[i].is_settled);
	}
}

/* Writes the file anew with the times it has, until the kernel's own one differs: that comes in ticks. */
static void replace(const struct place *place)
{
	struct stat before, after;

	assert_int_equal(stat(place->file, &before), 0);
	do {
		const struct timespec times[] = {before.st_atim, before.st_mtim};

		file_write(place, true);
		assert_int_equal(utimensat(AT_FDCWD, place->file, times, 0), 0);
		assert_int_equal(stat(place->file, &after), 0);
	} while (after.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* The same build-id, size and time as before, and another file: the kernel's own time tells. */
static void test_replaced(void **state)
{
	struct place *place = *state;

	keep(settled_cache(place), 1);
	replace(place);
	clock_set(place, 0);
	assert_null(cache_of(place, NULL, &plain)); /* it changed just now */
	assert_false(knows(settled_cache(place), 1));
}

static void test_no_build_id(void **state)
{
	struct place *place = *state;

	settled_cache(place);
	file_write(place, false);
	clock_set(place, 1000 * (int64_t)CACHE_SETTLED_NS);
	assert_null(cache_of(place, NULL, &plain));
}

/* The vDSO, for one. */
static void test_memory_is_no_file(void **state)
{
	struct place *place = *state;
	const struct image image = {.build_id = {build_id, sizeof build_id}};
	struct elf elf;

	assert_true(elf_open(&elf, &place->arena, image_make(&place->arena, &image), "memory",
			     NULL));
	assert_null(symbol_cache_open(&place->arena, &place->store,
				      &(struct cache_subject){&elf, NULL, &plain}));
}

/* Written to the only file of the store. */
static void damage(const struct place *place, const char *how)
{
	char command[256];

	snprintf(command, sizeof command, how, place->store.path);
	assert_int_equal(system(command), 0);
}

static void test_damaged_is_replaced(void **state)
{
	static const char *const hows[] = {
		"for f in %s/*; do : >$f; done",
		"for f in %s/*; do echo garbage >$f; done",
		"for f in %s/*; do echo x >>$f; done",
		"for f in %s/*; do truncate -s -1 $f; done",
	};
	struct place *place = *state;

	keep(settled_cache(place), 1);
	for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
		struct symbol_cache *cache = cache_of(place, NULL, &plain);

		assert_true(knows(cache, 1));
		damage(place, hows[i]);
		cache = cache_of(place, NULL, &plain);
		assert_false(knows(cache, 1));
		keep(cache, 1);
	}
	assert_int_equal(store_measure(&place->store).files, 1);
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PLACE(test_kept),
		WITH_PLACE(test_whether_informed),
		WITH_PLACE(test_merged),
		WITH_PLACE(test_not_worth_it),
		WITH_PLACE(test_options_are_kept_apart),
		WITH_PLACE(test_other_debug_file),
		WITH_PLACE(test_settled),
		WITH_PLACE(test_replaced),
		WITH_PLACE(test_no_build_id),
		WITH_PLACE(test_memory_is_no_file),
		WITH_PLACE(test_damaged_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
