/* Forms and abbreviations: each form read, stepped over, and cut short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dwarf/context.h"
#include "dwarf/die.h"
#include "dwarf_writer.h"

/* At most 20 bytes of a value. */
struct form_case {
	const char *name;
	unsigned form;
	struct encoding encoding;
	const char *value;
	size_t size;
	uint64_t want;
	size_t want_block; /* length of the block; 0: an integer is wanted */
};

/* clang-format off */
#define E(version, offset_size) {version, 8, offset_size}
#define V(text) text, sizeof text - 1

static const struct form_case forms[] = {
	{"addr", DW_FORM_addr, E(4, 4), V("\1\2\3\4\5\6\7\x08"), 0x0807060504030201, 0},
	{"addr of 4 bytes", DW_FORM_addr, {4, 4, 4}, V("\1\2\3\4"), 0x04030201, 0},
	{"data1", DW_FORM_data1, E(4, 4), V("\xff"), 0xff, 0},
	{"data2", DW_FORM_data2, E(4, 4), V("\xfe\xff"), 0xfffe, 0},
	{"data4", DW_FORM_data4, E(4, 4), V("\1\0\0\x80"), 0x80000001, 0},
	{"data8", DW_FORM_data8, E(4, 4), V("\1\0\0\0\0\0\0\x80"), 0x8000000000000001, 0},
	{"data16", DW_FORM_data16, E(5, 4), V("0123456789abcdef"), 0, 16},
	{"sdata", DW_FORM_sdata, E(4, 4), V("\x80\x7f"), (uint64_t)-128, 0},
	{"udata", DW_FORM_udata, E(4, 4), V("\xe5\x8e\x26"), 624485, 0},
	{"udata, padded", DW_FORM_udata, E(4, 4), V("\x81\x80\x80\0"), 1, 0},
	{"string", DW_FORM_string, E(4, 4), V("name\0"), 0, 4},
	{"block1", DW_FORM_block1, E(4, 4), V("\3abc"), 0, 3},
	{"block2", DW_FORM_block2, E(4, 4), V("\3\0abc"), 0, 3},
	{"block4", DW_FORM_block4, E(4, 4), V("\3\0\0\0abc"), 0, 3},
	{"block", DW_FORM_block, E(4, 4), V("\x83\0abc"), 0, 3},
	{"exprloc", DW_FORM_exprloc, E(4, 4), V("\3abc"), 0, 3},
	{"flag", DW_FORM_flag, E(4, 4), V("\1"), 1, 0},
	{"flag_present", DW_FORM_flag_present, E(4, 4), V(""), 1, 0},
	{"strp", DW_FORM_strp, E(4, 4), V("\1\0\0\0"), 1, 0},
	{"strp, 64-bit", DW_FORM_strp, E(4, 8), V("\1\0\0\0\1\0\0\0"), 0x100000001, 0},
	{"line_strp", DW_FORM_line_strp, E(5, 4), V("\1\0\0\0"), 1, 0},
	{"strp_sup", DW_FORM_strp_sup, E(5, 8), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"GNU_strp_alt", DW_FORM_GNU_strp_alt, E(4, 4), V("\1\0\0\0"), 1, 0},
	{"sec_offset", DW_FORM_sec_offset, E(4, 4), V("\1\0\0\0"), 1, 0},
	{"ref1", DW_FORM_ref1, E(4, 4), V("\x80"), 0x80, 0},
	{"ref2", DW_FORM_ref2, E(4, 4), V("\1\x80"), 0x8001, 0},
	{"ref4", DW_FORM_ref4, E(4, 4), V("\1\0\0\0"), 1, 0},
	{"ref8", DW_FORM_ref8, E(4, 4), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"ref_udata", DW_FORM_ref_udata, E(4, 4), V("\x80\1"), 128, 0},
	{"ref_addr, version 2", DW_FORM_ref_addr, E(2, 4), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"ref_addr, version 3", DW_FORM_ref_addr, E(3, 4), V("\1\0\0\0"), 1, 0},
	{"ref_addr, 64-bit", DW_FORM_ref_addr, E(3, 8), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"ref_sig8", DW_FORM_ref_sig8, E(4, 4), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"ref_sup4", DW_FORM_ref_sup4, E(5, 8), V("\1\0\0\0"), 1, 0},
	{"ref_sup8", DW_FORM_ref_sup8, E(5, 4), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"GNU_ref_alt", DW_FORM_GNU_ref_alt, E(4, 8), V("\1\0\0\0\0\0\0\0"), 1, 0},
	{"strx", DW_FORM_strx, E(5, 4), V("\x80\1"), 128, 0},
	{"strx1", DW_FORM_strx1, E(5, 4), V("\x80"), 128, 0},
	{"strx2", DW_FORM_strx2, E(5, 4), V("\0\1"), 256, 0},
	{"strx3", DW_FORM_strx3, E(5, 4), V("\0\0\1"), 65536, 0},
	{"strx4", DW_FORM_strx4, E(5, 4), V("\0\0\0\1"), 1 << 24, 0},
	{"addrx", DW_FORM_addrx, E(5, 4), V("\x80\1"), 128, 0},
	{"addrx1", DW_FORM_addrx1, E(5, 4), V("\x80"), 128, 0},
	{"addrx2", DW_FORM_addrx2, E(5, 4), V("\0\1"), 256, 0},
	{"addrx3", DW_FORM_addrx3, E(5, 4), V("\0\0\1"), 65536, 0},
	{"addrx4", DW_FORM_addrx4, E(5, 4), V("\0\0\0\1"), 1 << 24, 0},
	{"loclistx", DW_FORM_loclistx, E(5, 4), V("\x80\1"), 128, 0},
	{"rnglistx", DW_FORM_rnglistx, E(5, 4), V("\x80\1"), 128, 0},
	{"GNU_addr_index", DW_FORM_GNU_addr_index, E(4, 4), V("\x80\1"), 128, 0},
	{"GNU_str_index", DW_FORM_GNU_str_index, E(4, 4), V("\x80\1"), 128, 0},
	{"implicit_const", DW_FORM_implicit_const, E(5, 4), V(""), (uint64_t)-5, 0},
	{"indirect", DW_FORM_indirect, E(4, 4), V("\x0b\x2a"), 42, 0},
	{"indirect block", DW_FORM_indirect, E(4, 4), V("\x0a\2ab"), 0, 2},
};

