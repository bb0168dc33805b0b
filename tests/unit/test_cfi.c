/* Which FDE covers an address: by the table, without one, with a wrong one, without section headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cfi_maker.h"
#include "elf_image.h"
#include "unwind/cfi.h"

#define TEXT 0x1000
#define SIZE 0x1000
#define EH_FRAME 0x4000

/* Each function has a CFA offset of its own, to be known by. */
static const struct {
	uint64_t ea, size;
	char offset;
} functions[] = {
	{TEXT, 0x10, 0x10},
	{TEXT + 0x10, 0x20, 0x18},
	{TEXT + 0x100, 0x100, 0x20},
	{TEXT + 0x300, 0x80, 0x28},
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static const struct {
	uint64_t ea;
	int64_t offset; /* 0: no FDE */
} lookups[] = {
	{TEXT - 1, 0},        {TEXT, 0x10},
	{TEXT + 0xf, 0x10},   {TEXT + 0x10, 0x18},
	{TEXT + 0x2f, 0x18},  {TEXT + 0x30, 0},
	{TEXT + 0xff, 0},     {TEXT + 0x100, 0x20},
	{TEXT + 0x1ff, 0x20}, {TEXT + 0x200, 0},
	{TEXT + 0x300, 0x28}, {TEXT + 0x37f, 0x28},
	{TEXT + 0x380, 0},    {0, 0},
	{UINT64_MAX, 0},
};

static struct arena arena;

/* Functions in the order of `order`, each as an FDE. */
static void make_functions(struct maker *m, const size_t *order, struct table_entry *entries)
{
	size_t cie = make_cie_x86_64(m, m->is_eh ? "zR" : "");

	for (size_t i = 0; i < FUNCTIONS; i++) {
		size_t f = order[i];
		char program[2] = {0x0e, functions[f].offset};
		size_t off = make_fde(m, cie, functions[f].ea, functions[f].size,
				      (struct bytes){(const uint8_t *)program, 2});

		if (entries)
			entries[f] = (struct table_entry){functions[f].ea, m->ea + off};
	}
}

static const size_t in_order[FUNCTIONS] = {0, 1, 2, 3};
static const size_t shuffled[FUNCTIONS] = {2, 0, 3, 1};

struct fixture {
	struct image_section sections[3];
	struct image image;
	struct elf elf;
	struct module module;
};

static void open_image(struct fixture *f, size_t sections)
{
	struct err e = {.kind = ERR_NONE};

	f->sections[0] = image_code(".text", TEXT, SIZE);
	f->image.sections = f->sections;
	f->image.section_count = sections;
	assert_true(elf_open(&f->elf, &arena, image_make(&arena, &f->image), "image", &e));
	f->module = (struct module){.name = "image", .elf = &f->elf};
}

static struct image_section eh_frame_section(struct bytes contents)
{
	return (struct image_section){
		.name = ".eh_frame",
		.type = SHT_PROGBITS,
		.flags = SHF_ALLOC,
		.ea = EH_FRAME,
		.contents = contents,
	};
}

static int64_t offset_at(struct module *module, uint64_t ea)
{
	struct row row;

	return cfi_row_at(module, &arena, ea, &row, NULL) == CFI_ROW ? row.cfa.offset : 0;
}

static void check_lookups(struct fixture *f)
{
	for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++)
		assert_int_equal(offset_at(&f->module, lookups[i].ea), lookups[i].offset);
}

/* How a table is made wrong, or none. */
static struct bytes table_right(const struct table_entry *entries)
{
	return make_table(&arena, IMAGE_EH_FRAME_HDR, EH_FRAME, entries, FUNCTIONS);
}

static struct bytes table_none(const struct table_entry *entries)
{
	(void)entries;
	return (struct bytes){NULL, 0};
}

static struct bytes changed(struct bytes table, size_t at, uint8_t value)
{
	char *copy = arena_copy(&arena, table.at, table.len);

	copy[at] = (char)value;
	return (struct bytes){(const uint8_t *)copy, table.len};
}

static struct bytes table_omitted(const struct table_entry *entries)
{
	return changed(table_right(entries), 3, 0xff);
}

static struct bytes table_count_omitted(const struct table_entry *entries)
{
	return changed(table_right(entries), 2, 0xff);
}

