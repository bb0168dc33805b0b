/* CIEs and FDEs of both sections, in all their versions, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cfi_maker.h"
#include "unwind/entry.h"

#define SECTION_EA 0x2000

static struct arena arena;

static struct maker maker(bool is_eh, bool is_64bit)
{
	return (struct maker){.arena = &arena,
			      .ea = SECTION_EA,
			      .is_eh = is_eh,
			      .is_64bit = is_64bit};
}

static struct cfi_section section_of(const struct maker *m)
{
	return (struct cfi_section){
		.bytes = made(m),
		.ea = m->is_eh ? m->ea : 0,
		.is_eh = m->is_eh,
		.bases = {.section = m->is_eh ? m->ea : 0},
	};
}

struct cie_case {
	const char *name;
	struct bytes body; /* from the version on */
	const char *error; /* or NULL, and: */
	int64_t data_align;
	uint64_t return_reg;
	size_t program_size;
	bool is_debug, is_64bit;
	uint8_t encoding;
	bool signal_frame;
};

/* Version, augmentation, code and data alignment (1, -8), return register 16. */
#define BODY(s)                                     \
	{                                           \
		(const uint8_t *)(s), sizeof(s) - 1 \
	}
#define END "\x01\x78\x10"

/* clang-format off */
static const struct cie_case cies[] = {
	{"version 1, no augmentation", BODY("\1\0" END "\x0c\x07\x08"), NULL, -8, 16, 3, false, false, 0, false},
	{"zR", BODY("\1zR\0" END "\1\x1b" "\0\0"), NULL, -8, 16, 2, false, false, 0x1b, false},
	{"zPLR", BODY("\1zPLR\0" END "\x07\x9b\1\2\3\4\x1b\x1b" "\0"), NULL, -8, 16, 1, false, false, 0x1b, false},
	{"zRS", BODY("\1zRS\0" END "\1\x1b"), NULL, -8, 16, 0, false, false, 0x1b, true},
	{"zSR", BODY("\1zSR\0" END "\1\x1b"), NULL, -8, 16, 0, false, false, 0x1b, true},
	{"zRB: signed with the B key", BODY("\1zRB\0" END "\1\x1b"), NULL, -8, 16, 0, false, false, 0x1b, false},
	{"zR and data to spare", BODY("\1zR\0" END "\4\x1b\1\2\3" "\0"), NULL, -8, 16, 1, false, false, 0x1b, false},
	{"z and nothing else", BODY("\1z\0" END "\0" "\0"), NULL, -8, 16, 1, false, false, 0, false},
	{"an unknown letter after R", BODY("\1zRX\0" END "\2\x1b\1"), NULL, -8, 16, 0, false, false, 0x1b, false},
	{"eh of GCC 2", BODY("\1eh\0\1\2\3\4\5\6\7\x08" END "\0"), NULL, -8, 16, 1, false, false, 0, false},
	{"version 3: return register as LEB128", BODY("\3\0\1\x78\x90\1"), NULL, -8, 144, 0, false, false, 0, false},
	{"version 1: return register as byte", BODY("\1\0\1\x78\x90"), NULL, -8, 144, 0, false, false, 0, false},
	{"64-bit length", BODY("\1zR\0" END "\1\x1b"), NULL, -8, 16, 0, false, true, 0x1b, false},
	{"debug_frame version 3", BODY("\3\0" END), NULL, -8, 16, 0, true, false, 0, false},
	{"debug_frame version 4", BODY("\4\0\x08\0" END), NULL, -8, 16, 0, true, false, 0, false},
	{"debug_frame version 4, 64-bit", BODY("\4\0\x08\0" END), NULL, -8, 16, 0, true, true, 0, false},
	{"lying: version 2", BODY("\2\0" END), "CIE at 0x0: CIE version 2", 0, 0, 0, false, false, 0, false},
	{"lying: version 5", BODY("\5\0" END), "CIE at 0x0: CIE version 5", 0, 0, 0, true, false, 0, false},
	{"lying: addresses of 4 bytes", BODY("\4\0\4\0" END), "CIE at 0x0: CIE: addresses of 4 bytes", 0, 0, 0, true, false, 0, false},
	{"lying: unknown augmentation", BODY("\1armcc\0" END), "CIE at 0x0: CIE: augmentation \"armcc\"", 0, 0, 0, false, false, 0, false},
	{"lying: an unknown letter hides R", BODY("\1zXR\0" END "\2\1\x1b"), "CIE at 0x0: CIE: augmentation letter 'X'", 0, 0, 0, false, false, 0, false},
	{"lying: unknown encoding of P hides R", BODY("\1zPR\0" END "\3\x0e\1\x1b"), "CIE at 0x0: CIE: augmentation letter 'P'", 0, 0, 0, false, false, 0, false},
	{"lying: data longer than the CIE", BODY("\1zR\0" END "\x7f\x1b"), "CIE at 0x0: CIE: truncated at offset 0x10", 0, 0, 0, false, false, 0, false},
	{"lying: data shorter than its letters", BODY("\1zLR\0" END "\1\x1b\0"), "CIE at 0x0: CIE: truncated at offset 0x12", 0, 0, 0, false, false, 0, false},
	{"lying: augmentation without an end", BODY("\1zRRR"), "CIE at 0x0: CIE: truncated at offset 0x9", 0, 0, 0, false, false, 0, false},
	{"lying: augmentation too long", BODY("\1zRRRRRRRRRRRRRRRR\0" END), "CIE at 0x0: CIE: augmentation too long", 0, 0, 0, false, false, 0, false},
};
/* clang-format on */