/* clang-format on */

#define FORM_COUNT (sizeof forms / sizeof forms[0])

static void check_forms_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct form_case *c = &forms[i];
		struct reader r =
			reader_over((struct bytes){(const uint8_t *)c->value, c->size});
		struct form_value value;

		form_read(&r, c->encoding, c->form, -5, &value);
		if (reader_failed(&r) || reader_more(&r) || value.block.len != c->want_block ||
		    (!c->want_block && value.u != c->want))
			fail_msg("%s: 0x%llx, block of %zu", c->name,
				 (unsigned long long)value.u, value.block.len);
	}
}

static void check_forms_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct form_case *c = &forms[i];

		for (size_t len = 0; len < c->size; len++) {
			struct reader r =
				reader_over((struct bytes){(const uint8_t *)c->value, len});
			struct form_value value;

			form_read(&r, c->encoding, c->form, 0, &value);
			if (!reader_failed(&r) || reader_more(&r))
				fail_msg("%s of %zu bytes is taken", c->name, len);
		}
	}
}

static const struct {
	const char *name;
	unsigned form;
	const char *value;
	size_t size;
} lies[] = {
	{"no such form", 0x02, V("\0\0\0\0")},
	{"no such form either", 0x1f23, V("\0\0\0\0")},
	{"indirect to indirect", DW_FORM_indirect, V("\x16\x16\x0b\1")},
	{"indirect to implicit_const", DW_FORM_indirect, V("\x21")},
	{"block longer than all", DW_FORM_block4,
	 V("\xff\xff\xff\xff"
	   "ab")},
	{"block of 2^63", DW_FORM_block,
	 V("\x80\x80\x80\x80\x80\x80\x80\x80\x80\1"
	   "ab")},
	{"string without an end", DW_FORM_string, V("abc")},
};

