/* Load bias per mapping for the layouts that linkers make, and the refusal of wrong files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "module/module.h"

#define SEGMENTS 3

/* An ELF file of program headers only, in a temporary file. */
struct layout {
	const char *name;
	uint16_t type;
	struct {
		uint32_t flags;
		uint64_t off, ea, size;
	} segments[SEGMENTS];
	struct {
		uint64_t start, end, off;
		const char *permissions;
		uint64_t bias;
	} maps[SEGMENTS];
};

/* clang-format off */
static const struct layout layouts[] = {
	{"bfd, PIE, separate code", ET_DYN,
	 {{PF_R, 0, 0, 0x500}, {PF_R | PF_X, 0x1000, 0x1000, 0x800}, {PF_R | PF_W, 0x2db8, 0x3db8, 0x250}},
	 {{0x555555554000, 0x555555555000, 0, "r--p", 0x555555554000},
	  {0x555555555000, 0x555555556000, 0x1000, "r-xp", 0x555555554000},
	  {0x555555557000, 0x555555558000, 0x2000, "rw-p", 0x555555554000}}},
	{"lld: text at an ea other than its offset", ET_DYN,
	 {{PF_R, 0, 0, 0x654}, {PF_R | PF_X, 0x660, 0x1660, 0x180}, {PF_R | PF_W, 0x7e0, 0x27e0, 0x190}},
	 {{0x7f0000000000, 0x7f0000001000, 0, "r--p", 0x7f0000000000},
	  {0x7f0000001000, 0x7f0000002000, 0, "r-xp", 0x7f0000000000},
	  {0x7f0000002000, 0x7f0000003000, 0, "rw-p", 0x7f0000000000}}},
	{"ET_EXEC: no bias", ET_EXEC,
	 {{PF_R, 0, 0x400000, 0x500}, {PF_R | PF_X, 0x1000, 0x401000, 0x800}, {PF_R | PF_W, 0x2db8, 0x403db8, 0x250}},
	 {{0x400000, 0x401000, 0, "r--p", 0},
	  {0x401000, 0x402000, 0x1000, "r-xp", 0},
	  {0x403000, 0x404000, 0x2000, "rw-p", 0}}},
	{"a prelinked library with its text first", ET_DYN,
	 {{PF_R | PF_X, 0, 0x3000000, 0x1800}, {PF_R | PF_W, 0x2000, 0x3202000, 0x100}, {0, 0, 0, 0}},
	 {{0x7f0000000000, 0x7f0000002000, 0, "r-xp", 0x7f0000000000 - 0x3000000},
	  {0x7f0000202000, 0x7f0000203000, 0x2000, "rw-p", 0x7f0000000000 - 0x3000000},
	  {0, 0, 0, NULL, 0}}},
	{"two executable segments at unrelated eas", ET_DYN,
	 {{PF_R | PF_X, 0, 0, 0x1000}, {PF_R | PF_X, 0x2000, 0x602000, 0x1000}, {0, 0, 0, 0}},
	 {{0x7f0000000000, 0x7f0000001000, 0, "r-xp", 0x7f0000000000},
	  {0x7f0000602000, 0x7f0000603000, 0x2000, "r-xp", 0x7f0000000000},
	  {0, 0, 0, NULL, 0}}},
	{"relro made a part of data read-only", ET_DYN,
	 {{PF_R | PF_X, 0, 0, 0x1000}, {PF_R | PF_W, 0x1db8, 0x2db8, 0x1250}, {0, 0, 0, 0}},
	 {{0x7f0000000000, 0x7f0000001000, 0, "r-xp", 0x7f0000000000},
	  {0x7f0000002000, 0x7f0000003000, 0x1000, "r--p", 0x7f0000000000},
	  {0x7f0000003000, 0x7f0000004000, 0x2000, "rw-p", 0x7f0000000000}}},
	{"pages of 64 KiB: all in one page of the file", ET_DYN,
	 {{PF_R | PF_X, 0, 0, 0x8f4}, {PF_R | PF_W, 0xd98, 0x10d98, 0x278}, {0, 0, 0, 0}},
	 {{0x7f0000000000, 0x7f0000010000, 0, "r-xp", 0x7f0000000000},
	  {0x7f0000010000, 0x7f0000020000, 0, "r--p", 0x7f0000000000},
	  {0, 0, 0, NULL, 0}}},
};
/* clang-format on */

