/* Files of other people: paths inside another root, and what is no regular file. (Live: emulators lack
 * openat2.) */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

/* ROOT/inner/file holds "inside"; ROOT/../outside/file holds "outside". */
static char place[64];

static void path_in_place(char *out, size_t size, const char *name)
{
	snprintf(out, size, "%s/%s", place, name);
}

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	path_in_place(path, sizeof path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void directory(const char *name)
{
	char path[256];

	path_in_place(path, sizeof path, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void link_to(const char *name, const char *target)
{
	char path[256];

	path_in_place(path, sizeof path, name);
	assert_int_equal(symlink(target, path), 0);
}

static int place_make(void **state)
{
	char fifo[256];

	(void)state;
	strcpy(place, "/tmp/stacker-test-file.XXXXXX");
	if (!mkdtemp(place))
		return -1;
	directory("root");
	directory("root/inner");
	directory("outside");
	put("root/inner/file", "inside");
	put("outside/file", "outside");
	link_to("root/absolute", "/inner/file");
	link_to("root/inner/up", "../../../../../../../../inner/file");
	link_to("root/out", "../outside/file");
	link_to("root/magic", "/proc/self/exe");
	path_in_place(fifo, sizeof fifo, "root/fifo");
	return mkfifo(fifo, 0600);
}

static int place_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", place);
	return system(command);
}

static int root_open(void)
{
	char path[256];

	path_in_place(path, sizeof path, "root");
	return open(path, O_PATH | O_DIRECTORY);
}

static void test_inside(void **state)
{
	static const struct {
		const char *path;
		int error; /* 0: it is root/inner/file */
	} cases[] = {
		{"/inner/file", 0},
		{"inner/file", 0},
		{"/absolute", 0},
		{"/inner/up", 0},
		{"/../../inner/file", 0},
		{"/out", ENOENT},
		{"/../outside/file", ENOENT},
		{"/inner", EINVAL},
		{"/fifo", EINVAL},
		{"/none", ENOENT},
		{"/magic", ENOENT},
	};
	SCOPED_FD int root = root_open();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct stat st;
		SCOPED_FD int fd = file_open_inside(root, cases[i].path, false, &st);
		char text[16] = "";

		if (fd < 0 && errno != cases[i].error)
			fail_msg("%s: %s", cases[i].path, strerror(errno));
		if (fd < 0)
			continue;
		assert_int_equal(read(fd, text, sizeof text - 1), 6);
		if (cases[i].error || strcmp(text, "inside") != 0)
			fail_msg("%s: holds \"%s\"", cases[i].path, text);
	}
}

static void test_inside_without_following(void **state)
{
	SCOPED_FD int root = root_open();
	struct stat st;
	SCOPED_FD int fd = file_open_inside(root, "/inner/file", true, &st);

	(void)state;
	assert_true(fd >= 0);
	assert_true(file_open_inside(root, "/absolute", true, &st) < 0);
}

static void test_map_inside(void **state)
{
	struct bytes bytes;
	struct err e = {0};
	SCOPED_FD int root = root_open();

	(void)state;
	assert_true(file_map_inside(root, "/absolute", &bytes, &e));
	assert_int_equal(bytes.len, 6);
	file_unmap(bytes);
	assert_false(file_map_inside(root, "/out", &bytes, &e));
	assert_string_equal(e.text, "/out: No such file or directory");
	assert_false(file_map_inside(root, "/fifo", &bytes, &e));
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	assert_false(file_map_inside(root, "/none", &bytes, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_inside_without_following),
		cmocka_unit_test(test_map_inside),
	};

	return cmocka_run_group_tests(tests, place_make, place_remove);
}