static void check_forms_lying(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		struct reader r = reader_over(
			(struct bytes){(const uint8_t *)lies[i].value, lies[i].size});
		struct form_value value;

		form_read(&r, (struct encoding){5, 8, 4}, lies[i].form, 0, &value);
		if (!reader_failed(&r))
			fail_msg("%s is taken", lies[i].name);
	}
}

/* An abbreviation table of its own and a cursor over the bytes of one entry. */
struct entry {
	struct arena arena;
	struct dwarf dwarf;
	struct elf elf;
	struct abbrev_cache cache;
	struct die_cursor cursor;
	const struct abbrev *abbrev;
};

static void entry_open(struct entry *entry, struct bytes table, struct encoding encoding,
		       struct bytes entries)
{
	*entry = (struct entry){0};
	entry->elf.name = "test";
	entry->dwarf.arena = &entry->arena;
	entry->dwarf.main.elf = &entry->elf;
	dwarf_work_begin(&entry->dwarf, 1);
	entry->cursor = (struct die_cursor){
		.dwarf = &entry->dwarf,
		.abbrevs = abbrevs_at(&entry->cache, &entry->dwarf, table, 0, encoding),
		.r = reader_over(entries),
	};
}

static void entry_close(struct entry *entry)
{
	abbrev_cache_free(&entry->cache);
	arena_free(&entry->arena);
}

/* A value of the form between two markers: stepping over it and reading it must agree. */
static void check_forms_skipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < FORM_COUNT; i++) {
		const struct form_case *c = &forms[i];
		struct arena arena = {0};
		struct writer table = writer_begin(&arena, 5, 4),
			      die = writer_begin(&arena, 5, 4);
		struct entry entry;
		uint64_t seen[3], count = 0;
		struct die_attributes a;

		put_abbrev(&table, 1, DW_TAG_label, false, DW_AT_name, DW_FORM_data1,
			   DW_AT_inline, c->form, -5, DW_AT_name, DW_FORM_data2, 0);
		if (c->form != DW_FORM_implicit_const) {
			table.out.count = 0;
			put_abbrev(&table, 1, DW_TAG_label, false, DW_AT_name, DW_FORM_data1,
				   DW_AT_inline, c->form, DW_AT_name, DW_FORM_data2, 0);
		}
		put_u8(&table, 0);
		put_uleb(&die, 1);
		put_u8(&die, 0x11);
		put_bytes(&die, c->value, c->size);
		put_u16(&die, 0x2233);

		entry_open(&entry, writer_bytes(&table), c->encoding, writer_bytes(&die));
		assert_true(die_next(&entry.cursor, &entry.abbrev));
		assert_int_equal(die_skip(&entry.cursor, entry.abbrev, 0), 0);
		if (reader_failed(&entry.cursor.r) || reader_more(&entry.cursor.r))
			fail_msg("%s: not stepped over", c->name);

		entry.cursor.r = reader_over(writer_bytes(&die));
		assert_true(die_next(&entry.cursor, &entry.abbrev));
		a = die_attributes(&entry.cursor, entry.abbrev, c->encoding);
		while (die_attribute_next(&a) && count < 3)
			seen[count++] = a.value.u;
		if (count != 3 || seen[0] != 0x11 || seen[2] != 0x2233)
			fail_msg("%s: not read", c->name);
		entry_close(&entry);
		arena_free(&arena);
	}
}