static void make_case(struct maker *m, const struct cie_case *c)
{
	*m = maker(!c->is_debug, c->is_64bit);
	make_cie_begin(m);
	make_bytes(m, c->body);
	make_end(m);
}

static void test_cies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cies / sizeof cies[0]; i++) {
		const struct cie_case *c = &cies[i];
		struct err e = {.kind = ERR_NONE};
		struct cfi_section section;
		struct maker m;
		struct cie cie;

		print_message("%s\n", c->name);
		make_case(&m, c);
		section = section_of(&m);
		if (c->error) {
			assert_false(cie_read(&section, 0, &cie, &e));
			assert_string_equal(e.text, c->error);
			continue;
		}
		assert_true(cie_read(&section, 0, &cie, &e));
		assert_int_equal(cie.code_align, 1);
		assert_int_equal(cie.data_align, c->data_align);
		assert_int_equal(cie.return_reg, c->return_reg);
		assert_int_equal(cie.pointer_encoding, c->encoding);
		assert_int_equal(cie.signal_frame, c->signal_frame);
		assert_int_equal(reader_left(&cie.program), c->program_size);
	}
}

/* What is left of a section cut at `size`, in memory of exactly that size. */
static struct cfi_section cut(const struct cfi_section *section, size_t size, uint8_t **room)
{
	struct cfi_section out = *section;

	*room = test_malloc(size + 1);
	memcpy(*room, section->bytes.at, size);
	out.bytes = (struct bytes){*room, size};
	return out;
}

static void test_cies_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cies / sizeof cies[0]; i++) {
		struct cfi_section whole;
		struct maker m;
		struct cie cie;

		make_case(&m, &cies[i]);
		whole = section_of(&m);
		for (size_t size = 0; size < whole.bytes.len; size++) {
			uint8_t *room;
			struct cfi_section part = cut(&whole, size, &room);

			assert_false(cie_read(&part, 0, &cie, NULL));
			test_free(room);
		}
	}
}

/* The body of a CIE cut short by its length, with other bytes after it. */
static void test_cies_with_lying_length(void **state)
{
	(void)state;
	for (size_t size = 0; size < 9; size++) {
		struct maker m = maker(true, false);
		struct cfi_section section;
		struct err e = {.kind = ERR_NONE};
		struct cie cie;

		make_cie_begin(&m);
		make_bytes(&m, bytes_part(BYTES("\1zR\0\1\x78\x10\1\x1b"), 0, size));
		make_end(&m);
		make_bytes(&m, BYTES("\1\1\1\1\1\1\1\1\1\1\1\1"));
		section = section_of(&m);
		assert_false(cie_read(&section, 0, &cie, &e));
		assert_non_null(strstr(e.text, size ? "truncated" : "version 0"));
	}
}

