/* /proc/PID/maps as data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process/maps.h"

static struct map *parse(struct arena *arena, const char *text, size_t *count)
{
	struct map *maps;

	maps_parse(arena, (struct bytes){(const uint8_t *)text, strlen(text)}, &maps, count);
	return maps;
}

static void check_lines(void **state)
{
	static const char text[] =
		"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus-daemon\n"
		"7f0000000000-7f0000001000 rw-s 00000000 00:01 5 /memfd:a b (deleted)\n"
		"7f0000001000-7f0000002000 ---p 00000000 00:00 0\n"
		"7f0000002000-7f0000003000 r--p 00000000 fe:00 9 /a\\012b\n"
		"7f0000003000-7f0000004000 r--p 00000000 fe:00 9 /has\\134backslash\n"
		"7ffd0-7ffd1 rwxp 0 00:00 0 [out of order]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]";
	struct arena arena = {0};
	size_t count;
	struct map *maps = parse(&arena, text, &count);

	(void)state;
	assert_int_equal(count, 6);
	assert_true(maps[0].start == 0x400000 && maps[0].end == 0x452000 &&
		    maps[0].off == 0x1000);
	assert_string_equal(maps[0].permissions, "r-xp");
	assert_int_equal(maps[0].device_major, 8);
	assert_int_equal(maps[0].device_minor, 2);
	assert_int_equal(maps[0].inode, 173521);
	assert_string_equal(maps[0].path, "/usr/bin/dbus-daemon");
	assert_int_equal(maps[0].module, -1);
	assert_string_equal(maps[1].path, "/memfd:a b");
	assert_true(maps[1].deleted);
	assert_string_equal(maps[2].path, "");
	assert_false(maps[2].deleted);
	assert_string_equal(maps[3].path, "/a\nb");
	assert_string_equal(maps[4].path, "/has\\134backslash");
	assert_string_equal(maps[5].path, "[vsyscall]");
	arena_free(&arena);
}

/* Lines of another form cost themselves, never their neighbours. */
static void check_damage(void **state)
{
	static const char *const damaged[] = {
		"",
		"\n",
		"zz-00452000 r-xp 00001000 08:02 173521 /x",
		"00400000 00452000 r-xp 00001000 08:02 173521 /x",
		"00452000-00400000 r-xp 00001000 08:02 173521 /x",
		"00400000-00452000 r-x",
		"00400000-00452000 r-xp",
		"00400000-00452000 r-xp 00001000",
		"00400000-00452000 r-xp 00001000 0802 1 /x",
		"00400000-00452000 r-xp 00001000 08:02 /x",
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
		char *text =
			arena_printf(&arena, "%s\n10000000-20000000 r-xp 0 08:02 7 /good\n",
				     damaged[i]);
		size_t count;
		struct map *maps = parse(&arena, text, &count);

		assert_int_equal(count, 1);
		assert_string_equal(maps[0].path, "/good");
	}
	arena_free(&arena);
}

/* Cut short anywhere: no crash, no map with an end before its start. */
static void check_cut(void **state)
{
	static const char text[] = "00400000-00452000 r-xp 00001000 08:02 173521 /usr/bin/x\n"
				   "00500000-00552000 r-xp 00001000 08:02 173521 /usr/bin/y\n";
	struct arena arena = {0};

	(void)state;
	for (size_t len = 0; len < sizeof text; len++) {
		char *cut = arena_copy(&arena, text, len);
		size_t count;
		struct map *maps = parse(&arena, cut, &count);

		assert_true(count <= 2);
		for (size_t i = 0; i < count; i++)
			assert_true(maps[i].start < maps[i].end);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_lines),
		cmocka_unit_test(check_damage),
		cmocka_unit_test(check_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