static int layout_file(const struct layout *layout)
{
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					 EV_CURRENT},
			     .e_type = layout->type,
			     .e_machine = EM_X86_64,
			     .e_phoff = sizeof header,
			     .e_phentsize = sizeof(Elf64_Phdr)};
	char path[] = "stacker-test-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	while (header.e_phnum < SEGMENTS && layout->segments[header.e_phnum].size)
		header.e_phnum++;
	assert_int_equal(write(fd, &header, sizeof header), sizeof header);
	for (int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment = {.p_type = PT_LOAD,
				      .p_flags = layout->segments[i].flags,
				      .p_offset = layout->segments[i].off,
				      .p_vaddr = layout->segments[i].ea,
				      .p_filesz = layout->segments[i].size,
				      .p_memsz = layout->segments[i].size,
				      .p_align = 0x1000};

		assert_int_equal(write(fd, &segment, sizeof segment), sizeof segment);
	}
	return fd;
}

static size_t layout_maps(const struct layout *layout, struct map *maps)
{
	size_t count = 0;

	for (; count < SEGMENTS && layout->maps[count].permissions; count++) {
		maps[count] = (struct map){.start = layout->maps[count].start,
					   .end = layout->maps[count].end,
					   .off = layout->maps[count].off,
					   .path = "/lib/x.so"};
		memcpy(maps[count].permissions, layout->maps[count].permissions, 5);
	}
	return count;
}

static void check_bias(void **state)
{
	(void)state;
	for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++) {
		const struct layout *layout = &layouts[l];
		struct arena arena = {0};
		struct map maps[SEGMENTS];
		struct snapshot_module record = {.path = "/lib/x.so"};
		struct snapshot snapshot = {.arch = &arch_x86_64,
					    .maps = maps,
					    .map_count = layout_maps(layout, maps),
					    .modules = &record,
					    .module_count = 1};
		const struct module_source source = {.why = NULL};
		int fd = layout_file(layout);
		struct modules modules;

		print_message("%s\n", layout->name);
		modules_open_live(&modules, &arena, &snapshot, &fd, &source);
		assert_null(modules.at[0].why);
		assert_string_equal(modules.at[0].name, "x.so");
		for (size_t i = 0; i < snapshot.map_count; i++) {
			const struct module_range *range =
				module_range_at(&modules, maps[i].end - 1);

			assert_non_null(range);
			assert_true(range->bias == layout->maps[i].bias);
			assert_int_equal(range->executable, maps[i].permissions[2] == 'x');
			assert_ptr_equal(module_range_at(&modules, maps[i].start), range);
		}
		assert_null(module_range_at(&modules, maps[0].start - 1));
		assert_null(module_range_at(&modules, UINT64_MAX));
		close(fd);
		arena_free(&arena);
	}
}

/* Code replaced by anonymous memory between two mappings of its file stays the file's; other anonymous
 * code does not become so. */
static void check_remapped(void **state)
{
	struct arena arena = {0};
	struct map maps[] = {
		{.start = 0x555555554000,
		 .end = 0x555555555000,
		 .permissions = "r--p",
		 .path = "/lib/x.so"},
		{.start = 0x555555555000,
		 .end = 0x555555556000,
		 .permissions = "r-xp",
		 .path = "",
		 .module = -1},
		{.start = 0x555555557000,
		 .end = 0x555555558000,
		 .off = 0x2000,
		 .permissions = "rw-p",
		 .path = "/lib/x.so"},
		{.start = 0x555555559000,
		 .end = 0x55555555a000,
		 .permissions = "r-xp",
		 .path = "",
		 .module = -1},
	};
	struct snapshot_module record = {.path = "/lib/x.so"};
	struct snapshot snapshot = {.arch = &arch_x86_64,
				    .maps = maps,
				    .map_count = sizeof maps / sizeof maps[0],
				    .modules = &record,
				    .module_count = 1};
	const struct module_range *range;
	const struct module_source source = {.why = NULL};
	int fd = layout_file(&layouts[0]);
	struct modules modules;

	(void)state;
	modules_open_live(&modules, &arena, &snapshot, &fd, &source);
	range = module_range_at(&modules, 0x555555555123);
	assert_non_null(range);
	assert_true(range->bias == 0x555555554000 && range->executable);
	assert_null(module_range_at(&modules, 0x555555559123));
	maps[1].start = 0x555555556000; /* where the file has no code */
	maps[1].end = 0x555555557000;
	modules_open_live(&modules, &arena, &snapshot, &fd, &source);
	assert_null(module_range_at(&modules, 0x555555556123));
	close(fd);
	arena_free(&arena);
}

/* An ELF file that is headers and a build-id. */
struct built {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Nhdr note;
	char name[4];
	uint8_t build_id[4];
};

static struct built built_image(uint8_t last)
{
	struct built image = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_phoff = offsetof(struct built, segments),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.segments = {{.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_filesz = sizeof image,
			      .p_memsz = sizeof image},
			     {.p_type = PT_NOTE,
			      .p_flags = PF_R,
			      .p_offset = offsetof(struct built, note),
			      .p_vaddr = offsetof(struct built, note),
			      .p_filesz = sizeof image - offsetof(struct built, note),
			      .p_memsz = sizeof image - offsetof(struct built, note),
			      .p_align = 4}},
		.note = {.n_namesz = 4, .n_descsz = 4, .n_type = NT_GNU_BUILD_ID},
		.name = "GNU",
		.build_id = {0xab, 0xcd, 0xef, last},
	};

	return image;
}