struct fde_case {
	const char *name;
	bool is_debug, is_64bit;
	uint8_t encoding;
	struct bytes body; /* from the address on */
	const char *error;
	uint64_t ea, size;
	size_t program_size;
};

/* The FDE stands after a CIE of 17 bytes or (.debug_frame) 14; addresses follow that. */
/* clang-format off */
static const struct fde_case fdes[] = {
	{"pcrel sdata4", false, false, 0x1b, BODY("\xf0\xff\xff\xff\x20\0\0\0\0" "\0\0"), NULL, SECTION_EA + 0x19 - 16, 0x20, 2},
	{"augmentation data (LSDA)", false, false, 0x1b, BODY("\xf0\xff\xff\xff\x20\0\0\0\4\1\2\3\4" "\0"), NULL, SECTION_EA + 0x19 - 16, 0x20, 1},
	{"absptr", false, false, 0x00, BODY("\0\x10\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0"), NULL, 0x1000, 0x20, 0},
	{"udata2", false, false, 0x02, BODY("\0\x10\x20\0\0"), NULL, 0x1000, 0x20, 0},
	{"sdata8 pcrel", false, false, 0x1c, BODY("\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0"), NULL, SECTION_EA + 0x19, 0x20, 0},
	{"uleb128", false, false, 0x01, BODY("\x80\x20\x20\0"), NULL, 0x1000, 0x20, 0},
	{"sleb128: its size has no sign", false, false, 0x09, BODY("\x80\x20\x60\0"), NULL, 0x1000, 0x60, 0},
	{"aligned", false, false, 0x50, BODY("\xaa\xaa\xaa\xaa\xaa\xaa\xaa\0\x10\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\0"), NULL, 0x1000, 0x20, 0},
	{"size of more than 2 GiB", false, false, 0x1b, BODY("\0\0\0\0\0\0\0\x80\0"), NULL, SECTION_EA + 0x19, 0x80000000, 0},
	{"debug_frame", true, false, 0, BODY("\0\x10\0\0\0\0\0\0\x20\0\0\0\0\0\0\0" "\0"), NULL, 0x1000, 0x20, 1},
	{"debug_frame, 64-bit", true, true, 0, BODY("\0\x10\0\0\0\0\0\0\x20\0\0\0\0\0\0\0" "\0"), NULL, 0x1000, 0x20, 1},
	{"lying: indirect address", false, false, 0x9b, BODY("\0\0\0\0\0\0\0\0\0"), "pointer encoding 0x9b", 0, 0, 0},
	{"lying: omitted address", false, false, 0xff, BODY("\0\0\0\0\0\0\0\0\0"), "pointer encoding 0xff", 0, 0, 0},
	{"lying: relative to a function", false, false, 0x4b, BODY("\0\0\0\0\0\0\0\0\0"), "pointer encoding 0x4b: unknown base", 0, 0, 0},
	{"lying: wraps around", false, false, 0x00, BODY("\0\0\0\0\0\0\0\xff\0\0\0\0\0\0\0\1\0"), "FDE: code range wraps around", 0, 0, 0},
	{"lying: data longer than the FDE", false, false, 0x1b, BODY("\0\0\0\0\x20\0\0\0\x7f\1\2"), "FDE: truncated at offset 0x22", 0, 0, 0},
};
/* clang-format on */

static size_t make_fde_case(struct maker *m, const struct fde_case *c)
{
	size_t off;

	*m = maker(!c->is_debug, c->is_64bit);
	make_cie_begin(m);
	if (c->is_debug) {
		make_bytes(m, BYTES("\3\0" END));
	} else {
		make_bytes(m, BYTES("\1zR\0" END "\1"));
		make_u8(m, c->encoding);
	}
	make_end(m);
	off = make_fde_begin(m, 0);
	make_bytes(m, c->body);
	make_end(m);
	return off;
}

static bool read_fde(const struct cfi_section *section, size_t off, struct cie *cie,
		     struct fde *fde, struct err *e)
{
	struct entry entry;

	return off < section->bytes.len && entry_read(section, off, &entry, e) &&
	       !entry.is_cie && cie_read(section, entry.cie_off, cie, e) &&
	       fde_read(section, &entry, cie, fde, e);
}