static struct bytes table_without_fixed_size(const struct table_entry *entries)
{
	return changed(table_right(entries), 3, 0x39);
}

static struct bytes table_of_unknown_encoding(const struct table_entry *entries)
{
	return changed(table_right(entries), 3, 0x2b);
}

static struct bytes table_of_other_version(const struct table_entry *entries)
{
	return changed(table_right(entries), 0, 2);
}

static struct bytes table_counts_too_many(const struct table_entry *entries)
{
	return changed(table_right(entries), 11, 0x7f);
}

static struct bytes table_empty(const struct table_entry *entries)
{
	return make_table(&arena, IMAGE_EH_FRAME_HDR, EH_FRAME, entries, 0);
}

static struct bytes table_incomplete(const struct table_entry *entries)
{
	return make_table(&arena, IMAGE_EH_FRAME_HDR, EH_FRAME, entries, FUNCTIONS - 2);
}

static struct bytes table_unsorted(const struct table_entry *entries)
{
	struct table_entry wrong[FUNCTIONS];

	for (size_t i = 0; i < FUNCTIONS; i++)
		wrong[i] = entries[FUNCTIONS - 1 - i];
	return table_right(wrong);
}

/* Right functions, but the FDEs of others. */
static struct bytes table_lying(const struct table_entry *entries)
{
	struct table_entry wrong[FUNCTIONS];

	for (size_t i = 0; i < FUNCTIONS; i++)
		wrong[i] = (struct table_entry){entries[i].function,
						entries[FUNCTIONS - 1 - i].fde};
	return make_table(&arena, IMAGE_EH_FRAME_HDR, EH_FRAME, wrong, FUNCTIONS);
}

static struct bytes table_to_nowhere(const struct table_entry *entries)
{
	struct table_entry wrong[FUNCTIONS];

	for (size_t i = 0; i < FUNCTIONS; i++)
		wrong[i] = (struct table_entry){entries[i].function, 0x7fff0000};
	return make_table(&arena, IMAGE_EH_FRAME_HDR, EH_FRAME, wrong, FUNCTIONS);
}

static struct bytes table_of_nonsense(const struct table_entry *entries)
{
	struct bytes table = table_right(entries);
	char *copy = arena_copy(&arena, table.at, table.len);

	memset(copy + 12, 0x77, table.len - 12);
	return (struct bytes){(const uint8_t *)copy, table.len};
}

static const struct {
	const char *name;
	struct bytes (*make)(const struct table_entry *entries);
} tables[] = {
	{"right", table_right},
	{"none", table_none},
	{"omitted", table_omitted},
	{"count omitted", table_count_omitted},
	{"without a fixed size", table_without_fixed_size},
	{"relative to something unknown", table_of_unknown_encoding},
	{"of another version", table_of_other_version},
	{"counts too many", table_counts_too_many},
	{"empty", table_empty},
	{"incomplete", table_incomplete},
	{"unsorted", table_unsorted},
	{"lying about FDEs", table_lying},
	{"pointing nowhere", table_to_nowhere},
	{"nonsense", table_of_nonsense},
};

static void open_with_table(struct fixture *f, struct bytes (*make)(const struct table_entry *),
			    const size_t *order)
{
	struct table_entry entries[FUNCTIONS];
	struct maker m = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};

	make_functions(&m, order, entries);
	*f = (struct fixture){.image.eh_frame_hdr = make(entries)};
	f->sections[1] = eh_frame_section(made(&m));
	open_image(f, 2);
}

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		struct fixture f;

		print_message("%s\n", tables[i].name);
		open_with_table(&f, tables[i].make, in_order);
		check_lookups(&f);
		open_with_table(&f, tables[i].make, shuffled);
		check_lookups(&f);
	}
}

/* A table cut anywhere: all is found still. */
static void test_table_cut_short(void **state)
{
	struct table_entry entries[FUNCTIONS];
	struct maker m = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};
	struct bytes table;

	(void)state;
	make_functions(&m, in_order, entries);
	table = table_right(entries);
	for (size_t size = 0; size < table.len; size++) {
		struct fixture f = {.image.eh_frame_hdr = {table.at, size}};

		f.sections[1] = eh_frame_section(made(&m));
		open_image(&f, 2);
		check_lookups(&f);
	}
}