/* The file of build 1, found where an image runs whose first page is `head`. */
static const char *live_refusal(struct bytes head, bool unproven, const char **build_id)
{
	static struct arena arena;
	struct built image = built_image(1);
	struct snapshot_module record = {.path = "/lib/x.so"};
	struct snapshot snapshot = {.arch = &arch_x86_64,
				    .modules = &record,
				    .module_count = 1};
	struct module_source source = {.first_page = head, .is_unproven = unproven};
	FILE *file = tmpfile();
	struct modules modules;
	int fd = fileno(file);

	assert_int_equal(write(fd, &image, sizeof image), sizeof image);
	modules_open_live(&modules, &arena, &snapshot, &fd, &source);
	fclose(file);
	assert_true(!modules.at[0].elf == !!modules.at[0].why);
	*build_id = modules.at[0].build_id;
	return modules.at[0].why;
}

/* The mapped inode itself may have a memory that is not readable; a file at the same path must
 * prove that it is the one that runs. Whatever the file has, the image's build-id is recorded. */
static void check_live_identity(void **state)
{
	struct built one = built_image(1), two = built_image(2);
	struct bytes same = {(const uint8_t *)&one, sizeof one},
		     other = {(const uint8_t *)&two, sizeof two},
		     cut = {(const uint8_t *)&one, sizeof one.header}, none = {NULL, 0};
	const char *another = "the file has been replaced since it was mapped", *id;

	(void)state;
	assert_null(live_refusal(same, true, &id));
	assert_string_equal(id, "abcdef01");
	assert_non_null(strstr(live_refusal(other, true, &id),
			       "has build-id abcdef01, the process ran abcdef02"));
	assert_string_equal(id, "abcdef02");
	assert_string_equal(live_refusal(none, true, &id), another);
	assert_null(id);
	assert_string_equal(live_refusal(cut, true, &id), another);
	assert_null(live_refusal(none, false, &id));
	assert_string_equal(id, "abcdef01");
	assert_null(live_refusal(same, false, &id));
	assert_non_null(strstr(live_refusal(other, false, &id),
			       "has build-id abcdef01, the process ran abcdef02"));
}

/* No file: the recorded bias is used, the reason stays. */
static void check_no_file(void **state)
{
	struct arena arena = {0};
	struct map map = {.start = 0x7f0000001000,
			  .end = 0x7f0000002000,
			  .off = 0x1000,
			  .permissions = "r-xp",
			  .path = "/nowhere/x.so"};
	struct snapshot_module record = {.path = "/nowhere/x.so",
					 .has_load_bias = true,
					 .load_bias = 0x7f0000000000};
	struct snapshot snapshot = {.arch = &arch_x86_64,
				    .maps = &map,
				    .map_count = 1,
				    .modules = &record,
				    .module_count = 1};
	struct module_search search = {0};
	struct modules modules;

	(void)state;
	assert_true(modules_open_offline(&modules, &arena, &snapshot, &search, NULL));
	assert_null(modules.at[0].elf);
	assert_string_equal(modules.at[0].why, "/nowhere/x.so: No such file or directory");
	assert_true(module_range_at(&modules, 0x7f0000001800)->bias == 0x7f0000000000);
	arena_free(&arena);
}

static void check_refusals(void **state)
{
	struct arena arena = {0};
	char path[64];
	int fd = layout_file(&layouts[0]);
	struct snapshot_module record = {.path = "/bin/x", .is_executable = true};
	struct snapshot snapshot = {.arch = &arch_aarch64,
				    .modules = &record,
				    .module_count = 1};
	struct named_file file;
	struct module_search search = {.executable = &file};
	struct modules modules;
	struct err e = {0};

	(void)state;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
	assert_true(named_file_open(&file, &arena, path, &e));
	assert_false(modules_open_offline(&modules, &arena, &snapshot, &search, &e));
	assert_int_equal(e.kind, ERR_MISMATCH);
	assert_non_null(strstr(e.text, "is for x86_64, the process is aarch64"));
	snapshot.arch = &arch_x86_64;
	record.build_id = "abcd";
	assert_false(modules_open_offline(&modules, &arena, &snapshot, &search, &e));
	assert_non_null(strstr(e.text, "has build-id (none), the process ran abcd"));
	search.any_build_id = true;
	assert_true(modules_open_offline(&modules, &arena, &snapshot, &search, &e));
	assert_non_null(modules.at[0].elf);
	close(fd);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_bias),          cmocka_unit_test(check_remapped),
		cmocka_unit_test(check_live_identity), cmocka_unit_test(check_no_file),
		cmocka_unit_test(check_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