static void test_fdes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof fdes / sizeof fdes[0]; i++) {
		const struct fde_case *c = &fdes[i];
		struct err e = {.kind = ERR_NONE};
		struct maker m;
		size_t off = make_fde_case(&m, c);
		struct cfi_section section = section_of(&m);
		struct cie cie;
		struct fde fde = {0};

		print_message("%s\n", c->name);
		if (c->error) {
			assert_false(read_fde(&section, off, &cie, &fde, &e));
			assert_string_equal(e.text, c->error);
			continue;
		}
		assert_true(read_fde(&section, off, &cie, &fde, &e));
		assert_int_equal(fde.ea, c->ea);
		assert_int_equal(fde.size, c->size);
		assert_int_equal(reader_left(&fde.program), c->program_size);
	}
}

static void test_fdes_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof fdes / sizeof fdes[0]; i++) {
		struct maker m;
		size_t off = make_fde_case(&m, &fdes[i]);
		struct cfi_section whole = section_of(&m);

		for (size_t size = 0; size < whole.bytes.len; size++) {
			uint8_t *room;
			struct cfi_section part = cut(&whole, size, &room);
			struct cie cie;
			struct fde fde;

			assert_false(read_fde(&part, off, &cie, &fde, NULL));
			test_free(room);
		}
	}
}

static void test_lying_entries(void **state)
{
	static const struct {
		const char *name;
		struct bytes bytes;
		bool is_debug;
		const char *error;
	} entries[] = {
		{"reserved length", BODY("\xf0\xff\xff\xff\0\0\0\0"), false,
		 "reserved length 0xfffffff0"},
		{"length past the end", BODY("\x05\0\0\0\0\0\0\0"), false,
		 "length: truncated at offset 0x4"},
		{"64-bit length past the end",
		 BODY("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false,
		 "length: truncated at offset 0xc"},
		{"64-bit length cut short", BODY("\xff\xff\xff\xff\x01\0\0"), false,
		 "length: truncated at offset 0x4"},
		{"no room for the mark", BODY("\x03\0\0\0\0\0\0\0"), false,
		 "CIE mark: truncated at offset 0x4"},
		{"no terminator in .debug_frame", BODY("\0\0\0\0\0\0\0\0"), true,
		 "CIE mark: truncated at offset 0x4"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		struct cfi_section section = {.bytes = entries[i].bytes,
					      .is_eh = !entries[i].is_debug};
		struct err e = {.kind = ERR_NONE};
		struct entry entry;

		print_message("%s\n", entries[i].name);
		assert_false(entry_read(&section, 0, &entry, &e));
		assert_string_equal(e.text, entries[i].error);
	}
}

/* An FDE whose CIE is not one: before the section, past its end, the FDE itself, another FDE. */
static void test_lying_cie_pointers(void **state)
{
	static const uint32_t pointers[] = {0x7fffffff, 0xffffff00, 4, 5, 1};

	(void)state;
	for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
		struct maker m = maker(true, false);
		size_t cie_off = make_cie_x86_64(&m, "zR");
		size_t off = make_fde(&m, cie_off, 0x1000, 0x10, BYTES(""));
		struct cfi_section section;
		struct cie cie;
		struct fde fde = {0};

		for (size_t b = 0; b < 4; b++)
			m.out.at[off + 4 + b] = (uint8_t)(pointers[i] >> 8 * b);
		section = section_of(&m);
		assert_false(read_fde(&section, off, &cie, &fde, NULL));
	}
}

static void test_terminator(void **state)
{
	static const struct cfi_section section = {.bytes = BODY("\0\0\0\0"), .is_eh = true};
	struct entry entry;

	(void)state;
	assert_true(entry_read(&section, 0, &entry, NULL));
	assert_true(entry.is_terminator);
	assert_int_equal(entry.next, 4);
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
		cmocka_unit_test(test_cies),
		cmocka_unit_test(test_cies_cut_short),
		cmocka_unit_test(test_cies_with_lying_length),
		cmocka_unit_test(test_fdes),
		cmocka_unit_test(test_fdes_cut_short),
		cmocka_unit_test(test_lying_entries),
		cmocka_unit_test(test_lying_cie_pointers),
		cmocka_unit_test(test_terminator),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
