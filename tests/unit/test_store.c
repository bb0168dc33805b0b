/* base/store: whose files are read, which are written, and which are removed. */
#include <fcntl.h>
#include <limits.h>
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

#include "base/store.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define OTHER_USER 65534

struct place {
	struct arena arena;
	char directory[64]; /* XDG_CACHE_HOME */
	struct store store;
};

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof *place);

	strcpy(place->directory, "/tmp/stacker-store-XXXXXX");
	assert_non_null(mkdtemp(place->directory));
	setenv("XDG_CACHE_HOME", place->directory, 1);
	assert_true(store_open(&place->store, &place->arena, true, NULL));
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

static struct bytes text_bytes(const char *text)
{
	return (struct bytes){(const uint8_t *)text, strlen(text)};
}

static bool is_there(const struct place *place, const char *name)
{
	struct stat st;

	return fstatat(place->store.dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_read(struct place *place, const char *name)
{
	struct bytes out;

	return store_read(&place->store, &place->arena, name, &out);
}

static void file_put(const struct place *place, const char *name, off_t size, int64_t age_s)
{
	struct timespec times[2];
	int fd = openat(place->store.dir, name, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= age_s;
	times[1] = times[0];
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static void test_path(void **state)
{
	static const struct {
		const char *cache, *home, *want;
	} cases[] = {
		{"/x", "/home/a", "/x/stacker"},
		{NULL, "/home/a", "/home/a/.cache/stacker"},
		{"", "/home/a", "/home/a/.cache/stacker"},
		{"relative", "/home/a", "/home/a/.cache/stacker"},
		{NULL, "relative", NULL},
		{NULL, "", NULL},
		{NULL, NULL, NULL},
	};
	const char *home = getenv("HOME");
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *path;

		unsetenv("XDG_CACHE_HOME");
		unsetenv("HOME");
		if (cases[i].cache)
			setenv("XDG_CACHE_HOME", cases[i].cache, 1);
		if (cases[i].home)
			setenv("HOME", cases[i].home, 1);
		path = store_path(&arena);
		if (cases[i].want)
			assert_string_equal(path, cases[i].want);
		else
			assert_null(path);
	}
	if (home)
		setenv("HOME", home, 1);
	arena_free(&arena);
}

static void test_written_is_read(void **state)
{
	struct place *place = *state;
	struct bytes out;
	struct stat st;

	assert_int_equal(fstat(place->store.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_false(is_read(place, "ab-1"));
	assert_true(store_write(&place->store, "ab-1", text_bytes("first")));
	assert_true(store_write(&place->store, "ab-1", text_bytes("second")));
	assert_true(store_read(&place->store, &place->arena, "ab-1", &out));
	assert_true(bytes_equal(out, text_bytes("second")));
	assert_int_equal(fstatat(place->store.dir, "ab-1", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(store_measure(&place->store).files, 1);
	assert_int_equal(store_measure(&place->store).bytes, 6);
}

static void test_names_that_are_none(void **state)
{
	static const char *const names[] = {"",    ".",  "..",     "../ab",
					    "a/b", "AB", "ab.new", "ab "};
	struct place *place = *state;

	for (size_t i = 0; i < COUNT(names); i++)
		assert_false(store_write(&place->store, names[i], text_bytes("x")));
	assert_int_equal(store_measure(&place->store).files, 0);
}

static void test_files_of_others_are_not_read(void **state)
{
	struct place *place = *state;
	int dir = place->store.dir;

	file_put(place, "a0", 10, 0);
	assert_true(is_read(place, "a0"));
	assert_int_equal(symlinkat("a0", dir, "a1"), 0);
	assert_false(is_read(place, "a1"));
	assert_int_equal(mkfifoat(dir, "a2", 0600), 0);
	assert_false(is_read(place, "a2"));
	assert_int_equal(mkdirat(dir, "a3", 0700), 0);
	assert_false(is_read(place, "a3"));
	file_put(place, "a4", (off_t)STORE_FILE_MAX + 1, 0);
	assert_false(is_read(place, "a4"));
	file_put(place, "a5", 10, 0);
	assert_int_equal(fchmodat(dir, "a5", 0620, 0), 0);
	assert_false(is_read(place, "a5"));
	if (geteuid() != 0)
		return;
	file_put(place, "a6", 10, 0);
	assert_int_equal(fchownat(dir, "a6", OTHER_USER, OTHER_USER, 0), 0);
	assert_false(is_read(place, "a6"));
}

/* A symbolic link in the place of the file is replaced, and what it leads to stays. */
static void test_write_over_a_link(void **state)
{
	struct place *place = *state;
	struct bytes out;

	file_put(place, "c0ffee", 10, 0);
	assert_int_equal(symlinkat("c0ffee", place->store.dir, "ab"), 0);
	assert_true(store_write(&place->store, "ab", text_bytes("mine")));
	assert_true(store_read(&place->store, &place->arena, "ab", &out));
	assert_true(store_read(&place->store, &place->arena, "c0ffee", &out));
	assert_int_equal(out.len, 10);
}

static void test_directories_of_others(void **state)
{
	struct place *place = *state;
	struct store store;
	struct err e = {0};
	char other[128];

	assert_int_equal(fchmod(place->store.dir, 0770), 0);
	assert_false(store_open(&store, &place->arena, true, &e));
	assert_int_equal(e.kind, ERR_PERMISSION);
	assert_int_equal(store.dir, -1);
	if (geteuid() == 0) {
		assert_int_equal(fchmod(place->store.dir, 0700), 0);
		assert_int_equal(fchown(place->store.dir, OTHER_USER, OTHER_USER), 0);
		assert_false(store_open(&store, &place->arena, true, &e));
		/* Nor is one made in a directory of another: what root does there stays root's. */
		assert_int_equal(rmdir(place->store.path), 0);
		assert_int_equal(chown(place->directory, OTHER_USER, OTHER_USER), 0);
		assert_false(store_open(&store, &place->arena, true, &e));
		assert_false(access(place->store.path, F_OK) == 0);
		assert_int_equal(chown(place->directory, 0, 0), 0);
	} else {
		assert_int_equal(rmdir(place->store.path), 0);
	}
	snprintf(other, sizeof other, "%s/other", place->directory);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(symlink(other, place->store.path), 0);
	assert_false(store_open(&store, &place->arena, true, &e));
}

/* One directory above is made too, no more. */
static void test_what_is_made(void **state)
{
	struct place *place = *state;
	struct store store;
	char above[128];

	snprintf(above, sizeof above, "%s/a/b", place->directory);
	setenv("XDG_CACHE_HOME", above, 1);
	assert_false(store_open(&store, &place->arena, true, NULL));
	snprintf(above, sizeof above, "%s/a", place->directory);
	setenv("XDG_CACHE_HOME", above, 1);
	assert_false(store_open(&store, &place->arena, false, NULL));
	assert_true(store_open(&store, &place->arena, true, NULL));
	close(store.dir);
}

static void test_oldest_are_removed(void **state)
{
	struct place *place = *state;
	size_t fit = STORE_TOTAL_MAX / STORE_FILE_MAX;
	char name[16];

	for (size_t i = 0; i < fit; i++) {
		snprintf(name, sizeof name, "a%02zu", i);
		file_put(place, name, (off_t)STORE_FILE_MAX, (int64_t)(1000 - i));
	}
	assert_true(store_write(&place->store, "b", text_bytes("one too much")));
	assert_false(is_there(place, "a00"));
	assert_true(is_there(place, "a01"));
	assert_true(is_there(place, "b"));
	assert_true(store_measure(&place->store).bytes <= STORE_TOTAL_MAX);
}

static void test_too_many_files(void **state)
{
	struct place *place = *state;
	char name[16];

	for (size_t i = 0; i < STORE_COUNT_MAX + 5; i++) {
		snprintf(name, sizeof name, "%zu", i);
		file_put(place, name, 1, (int64_t)(100000 - i));
	}
	assert_true(store_write(&place->store, "b", text_bytes("x")));
	assert_int_equal(store_measure(&place->store).files, STORE_COUNT_MAX);
	assert_true(is_there(place, "b"));
	assert_false(is_there(place, "0"));
}

static void test_left_over_and_foreign(void **state)
{
	struct place *place = *state;

	file_put(place, "0123.new", 5, 3600);
	file_put(place, "4567.new", 5, 0);
	file_put(place, "README", 5, 3600);
	assert_true(store_write(&place->store, "ab", text_bytes("x")));
	assert_false(is_there(place, "0123.new"));
	assert_true(is_there(place, "4567.new"));
	assert_int_equal(store_clear(&place->store).files, 2);
	assert_false(is_there(place, "ab"));
	assert_true(is_there(place, "README"));
	assert_int_equal(store_measure(&place->store).files, 0);
}

static void test_too_large(void **state)
{
	struct place *place = *state;
	uint8_t *large = arena_alloc(&place->arena, STORE_FILE_MAX + 1, 1);

	assert_false(
		store_write(&place->store, "ab", (struct bytes){large, STORE_FILE_MAX + 1}));
	assert_true(store_write(&place->store, "ab", (struct bytes){large, STORE_FILE_MAX}));
	assert_true(is_read(place, "ab"));
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		WITH_PLACE(test_written_is_read),
		WITH_PLACE(test_names_that_are_none),
		WITH_PLACE(test_files_of_others_are_not_read),
		WITH_PLACE(test_write_over_a_link),
		WITH_PLACE(test_directories_of_others),
		WITH_PLACE(test_what_is_made),
		WITH_PLACE(test_oldest_are_removed),
		WITH_PLACE(test_too_many_files),
		WITH_PLACE(test_left_over_and_foreign),
		WITH_PLACE(test_too_large),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
