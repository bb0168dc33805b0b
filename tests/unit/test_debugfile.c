/*
 * elf/debugfile: every place a debug file can be in, what is refused there and said, and that
 * the next place is tried then.
 */
#include <elf.h>
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
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "elf/debugfile.h"
#include "elf_image.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const uint8_t id_bytes[] = {0xab, 0xcd, 0xef, 0x01},
		     other_bytes[] = {0xab, 0xcd, 0xef, 0x02};
static const struct bytes id = {id_bytes, 4}, other_id = {other_bytes, 4}, no_id = {NULL, 0};

static struct arena arena;
static char *top; /* a directory of our own */

/* ---- Files ---- */

static const char *in_top(const char *name)
{
	return arena_printf(&arena, "%s/%s", top, name);
}

static void make_directories(char *path)
{
	for (char *slash = strchr(path + strlen(top) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

static void write_file(const char *name, struct bytes contents)
{
	char *path = arena_string(&arena, in_top(name));
	FILE *f;

	make_directories(path);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(contents.at, 1, contents.len, f), contents.len);
	assert_int_equal(fclose(f), 0);
}

static int make_top(void **state)
{
	const char *where = getenv("TMPDIR");

	(void)state;
	top = arena_printf(&arena, "%s/test_debugfile.XXXXXX", where ? where : P_tmpdir);
	return mkdtemp(top) && (top = realpath(top, NULL)) ? 0 : -1;
}

static int remove_top(void **state)
{
	(void)state;
	if (system(arena_printf(&arena, "rm -rf '%s'", top)) != 0)
		return -1;
	free(top);
	arena_free(&arena);
	return 0;
}

/* Bit by bit, so that it owes nothing to the tables that are tested. */
static uint32_t slow_crc(struct bytes b)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < b.len; i++) {
		crc ^= b.at[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static struct bytes debug_image(struct bytes build_id)
{
	const struct image_section section =
		image_plain(".debug_info", (struct bytes){(const uint8_t *)"x", 1});
	struct image image = {.sections = &section, .section_count = 1, .build_id = build_id};

	return image_make(&arena, &image);
}

/* Contents of .gnu_debuglink. */
static struct bytes debuglink(const char *name, uint32_t crc)
{
	size_t len = (strlen(name) + 1 + 3) & ~(size_t)3;
	uint8_t *at = arena_alloc(&arena, len + 4, 1);

	memcpy(at, name, strlen(name));
	memcpy(at + len, &crc, 4);
	return (struct bytes){at, len + 4};
}

static struct bytes module_image(struct bytes build_id, struct bytes link)
{
	const struct image_section section = image_plain(".gnu_debuglink", link);
	struct image image = {.sections = &section,
			      .section_count = link.len ? 1 : 0,
			      .build_id = build_id};

	return image_make(&arena, &image);
}

static struct elf *open_file(const char *name)
{
	struct elf *elf = arena_new(&arena, struct elf);
	const char *path = in_top(name);
	struct bytes data;
	struct err e = {0};

	if (!file_map(path, &data, &e) || !elf_open(elf, &arena, data, path, &e))
		fail_msg("%s", e.text);
	return elf;
}

/* ---- The separate debug file ---- */

enum debug_kind { RIGHT, OTHER_ID, NO_ID, NOT_ELF, EMPTY, DIRECTORY, WRONG_CRC };
enum link_kind { NO_LINK, LINK };

/* The module is bin/prog, running as /run/prog, with the debuglink name "prog.dbg". */
static const struct {
	const char *name;
	bool module_has_id;
	enum link_kind link;
	const char *at; /* where a file is, below the top directory */
	enum debug_kind kind;
	bool found;
	const char *refused; /* part of what is said; NULL: nothing */
} cases[] = {
	{"by build-id", true, NO_LINK, "dir/.build-id/ab/cdef01.debug", RIGHT, true, NULL},
	{"by build-id under the sysroot", true, NO_LINK,
	 "root/usr/lib/debug/.build-id/ab/cdef01.debug", RIGHT, true, NULL},
	{"by build-id, but another one", true, NO_LINK, "dir/.build-id/ab/cdef01.debug",
	 OTHER_ID, false, "dir/.build-id/ab/cdef01.debug refused: other build-id"},
	{"by build-id, but none", true, NO_LINK, "dir/.build-id/ab/cdef01.debug", NO_ID, false,
	 "refused: it has no build-id"},
	{"not ELF", true, NO_LINK, "dir/.build-id/ab/cdef01.debug", NOT_ELF, false,
	 "not an ELF file"},
	{"empty", true, NO_LINK, "dir/.build-id/ab/cdef01.debug", EMPTY, false,
	 "not an ELF file"},
	{"a directory", true, NO_LINK, "dir/.build-id/ab/cdef01.debug/x", DIRECTORY, false,
	 "not a regular file"},
	{"debuglink beside", false, LINK, "bin/prog.dbg", NO_ID, true, NULL},
	{"debuglink in .debug", false, LINK, "bin/.debug/prog.dbg", NO_ID, true, NULL},
	{"debuglink under the sysroot", false, LINK, "root/run/prog.dbg", NO_ID, true, NULL},
	{"debuglink in .debug under the sysroot", false, LINK, "root/run/.debug/prog.dbg",
	 NO_ID, true, NULL},
	{"debuglink in DIR + directory", false, LINK, "dir/run/prog.dbg", NO_ID, true, NULL},
	{"debuglink in the sysroot's debug directory", false, LINK,
	 "root/usr/lib/debug/run/prog.dbg", NO_ID, true, NULL},
	{"debuglink flat in DIR", false, LINK, "dir/prog.dbg", NO_ID, true, NULL},
	{"debuglink, wrong CRC", false, LINK, "bin/prog.dbg", WRONG_CRC, false,
	 "its CRC is not the one in .gnu_debuglink"},
	{"debuglink, right build-id, wrong CRC", true, LINK, "bin/prog.dbg", WRONG_CRC, false,
	 "refused: "},
	{"debuglink, other build-id", true, LINK, "bin/prog.dbg", OTHER_ID, false,
	 "other build-id"},
	{"debuglink and build-id", true, LINK, "bin/prog.dbg", RIGHT, true, NULL},
	{"no link: FILE.debug beside", true, NO_LINK, "bin/prog.debug", RIGHT, true, NULL},
	{"no link: other FILE.debug beside", true, NO_LINK, "bin/prog.debug", OTHER_ID, false,
	 "other build-id"},
	{"no link: DIR + path", true, NO_LINK, "dir/run/prog", RIGHT, true, NULL},
	{"no link, no build-id: no proof", false, NO_LINK, "bin/prog.debug", RIGHT, false,
	 NULL},
	{"debuginfod's cache", true, NO_LINK, "cache/abcdef01/debuginfo", RIGHT, true, NULL},
	{"nowhere", true, LINK, NULL, RIGHT, false, NULL},
};

static struct bytes contents_of(enum debug_kind kind)
{
	switch (kind) {
	case OTHER_ID:
		return debug_image(other_id);
	case NO_ID:
	case WRONG_CRC:
		return debug_image(no_id);
	case NOT_ELF:
		return (struct bytes){(const uint8_t *)"hello, world", 12};
	case EMPTY:
		return (struct bytes){(const uint8_t *)"", 0};
	default:
		return debug_image(id);
	}
}

static struct debugfiles searcher(void)
{
	static const char *directories[2];

	directories[0] = in_top("dir");
	return (struct debugfiles){.arena = &arena,
				   .directories = directories,
				   .sysroot = in_top("root")};
}

static void remove_files(void)
{
	assert_int_equal(system(arena_printf(&arena, "rm -rf '%s'/*", top)), 0);
}

static void check_case(size_t i)
{
	struct debugfiles files = searcher();
	struct bytes debug = contents_of(cases[i].kind), link = no_id;
	struct elf *found;

	if (cases[i].link == LINK)
		link = debuglink("prog.dbg",
				 slow_crc(debug) + (cases[i].kind == WRONG_CRC ? 1 : 0));
	write_file("bin/prog", module_image(cases[i].module_has_id ? id : no_id, link));
	if (cases[i].at)
		write_file(cases[i].at, debug);
	found = debugfile_find(&files, open_file("bin/prog"), "/run/prog");
	if (!found != !cases[i].found)
		fail_msg("%s: %s", cases[i].name, found ? found->name : "not found");
	if (found)
		assert_string_equal(found->name, in_top(cases[i].at));
	if (!cases[i].refused && files.refused)
		fail_msg("%s: %s", cases[i].name, files.refused);
	if (cases[i].refused && (!files.refused || !strstr(files.refused, cases[i].refused)))
		fail_msg("%s: '%s'", cases[i].name,
			 files.refused ? files.refused : "(nothing)");
}

static void test_places(void **state)
{
	(void)state;
	setenv("DEBUGINFOD_CACHE_PATH", in_top("cache"), 1);
	for (size_t i = 0; i < COUNT(cases); i++) {
		check_case(i);
		remove_files();
	}
}

static void test_next_place_after_a_refusal(void **state)
{
	struct debugfiles files = searcher();
	struct bytes right = debug_image(id);
	struct elf *found;

	(void)state;
	write_file("bin/prog", module_image(id, debuglink("prog.dbg", slow_crc(right))));
	write_file("bin/prog.dbg", debug_image(other_id));
	write_file("bin/.debug/prog.dbg", right);
	found = debugfile_find(&files, open_file("bin/prog"), "/run/prog");
	assert_non_null(found);
	assert_string_equal(found->name, in_top("bin/.debug/prog.dbg"));
	assert_non_null(strstr(files.refused, "bin/prog.dbg refused: other build-id"));
	remove_files();
}

/* Debian's libraries name the file in .debug/ like themselves: beside them that is
 * themselves. */
static void test_link_with_its_own_name(void **state)
{
	struct debugfiles files = searcher();
	struct bytes debug = debug_image(no_id);

	(void)state;
	write_file("bin/prog", module_image(no_id, debuglink("prog", slow_crc(debug))));
	write_file("bin/.debug/prog", debug);
	assert_non_null(debugfile_find(&files, open_file("bin/prog"), "/run/prog"));
	assert_null(files.refused);
	remove_files();
}

static void test_relative_path_and_symbolic_link(void **state)
{
	struct debugfiles files = searcher();
	struct bytes debug = debug_image(no_id);

	(void)state;
	write_file("real/prog", module_image(no_id, debuglink("prog.dbg", slow_crc(debug))));
	write_file("real/prog.dbg", debug);
	assert_int_equal(symlink("real/prog", in_top("prog")), 0);
	assert_non_null(debugfile_find(&files, open_file("prog"), "prog"));
	remove_files();
}

/* Links lead where they lead inside, by whatever name the sysroot is given: the file is below
 * /store in it, and beside that is its debug file. */
static void test_links_inside_the_sysroot(void **state)
{
	static const char *const names[] = {"root", "./root", "link", "./link", "root/"};
	struct bytes debug = debug_image(no_id);

	(void)state;
	/* Emulators lack openat2: links cannot be kept inside there. */
	if (syscall(SYS_openat2, -1, NULL, NULL, 0) != 0 && errno == ENOSYS)
		skip();
	write_file("root/store/prog",
		   module_image(no_id, debuglink("prog.dbg", slow_crc(debug))));
	write_file("root/stored/prog.dbg", debug);
	write_file("root/run/x", debug);
	assert_int_equal(symlink("/store/prog", in_top("root/run/prog")), 0);
	assert_int_equal(symlink("/stored/prog.dbg", in_top("root/store/prog.dbg")), 0);
	assert_int_equal(symlink("root", in_top("link")), 0);
	assert_int_equal(chdir(top), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		struct debugfiles files = {.arena = &arena, .sysroot = names[i]};
		struct elf *elf = open_file("root/store/prog");

		elf->name = arena_printf(&arena, "%s/run/prog", names[i]);
		if (!debugfile_find(&files, elf, "/run/prog"))
			fail_msg("--sysroot %s", names[i]);
	}
	assert_int_equal(chdir("/"), 0);
	remove_files();
}

/* Cut short everywhere, and names that would lead elsewhere: no link at all. */
static void test_damaged_debuglinks(void **state)
{
	struct bytes debug = debug_image(no_id), link = debuglink("prog.dbg", slow_crc(debug));

	(void)state;
	write_file("bin/prog.dbg", debug);
	for (size_t len = 1; len < link.len; len++) {
		struct debugfiles files = searcher();

		write_file("bin/prog", module_image(no_id, bytes_part(link, 0, len)));
		assert_null(debugfile_find(&files, open_file("bin/prog"), "/run/prog"));
		assert_null(files.refused);
	}
	for (int i = 0; i < 2; i++) {
		struct debugfiles files = searcher();

		link = debuglink(i ? "" : "../bin/prog.dbg", slow_crc(debug));
		write_file("bin/prog", module_image(no_id, link));
		assert_null(debugfile_find(&files, open_file("bin/prog"), "/run/prog"));
	}
	remove_files();
}

static void test_long_build_ids(void **state)
{
	uint8_t *bytes = arena_alloc(&arena, 5000, 1);

	(void)state;
	for (size_t len = 1; len <= 5000; len = len * 4 + 996) {
		struct debugfiles files = searcher();

		write_file("bin/prog", module_image((struct bytes){bytes, len}, no_id));
		assert_null(debugfile_find(&files, open_file("bin/prog"), "/run/prog"));
		assert_null(files.refused);
	}
	remove_files();
}

/* ---- Companions ---- */

static void test_alternate(void **state)
{
	static const struct {
		const char *name, *at;
	} places[] = {
		{"../dwz/x.debug", "dwz/x.debug"},
		{"/usr/lib/debug/.dwz/x.debug", "root/usr/lib/debug/.dwz/x.debug"},
		{"/elsewhere/x.debug", "dir/.dwz/x.debug"},
		{"/elsewhere/x.debug", "dir/.build-id/ab/cdef01.debug"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(places); i++) {
		for (int right = 0; right < 2; right++) {
			struct debugfiles files = searcher();
			struct elf *found, *from;

			write_file("bin/prog", module_image(id, no_id));
			write_file(places[i].at, debug_image(right ? id : other_id));
			from = open_file("bin/prog");
			found = debugfile_find_alternate(&files, from, places[i].name, id);
			assert_int_equal(found != NULL, right);
			assert_int_equal(files.refused == NULL, right);
			remove_files();
		}
	}
}

/* A DWARF 5 split unit's header, 32- or 64-bit. */
static struct bytes dwo_image(uint64_t dwo_id, bool is_64)
{
	uint8_t *at = arena_alloc(&arena, 64, 1);
	size_t n = 0;
	struct image_section section;
	struct image image = {.sections = &section, .section_count = 1};

	memset(at, is_64 ? 0xff : 0x10, 4);
	n = is_64 ? 12 : 4;
	at[n] = 5;
	at[n + 2] = 5;
	at[n + 3] = 8;
	n += is_64 ? 12 : 8;
	memcpy(at + n, &dwo_id, 8);
	section = image_plain(".debug_info.dwo", (struct bytes){at, n + 8});
	return image_make(&arena, &image);
}

static void test_dwo(void **state)
{
	static const struct {
		const char *name, *directory, *at;
	} places[] = {
		{"/build/a.dwo", NULL, "root/build/a.dwo"},
		{"obj/a.dwo", "/build", "root/build/obj/a.dwo"},
		{"obj/a.dwo", "/build", "bin/obj/a.dwo"},
		{"obj/a.dwo", "/build", "bin/a.dwo"},
		{"obj/a.dwo", NULL, "dir/obj/a.dwo"},
		{"/build/obj/a.dwo", NULL, "dir/a.dwo"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(places); i++) {
		for (int right = 0; right < 2; right++) {
			struct debugfiles files = searcher();
			struct elf *found;

			write_file("bin/prog", module_image(id, no_id));
			write_file(places[i].at, dwo_image(right ? 7 : 8, i & 1));
			found = debugfile_find_dwo(&files, open_file("bin/prog"),
						   places[i].name, places[i].directory, 7);
			if (!found != !right)
				fail_msg("%s at %s", places[i].name, places[i].at);
			assert_int_equal(files.refused == NULL, right);
			remove_files();
		}
	}
}

/* Absolute names in files of a container are never files of this machine; those in our own
 * files are. */
static void test_names_of_a_container(void **state)
{
	static const struct {
		bool is_process;
		const char *binary;
		bool found;
	} cases_here[] = {
		{true, "root/bin/prog", false},
		{false, "root/bin/prog", true}, /* --sysroot: built on this machine, perhaps */
		{true, "bin/prog", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases_here); i++) {
		struct debugfiles files = searcher();
		struct elf *from;
		const char *dwo = in_top("host/a.dwo"), *dwz = in_top("host/x.debug");

		files.sysroot_is_process = cases_here[i].is_process;
		write_file(cases_here[i].binary, module_image(id, no_id));
		write_file("host/a.dwo", dwo_image(7, false));
		write_file("host/x.debug", debug_image(other_id));
		from = open_file(cases_here[i].binary);
		assert_int_equal(debugfile_find_dwo(&files, from, dwo, NULL, 7) != NULL,
				 cases_here[i].found);
		assert_int_equal(debugfile_find_dwo(&files, from, "a.dwo", in_top("host"), 7) !=
					 NULL,
				 cases_here[i].found);
		assert_int_equal(debugfile_find_alternate(&files, from, dwz, other_id) != NULL,
				 cases_here[i].found);
		remove_files();
	}
}

static void test_dwp(void **state)
{
	static const struct {
		const char *binary, *at;
	} places[] = {
		{"bin/prog", "bin/prog.dwp"},
		{"bin/prog.debug", "bin/prog.debug.dwp"},
		{"bin/prog.debug", "bin/prog.dwp"},
		{"bin/prog", "dir/prog.dwp"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(places); i++) {
		struct debugfiles files = searcher();

		write_file(places[i].binary, module_image(id, no_id));
		assert_null(debugfile_find_dwp(&files, open_file(places[i].binary)));
		write_file(places[i].at, dwo_image(7, false));
		assert_non_null(debugfile_find_dwp(&files, open_file(places[i].binary)));
		remove_files();
	}
}

static void test_embedded_is_damaged(void **state)
{
	const struct image_section section =
		image_plain(".gnu_debugdata", (struct bytes){(const uint8_t *)"\xfd"
									      "7zXZ",
							     5});
	struct image image = {.sections = &section, .section_count = 1};
	struct elf elf;
	struct err e = {0};

	(void)state;
	assert_true(elf_open(&elf, &arena, image_make(&arena, &image), "prog", &e));
	assert_null(debugfile_embedded(&elf, &e));
	assert_string_equal(e.text, "prog: section .gnu_debugdata: xz data is cut short");
	e = (struct err){0};
	image.section_count = 0;
	assert_true(elf_open(&elf, &arena, image_make(&arena, &image), "prog", &e));
	assert_null(debugfile_embedded(&elf, &e));
	assert_int_equal(e.kind, ERR_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_next_place_after_a_refusal),
		cmocka_unit_test(test_link_with_its_own_name),
		cmocka_unit_test(test_relative_path_and_symbolic_link),
		cmocka_unit_test(test_links_inside_the_sysroot),
		cmocka_unit_test(test_damaged_debuglinks),
		cmocka_unit_test(test_long_build_ids),
		cmocka_unit_test(test_alternate),
		cmocka_unit_test(test_dwo),
		cmocka_unit_test(test_names_of_a_container),
		cmocka_unit_test(test_dwp),
		cmocka_unit_test(test_embedded_is_damaged),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