static void check_siblings(void **state)
{
	static const struct {
		unsigned form;
		const char *value;
		size_t size;
	} siblings[] = {
		{DW_FORM_ref1, V("\x40")},        {DW_FORM_ref2, V("\x40\0")},
		{DW_FORM_ref4, V("\x40\0\0\0")},  {DW_FORM_ref8, V("\x40\0\0\0\0\0\0\0")},
		{DW_FORM_ref_udata, V("\xc0\0")},
	};

	(void)state;
	for (size_t i = 0; i < sizeof siblings / sizeof siblings[0]; i++) {
		struct arena arena = {0};
		struct writer table = writer_begin(&arena, 4, 4),
			      die = writer_begin(&arena, 4, 4);
		struct entry entry;

		put_abbrev(&table, 1, DW_TAG_label, true, DW_AT_name, DW_FORM_string,
			   DW_AT_sibling, siblings[i].form, DW_AT_inline, DW_FORM_data1, 0);
		put_u8(&table, 0);
		put_uleb(&die, 1);
		put_string(&die, "x");
		put_bytes(&die, siblings[i].value, siblings[i].size);
		put_u8(&die, 1);
		entry_open(&entry, writer_bytes(&table), die.encoding, writer_bytes(&die));
		assert_true(die_next(&entry.cursor, &entry.abbrev));
		assert_int_equal(die_skip(&entry.cursor, entry.abbrev, 0x100), 0x140);
		assert_false(reader_more(&entry.cursor.r) || reader_failed(&entry.cursor.r));
		entry_close(&entry);
		arena_free(&arena);
	}
}

/* Children without DW_AT_sibling, with one, and with one that lies: backwards, and outside. */
static void check_children_skipped(void **state)
{
	static const struct {
		const char *name;
		uint32_t sibling;
	} cases[] = {{"right", 15}, {"backwards", 1}, {"here", 5}, {"outside", 1000}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena arena = {0};
		struct writer table = writer_begin(&arena, 4, 4),
			      die = writer_begin(&arena, 4, 4);
		struct entry entry;
		uint64_t sibling;

		put_abbrev(&table, 1, DW_TAG_class_type, true, DW_AT_sibling, DW_FORM_ref4, 0);
		put_abbrev(&table, 2, DW_TAG_class_type, true, DW_AT_name, DW_FORM_data1, 0);
		put_abbrev(&table, 3, DW_TAG_label, false, DW_AT_name, DW_FORM_data2, 0);
		put_u8(&table, 0);
		put_u8(&die, 1); /* 0 */
		put_u32(&die, cases[i].sibling);
		put_u8(&die, 2); /* 5: a child with a child of its own */
		put_u8(&die, 9);
		put_u8(&die, 3);
		put_u16(&die, 9);
		put_u8(&die, 0);
		put_u8(&die, 3); /* 11 */
		put_u16(&die, 9);
		put_u8(&die, 0);
		put_u8(&die, 3); /* 15 */
		put_u16(&die, 9);
		entry_open(&entry, writer_bytes(&table), die.encoding, writer_bytes(&die));
		assert_true(die_next(&entry.cursor, &entry.abbrev));
		sibling = die_skip(&entry.cursor, entry.abbrev, 0);
		die_skip_children(&entry.cursor, sibling, 0);
		if (reader_offset(&entry.cursor.r) != 15)
			fail_msg("%s: at %zu", cases[i].name, reader_offset(&entry.cursor.r));
		entry_close(&entry);
		arena_free(&arena);
	}
}

/* Codes 1, 2, then with gaps, out of order and very large. */
static void check_abbrev_codes(void **state)
{
	static const unsigned codes[] = {1, 2, 7, 300, 5, 0xffffffff};
	struct arena arena = {0};
	struct writer table = writer_begin(&arena, 4, 4);
	struct entry entry;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		put_abbrev(&table, codes[i], 0x100 + (unsigned)i, false, 0);
	put_u8(&table, 0);
	put_abbrev(&table, 3, 0x200, false, 0); /* of the next table */
	entry_open(&entry, writer_bytes(&table), table.encoding, (struct bytes){NULL, 0});
	for (size_t i = 0; i < 6; i++) {
		const struct abbrev *abbrev = abbrev_of(entry.cursor.abbrevs, codes[i]);

		assert_non_null(abbrev);
		assert_int_equal(abbrev->tag, 0x100 + i);
	}
	assert_null(abbrev_of(entry.cursor.abbrevs, 0));
	assert_null(abbrev_of(entry.cursor.abbrevs, 3));
	assert_null(abbrev_of(entry.cursor.abbrevs, UINT64_MAX));
	assert_ptr_equal(entry.cursor.abbrevs,
			 abbrevs_at(&entry.cache, &entry.dwarf, writer_bytes(&table), 0,
				    table.encoding));
	entry_close(&entry);
	arena_free(&arena);
}

