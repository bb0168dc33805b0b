/* base/cgroup: which group it is, by the texts of the kernel, and what it and those above it leave, by
 * files in a directory of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cgroup.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define V2_MOUNT \
	"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNTS                                                                       \
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                    \
	"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"                   \
	"35 31 0:32 / /sys/fs/cgroup/mem\\040ory rw shared:1 master:2 - cgroup cgroup " \
	"rw,cpuset,memory\n"

static const struct {
	const char *name, *groups, *mounts;
	enum cgroup_version version;
	const char *mount, *path; /* NULL: none */
} places[] = {
	{"unified", "0::/user.slice/a.scope\n", V2_MOUNT, CGROUP_2, "/sys/fs/cgroup",
	 "/user.slice/a.scope"},
	{"the root", "0::/\n", V2_MOUNT, CGROUP_2, "/sys/fs/cgroup", ""},
	{"version 1 beside it", "4:memory:/a/b\n0::/\n", V1_MOUNTS V2_MOUNT, CGROUP_1,
	 "/sys/fs/cgroup/mem ory", "/a/b"},
	{"mounted together", "3:cpu:/c\n4:cpuset,memory:/a\n", V1_MOUNTS, CGROUP_1,
	 "/sys/fs/cgroup/mem ory", "/a"},
	{"no controller of that name", "4:memoryless,amemory:/a\n", V1_MOUNTS, CGROUP_1, NULL,
	 NULL},
	{"a colon in the path", "0::/a:b\n", V2_MOUNT, CGROUP_2, "/sys/fs/cgroup", "/a:b"},
	{"part of the tree is mounted", "0::/docker/x/y\n",
	 "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 c rw\n", CGROUP_2, "/sys/fs/cgroup",
	 "/y"},
	{"its own part", "0::/docker/x\n",
	 "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 c rw\n", CGROUP_2, "/sys/fs/cgroup",
	 ""},
	{"a neighbour's part", "0::/docker/xy\n",
	 "30 23 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 c rw\n", CGROUP_2, "/sys/fs/cgroup",
	 ""},
	{"above the namespace's root", "0::/../../other\n", V2_MOUNT, CGROUP_2,
	 "/sys/fs/cgroup", ""},
	{"not mounted", "0::/a\n", V1_MOUNTS, CGROUP_2, NULL, NULL},
	{"no text", "", "", CGROUP_2, NULL, NULL},
	{"cut short", "0:", V2_MOUNT, CGROUP_2, NULL, NULL},
	{"no path", "0::a\n", V2_MOUNT, CGROUP_2, NULL, NULL},
	{"a mount cut short", "0::/a\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n", CGROUP_2,
	 NULL, NULL},
	{"a mount without its dash", "0::/a\n", "30 23 0:26 / /sys rw cgroup2 cgroup2 rw x y\n",
	 CGROUP_2, NULL, NULL},
};

static void test_places(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(places); i++) {
		struct arena arena = {0};
		struct cgroup_place place = {NULL, NULL};
		bool found = cgroup_place(&arena, places[i].groups, places[i].mounts,
					  places[i].version, &place);

		if (found != (places[i].mount != NULL))
			fail_msg("%s", places[i].name);
		if (found) {
			assert_string_equal(place.mount, places[i].mount);
			assert_string_equal(place.path, places[i].path);
		}
		arena_free(&arena);
	}
}

/* ---- What they leave ---- */

struct tree {
	struct arena arena;
	char root[64];
};

static int tree_make(void **state)
{
	struct tree *tree = calloc(1, sizeof *tree);

	strcpy(tree->root, "/tmp/stacker-cgroup-XXXXXX");
	assert_non_null(mkdtemp(tree->root));
	mkdir(arena_printf(&tree->arena, "%s/a", tree->root), 0700);
	mkdir(arena_printf(&tree->arena, "%s/a/b", tree->root), 0700);
	*state = tree;
	return 0;
}

static int tree_remove(void **state)
{
	struct tree *tree = *state;
	int status = system(arena_printf(&tree->arena, "rm -rf %s", tree->root));

	arena_free(&tree->arena);
	free(tree);
	return status;
}

static void file_write(struct tree *tree, const char *name, const char *text)
{
	FILE *file = fopen(arena_printf(&tree->arena, "%s/%s", tree->root, name), "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static uint64_t left(struct tree *tree, enum cgroup_version version)
{
	struct cgroup_place place = {tree->root, "/a/b"};

	return cgroup_left(&tree->arena, &place, version);
}

static void test_version_2(void **state)
{
	struct tree *tree = *state;

	assert_true(left(tree, CGROUP_2) == UINT64_MAX); /* no files at all */
	file_write(tree, "a/b/memory.max", "max\n");
	file_write(tree, "a/b/memory.current", "4096\n");
	assert_true(left(tree, CGROUP_2) == UINT64_MAX);
	file_write(tree, "a/memory.max", "1000000\n");
	file_write(tree, "a/memory.current", "600000\n");
	assert_int_equal(left(tree, CGROUP_2), 400000);
	/* The page cache goes when memory is needed. */
	file_write(
		tree, "a/memory.stat",
		"anon 1\nfile 9\nxinactive_file 7\ninactive_file 100000\nactive_file 50000\n");
	assert_int_equal(left(tree, CGROUP_2), 550000);
	file_write(tree, "a/b/memory.high", "70000\n");
	assert_int_equal(left(tree, CGROUP_2), 70000 - 4096);
	file_write(tree, "memory.max", "5000\n");
	file_write(tree, "memory.current", "6000\n");
	assert_int_equal(left(tree, CGROUP_2), 0);
}

static void test_version_1(void **state)
{
	struct tree *tree = *state;

	file_write(tree, "a/b/memory.limit_in_bytes", "9223372036854771712\n");
	assert_true(left(tree, CGROUP_1) > UINT64_C(1) << 60);
	file_write(tree, "a/memory.limit_in_bytes", "1000000\n");
	file_write(tree, "a/memory.usage_in_bytes", "300000\n");
	file_write(tree, "a/memory.stat",
		   "inactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 0\n");
	assert_int_equal(left(tree, CGROUP_1), 800000);
	/* Of groups above that a container does not see. */
	file_write(tree, "a/b/memory.stat", "hierarchical_memory_limit 500000\n");
	file_write(tree, "a/b/memory.usage_in_bytes", "100\n");
	assert_int_equal(left(tree, CGROUP_1), 499900);
	/* Nobody has a limit, whatever was read of the groups above meanwhile. */
	file_write(tree, "a/b/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
	assert_true(left(tree, CGROUP_1) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test_setup_teardown(test_version_2, tree_make, tree_remove),
		cmocka_unit_test_setup_teardown(test_version_1, tree_make, tree_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