/* The section cut anywhere: what is found is right. */
static void test_section_cut_short(void **state)
{
	struct table_entry entries[FUNCTIONS];
	struct maker m = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};

	(void)state;
	make_functions(&m, in_order, entries);
	for (size_t size = 0; size < m.out.count; size++) {
		struct fixture f = {.image.eh_frame_hdr = table_right(entries)};

		f.sections[1] = eh_frame_section((struct bytes){m.out.at, size});
		open_image(&f, 2);
		for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++) {
			int64_t offset = offset_at(&f.module, lookups[i].ea);

			assert_true(offset == 0 || offset == lookups[i].offset);
		}
	}
}

/* Through PT_GNU_EH_FRAME alone, and then with a table that is of no use but says where .eh_frame is. */
static void test_without_section_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct table_entry entries[FUNCTIONS];
		struct maker m = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};
		struct fixture f = {.image.machine = 0};

		make_functions(&m, shuffled, entries);
		make_uint(&m, 0, 4);
		/* Behind the terminator stands what must not be taken for an FDE. */
		make_bytes(&m, BYTES("\x10\0\0\0\0\0\0\0garbage and more"));
		f.image.eh_frame_hdr = i == 0   ? table_right(entries)
				       : i == 1 ? table_omitted(entries)
						: table_unsorted(entries);
		f.sections[1] = eh_frame_section(made(&m));
		open_image(&f, 2);
		f.elf.section_count = 0;
		check_lookups(&f);
	}
}

static void test_terminator_in_the_middle(void **state)
{
	struct maker m = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};
	struct fixture f = {.image.machine = 0};
	size_t cie;

	(void)state;
	make_cie_x86_64(&m, "zR");
	make_uint(&m, 0, 4);
	cie = make_cie_x86_64(&m, "zR");
	make_fde(&m, cie, TEXT, 0x10, BYTES("\x0e\x10"));
	f.sections[1] = eh_frame_section(made(&m));
	open_image(&f, 2);
	assert_int_equal(offset_at(&f.module, TEXT + 5), 0x10);
}

static void test_debug_frame(void **state)
{
	(void)state;
	for (size_t wide = 0; wide < 2; wide++) {
		struct maker m = {.arena = &arena, .is_64bit = wide};
		struct fixture f = {.image.machine = 0};
		struct row row;

		make_functions(&m, shuffled, NULL);
		f.sections[1] = image_plain(".debug_frame", made(&m));
		open_image(&f, 2);
		check_lookups(&f);
		assert_int_equal(cfi_row_at(&f.module, &arena, TEXT, &row, NULL), CFI_ROW);
		assert_true(row.from_debug_frame);
	}
}

/* What a linker threw away does not cover what it kept. */
static void test_debug_frame_tombstones(void **state)
{
	static const uint64_t nowhere[] = {0, 1, UINT64_MAX - 0x2000, 0x10000};
	struct maker m = {.arena = &arena};
	struct fixture f = {.image.machine = 0};
	size_t cie;

	(void)state;
	cie = make_cie_x86_64(&m, "");
	for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
		make_fde(&m, cie, nowhere[i], 0x1fff, BYTES("\x0e\x7f"));
	make_fde(&m, cie, TEXT, 0x10, BYTES("\x0e\x10"));
	f.sections[1] = image_plain(".debug_frame", made(&m));
	open_image(&f, 2);
	assert_int_equal(offset_at(&f.module, TEXT), 0x10);
	assert_int_equal(offset_at(&f.module, TEXT + 0x10), 0);
	assert_int_equal(offset_at(&f.module, 1), 0);
	assert_int_equal(offset_at(&f.module, 0x10000), 0);
}