/* A table cut anywhere ends before the abbreviation that is cut; one that is not there is empty. */
static void check_abbrev_cut_short(void **state)
{
	struct arena arena = {0};
	struct writer table = writer_begin(&arena, 5, 4);
	struct entry entry;
	size_t first, both;

	(void)state;
	put_abbrev(&table, 1, DW_TAG_label, false, DW_AT_name, DW_FORM_data1, DW_AT_inline,
		   DW_FORM_implicit_const, -1000, 0);
	first = table.out.count;
	put_abbrev(&table, 2, DW_TAG_subprogram, true, DW_AT_low_pc, DW_FORM_addr, 0);
	both = table.out.count;
	for (size_t len = 0; len <= both; len++) {
		entry_open(&entry, (struct bytes){table.out.at, len}, table.encoding,
			   (struct bytes){NULL, 0});
		assert_int_equal(entry.cursor.abbrevs->list.count,
				 (size_t)(len >= first) + (size_t)(len >= both));
		entry_close(&entry);
	}
	arena_free(&arena);
}

/* More than 65,535 bytes of fixed size in one entry need more than one step. */
static void check_large_entry(void **state)
{
	struct arena arena = {0};
	struct writer table = writer_begin(&arena, 5, 4), die = writer_begin(&arena, 5, 4);
	struct entry entry;

	(void)state;
	put_uleb(&table, 1);
	put_uleb(&table, DW_TAG_label);
	put_u8(&table, 0);
	put_u8(&die, 1);
	for (int i = 0; i < 5000; i++) {
		put_u8(&table, DW_AT_name);
		put_u8(&table, DW_FORM_data16);
		put_u64(&die, 0);
		put_u64(&die, 0);
	}
	put_u16(&table, 0);
	entry_open(&entry, writer_bytes(&table), table.encoding, writer_bytes(&die));
	assert_true(die_next(&entry.cursor, &entry.abbrev));
	die_skip(&entry.cursor, entry.abbrev, 0);
	assert_int_equal(reader_offset(&entry.cursor.r), 80001);
	assert_false(reader_failed(&entry.cursor.r));
	entry_close(&entry);
	arena_free(&arena);
}

static void check_unit_lengths(void **state)
{
	static const struct {
		const char *name;
		const char *bytes;
		size_t size;
		bool want;
		uint8_t offset_size;
		size_t left;
	} cases[] = {
		{"32-bit", V("\2\0\0\0abcd"), true, 4, 2},
		{"64-bit", V("\xff\xff\xff\xff\2\0\0\0\0\0\0\0abcd"), true, 8, 2},
		{"longer than there is", V("\x10\0\0\0ab"), true, 4, 2},
		{"reserved",
		 V("\xf0\xff\xff\xff"
		   "abcd"),
		 false, 4, 0},
		{"cut", V("\2\0\0"), false, 4, 0},
		{"64-bit, cut", V("\xff\xff\xff\xff\2\0\0\0\0\0\0"), false, 8, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reader r = reader_over(
			(struct bytes){(const uint8_t *)cases[i].bytes, cases[i].size});
		uint8_t offset_size;

		if (unit_length_read(&r, &offset_size) != cases[i].want ||
		    offset_size != cases[i].offset_size ||
		    (cases[i].want && reader_left(&r) != cases[i].left))
			fail_msg("%s", cases[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_forms_read),   cmocka_unit_test(check_forms_cut_short),
		cmocka_unit_test(check_forms_lying),  cmocka_unit_test(check_forms_skipped),
		cmocka_unit_test(check_siblings),     cmocka_unit_test(check_children_skipped),
		cmocka_unit_test(check_abbrev_codes), cmocka_unit_test(check_abbrev_cut_short),
		cmocka_unit_test(check_large_entry),  cmocka_unit_test(check_unit_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
