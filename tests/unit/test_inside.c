/* Paths inside another root: by hand, and by the kernel, which must say the same. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/inside.h"

/* PLACE/root is the root; PLACE/outside and PLACE/secret lie beside it. */
static char place[64];

static const char *in_place(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", place, name);
	return path;
}

static void put(const char *name)
{
	int fd = open(in_place(name), O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void link_to(const char *name, const char *target)
{
	assert_int_equal(symlink(target, in_place(name)), 0);
}

static int place_make(void **state)
{
	static const char *const directories[] = {"root", "root/a", "root/a/b", "root/etc",
						  "outside"};
	char name[32], target[32];

	(void)state;
	strcpy(place, "/tmp/stacker-test-inside.XXXXXX");
	if (!mkdtemp(place))
		return -1;
	for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
		assert_int_equal(mkdir(in_place(directories[i]), 0700), 0);
	put("secret");
	put("outside/file");
	put("root/a/b/file");
	put("root/etc/passwd");
	link_to("root/absolute", "/a/b/file");
	link_to("root/directory", "/a/b");
	link_to("root/a/up", "../../../../../a/b/file");
	link_to("root/out", "../secret");
	link_to("root/a/out", "/../outside");
	link_to("root/etc/hosts", "/etc/passwd");
	link_to("root/loop", "loop");
	link_to("root/one", "two");
	link_to("root/two", "/a/../one");
	link_to("root/self", "/");
	link_to("root/nowhere", "/none");
	/* More links than a path may have, one behind the other; "long0" has one fewer. */
	for (int i = 0; i < 41; i++) {
		snprintf(name, sizeof name, "root/long%d", i);
		snprintf(target, sizeof target, i == 40 ? "a" : "long%d", i + 1);
		link_to(name, target);
	}
	return 0;
}

static int place_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", place);
	return system(command);
}

static const struct {
	const char *path, *leads_to; /* NULL: the errno */
	int error;
	bool nofollow;
} cases[] = {
	{"/a/b/file", "root/a/b/file", 0, false},
	{"a//b/./file", "root/a/b/file", 0, false},
	{"/", "root", 0, false},
	{"..", "root", 0, false},
	{"/../../..", "root", 0, false},
	{"/a/b/..", "root/a", 0, false},
	{"/a/b/../../../a/b/file", "root/a/b/file", 0, false},
	{"/absolute", "root/a/b/file", 0, false},
	{"/absolute", "root/absolute", 0, true},
	{"/directory/file", "root/a/b/file", 0, true},
	{"/directory/", "root/a/b", 0, true},
	{"/directory/../up", "root/a/b/file", 0, false},
	{"/a/up", "root/a/b/file", 0, false},
	{"/out", NULL, ENOENT, false},
	{"/../secret", NULL, ENOENT, false},
	{"/a/out/file", NULL, ENOENT, false},
	{"/etc/hosts", "root/etc/passwd", 0, false},
	{"/self/self/self/etc/passwd", "root/etc/passwd", 0, false},
	{"/nowhere", NULL, ENOENT, false},
	{"/loop", NULL, ELOOP, false},
	{"/loop", "root/loop", 0, true},
	{"/one", NULL, ELOOP, false},
	{"/long1/b", "root/a/b", 0, false},
	{"/long0/b", NULL, ELOOP, false},
	{"/a/b/file/x", NULL, ENOTDIR, false},
	{"/a/b/file/", NULL, ENOTDIR, false},
	{"/a/b/file/..", NULL, ENOTDIR, false},
	{"", NULL, ENOENT, false},
};

static void check(size_t i, int (*open_it)(int root, const char *path, bool nofollow))
{
	SCOPED_FD int root = open(in_place("root"), O_PATH | O_DIRECTORY);
	SCOPED_FD int fd = open_it(root, cases[i].path, cases[i].nofollow);
	int error = fd < 0 ? errno : 0;
	struct stat got, want;

	if (!cases[i].leads_to && error != cases[i].error)
		fail_msg("%s: %s", cases[i].path, strerror(error));
	if (!cases[i].leads_to)
		return;
	if (error)
		fail_msg("%s: %s", cases[i].path, strerror(error));
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(lstat(in_place(cases[i].leads_to), &want), 0);
	if (got.st_ino != want.st_ino || got.st_dev != want.st_dev)
		fail_msg("%s: does not lead to %s", cases[i].path, cases[i].leads_to);
}

static void test_by_hand(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check(i, inside_walk);
}

static void test_by_the_kernel(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check(i, inside_open);
}

/* What is too long is refused, not cut. */
static void test_lengths(void **state)
{
	SCOPED_FD int root = open(in_place("root"), O_PATH | O_DIRECTORY);
	char path[5000];

	(void)state;
	memset(path, '/', sizeof path);
	path[sizeof path - 1] = '\0';
	assert_int_equal(inside_walk(root, path, false), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	memset(path, 'x', 256);
	path[256] = '\0';
	assert_int_equal(inside_walk(root, path, false), -1);
	assert_int_equal(errno, ENAMETOOLONG);
}

/* However it ends, nothing stays open. */
static void test_descriptors(void **state)
{
	int before = dup(STDERR_FILENO), after;

	(void)state;
	close(before);
	test_by_hand(state);
	after = dup(STDERR_FILENO);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_by_the_kernel),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests(tests, place_make, place_remove);
}