/* .eh_frame has one function, .debug_frame of the debug file another. */
static void test_debug_file(void **state)
{
	struct maker eh = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};
	struct maker debug = {.arena = &arena};
	struct fixture f = {.image.machine = 0}, d = {.image.machine = 0};
	struct err e = {.kind = ERR_NONE};
	struct row row;

	(void)state;
	make_fde(&eh, make_cie_x86_64(&eh, "zR"), TEXT, 0x10, BYTES("\x0e\x10"));
	f.sections[1] = eh_frame_section(made(&eh));
	open_image(&f, 2);
	make_fde(&debug, make_cie_x86_64(&debug, ""), TEXT + 0x10, 0x20, BYTES("\x0e\x18"));
	d.sections[1] = image_plain(".debug_frame", made(&debug));
	open_image(&d, 2);
	assert_false(cfi_add_debug_file(&f.module, &arena, &f.elf, &e));
	assert_string_equal(e.text, "image: no .debug_frame");
	assert_true(cfi_add_debug_file(&f.module, &arena, &d.elf, &e));
	assert_int_equal(offset_at(&f.module, TEXT), 0x10);
	assert_int_equal(offset_at(&f.module, TEXT + 0x10), 0x18);
	assert_int_equal(cfi_row_at(&f.module, &arena, TEXT, &row, NULL), CFI_ROW);
	assert_false(row.from_debug_frame);
}

struct finder {
	struct elf *found;
	unsigned asked;
};

static struct elf *find(void *context, struct module *module)
{
	struct finder *finder = context;

	assert_non_null(module->elf);
	finder->asked++;
	return finder->found;
}

/* Asked once a module, whatever the answer; a file without .debug_frame is no help. */
static void test_look_for_debug_file(void **state)
{
	struct maker debug = {.arena = &arena};
	struct fixture f = {.image.machine = 0}, g = {.image.machine = 0},
		       d = {.image.machine = 0};
	struct module no_file = {.name = "gone"};
	struct finder finder = {.found = NULL};
	struct cfi_debug_files files = {find, &finder};

	(void)state;
	open_image(&f, 1);
	open_image(&g, 1);
	make_fde(&debug, make_cie_x86_64(&debug, ""), TEXT, 0x20, BYTES("\x0e\x18"));
	d.sections[1] = image_plain(".debug_frame", made(&debug));
	open_image(&d, 2);
	assert_false(cfi_look_for_debug_file(&f.module, &arena,
					     &(struct cfi_debug_files){NULL, NULL}));
	assert_false(cfi_look_for_debug_file(&no_file, &arena, &files));
	assert_int_equal(finder.asked, 0);
	assert_false(cfi_look_for_debug_file(&f.module, &arena, &files));
	finder.found = &d.elf;
	assert_false(cfi_look_for_debug_file(&f.module, &arena, &files));
	assert_int_equal(finder.asked, 1);
	assert_true(cfi_look_for_debug_file(&g.module, &arena, &files));
	assert_false(cfi_look_for_debug_file(&g.module, &arena, &files));
	assert_int_equal(finder.asked, 2);
	assert_int_equal(offset_at(&g.module, TEXT), 0x18);
}

static void test_damaged_program(void **state)
{
	struct maker m = {.arena = &arena, .ea = EH_FRAME, .is_eh = true};
	struct fixture f = {.image.machine = 0};
	struct err e = {.kind = ERR_NONE};
	struct row row;

	(void)state;
	make_fde(&m, make_cie_x86_64(&m, "zR"), TEXT, 0x10, BYTES("\x41\x3f"));
	f.sections[1] = eh_frame_section(made(&m));
	open_image(&f, 2);
	assert_int_equal(cfi_row_at(&f.module, &arena, TEXT, &row, &e), CFI_ROW);
	assert_int_equal(cfi_row_at(&f.module, &arena, TEXT + 1, &row, &e), CFI_BAD);
	assert_string_equal(e.text, "FDE of 0x1000: call frame instruction 0x3f");
}

static void test_no_cfi(void **state)
{
	struct fixture f = {.image.machine = 0};
	struct module without_file = {.name = "gone"};
	struct row row;

	(void)state;
	open_image(&f, 1);
	assert_int_equal(cfi_row_at(&f.module, &arena, TEXT, &row, NULL), CFI_NONE);
	assert_int_equal(cfi_row_at(&without_file, &arena, TEXT, &row, NULL), CFI_NONE);
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_table_cut_short),
		cmocka_unit_test(test_section_cut_short),
		cmocka_unit_test(test_without_section_headers),
		cmocka_unit_test(test_terminator_in_the_middle),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_debug_frame_tombstones),
		cmocka_unit_test(test_debug_file),
		cmocka_unit_test(test_look_for_debug_file),
		cmocka_unit_test(test_damaged_program),
		cmocka_unit_test(test_no_cfi),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
