/* Call frame programs: every instruction, as rows in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "row_text.h"
#include "unwind/program.h"

#define FUNCTION 0x1000
#define SIZE 0x100
#define CODE(s) s, sizeof(s) - 1

/* The usual beginning of x86_64: def_cfa r7+8; offset r16 at cfa-8. */
#define CIE_X86_64 "\x0c\x07\x08\x90\x01"

struct program_case {
	const char *name;
	const char *cie;
	size_t cie_size;
	const char *code;
	size_t size;
	const char *want; /* rows as "0xSTART ROW; ..." or "bad: ERROR" after them */
};

/* clang-format off */
static const struct program_case cases[] = {
	{"no instructions: the CIE's row", CODE(CIE_X86_64), CODE(""), "0x1000 7+8 16=c-8"},
	{"nops", CODE(CIE_X86_64), CODE("\0\0\0"), "0x1000 7+8 16=c-8"},
	{"push rbp; mov rsp,rbp", CODE(CIE_X86_64),
	 CODE("\x41\x0e\x10\x86\x02\x43\x0d\x06"),
	 "0x1000 7+8 16=c-8; 0x1001 7+16 6=c-16 16=c-8; 0x1004 6+16 6=c-16 16=c-8"},
	{"advance_loc1, 2, 4", CODE(CIE_X86_64),
	 CODE("\x02\x10\x0e\x10\x03\x10\0\x0e\x18\x04\x10\0\0\0\x0e\x20"),
	 "0x1000 7+8 16=c-8; 0x1010 7+16 16=c-8; 0x1020 7+24 16=c-8; 0x1030 7+32 16=c-8"},
	{"MIPS_advance_loc8", CODE(CIE_X86_64), CODE("\x1d\x10\0\0\0\0\0\0\0\x0e\x10"),
	 "0x1000 7+8 16=c-8; 0x1010 7+16 16=c-8"},
	{"set_loc", CODE(CIE_X86_64), CODE("\x01\x20\x10\0\0\0\0\0\0\x0e\x10"),
	 "0x1000 7+8 16=c-8; 0x1020 7+16 16=c-8"},
	{"an empty row is one too", CODE(CIE_X86_64), CODE("\x40\x0e\x10"),
	 "0x1000 7+8 16=c-8; 0x1000 7+16 16=c-8"},
	{"offset, offset_extended, _sf", CODE(CIE_X86_64),
	 CODE("\x83\x03\x05\x06\x02\x11\x0c\x7c"),
	 "0x1000 7+8 3=c-24 6=c-16 12=c+32 16=c-8"},
	{"GNU_negative_offset_extended", CODE(CIE_X86_64), CODE("\x2f\x03\x02"),
	 "0x1000 7+8 3=c+16 16=c-8"},
	{"val_offset, _sf", CODE(CIE_X86_64), CODE("\x14\x03\x02\x15\x06\x7e"),
	 "0x1000 7+8 3=v-16 6=v+16 16=c-8"},
	{"register, same_value, undefined", CODE(CIE_X86_64), CODE("\x09\x10\x05\x08\x03\x83\x02\x07\x03\x08\x06"),
	 "0x1000 7+8 6=s 16=r5"},
	{"expressions", CODE(CIE_X86_64), CODE("\x0f\x02\x77\x08\x10\x03\x01\x70\x16\x06\x01\x70"),
	 "0x1000 exp 3=exp 6=vexp 16=c-8"},
	{"def_cfa, _sf", CODE(CIE_X86_64), CODE("\x0c\x06\x10\x41\x12\x07\x7e\x41\x13\x7d"),
	 "0x1000 6+16 16=c-8; 0x1001 7+16 16=c-8; 0x1002 7+24 16=c-8"},
	{"def_cfa after an expression", CODE(CIE_X86_64), CODE("\x0f\x01\x70\x41\x0c\x07\x08"),
	 "0x1000 exp 16=c-8; 0x1001 7+8 16=c-8"},
	{"restore: what the CIE said", CODE(CIE_X86_64),
	 CODE("\x83\x02\x90\x03\x41\xc3\xd0\x41\x83\x02\x41\x06\x03"),
	 "0x1000 7+8 3=c-16 16=c-24; 0x1001 7+8 16=c-8; 0x1002 7+8 3=c-16 16=c-8; 0x1003 7+8 16=c-8"},
	{"remember and restore state, with the CFA", CODE(CIE_X86_64),
	 CODE("\x0e\x10\x83\x02\x41\x0a\x0e\x08\xc3\x41\x0b"),
	 "0x1000 7+16 3=c-16 16=c-8; 0x1001 7+8 16=c-8; 0x1002 7+16 3=c-16 16=c-8"},
	{"GNU_args_size says nothing", CODE(CIE_X86_64), CODE("\x2e\x10"), "0x1000 7+8 16=c-8"},
	{"vector registers are passed over", CODE(CIE_X86_64), CODE("\x05\x48\x02\x09\x49\x03\x10\x4a\x01\x70"),
	 "0x1000 7+8 16=c-8"},
	{"all in the FDE (cfi_startproc simple)", CODE(""), CODE("\x0c\x07\0\x90\x01"), "0x1000 7+0 16=c-8"},
	{"nothing at all", CODE(""), CODE(""), "0x1000 none"},

	{"lying: advance in a CIE", CODE(CIE_X86_64 "\x41"), CODE(""),
	 "bad: CIE at 0x0: instruction 0x41 in a CIE"},
	{"lying: advance_loc1 in a CIE", CODE("\x02\x01"), CODE(""),
	 "bad: CIE at 0x0: instruction 0x02 in a CIE"},
	{"lying: advance by 0 in a CIE", CODE("\x40"), CODE(""),
	 "bad: CIE at 0x0: instruction 0x40 in a CIE"},
	{"lying: set_loc in a CIE", CODE("\x01\0\x10\0\0\0\0\0\0"), CODE(""),
	 "bad: CIE at 0x0: instruction 0x01 in a CIE"},
	{"lying: restore in a CIE", CODE("\xc3"), CODE(""),
	 "bad: CIE at 0x0: instruction 0xc3 in a CIE"},
	{"lying: set_loc goes back", CODE(CIE_X86_64), CODE("\x01\xff\x0f\0\0\0\0\0\0"),
	 "bad: FDE of 0x1000: location goes back to 0xfff"},
	{"lying: location wraps around", CODE(CIE_X86_64), CODE("\x1d\xff\xff\xff\xff\xff\xff\xff\xff"),
	 "bad: FDE of 0x1000: location wraps around"},
	{"lying: no remembered state", CODE(CIE_X86_64), CODE("\x41\x0b"),
	 "0x1000 7+8 16=c-8; bad: FDE of 0x1000: no remembered state"},
	{"lying: a state remembered by the CIE", CODE(CIE_X86_64 "\x0a"), CODE("\x0b"),
	 "bad: FDE of 0x1000: no remembered state"},
	{"lying: unknown instruction", CODE(CIE_X86_64), CODE("\x3f"),
	 "bad: FDE of 0x1000: call frame instruction 0x3f"},
	{"lying: CFA in a register that is none", CODE(CIE_X86_64), CODE("\x0c\xff\x01\x08"),
	 "bad: FDE of 0x1000: CFA in register 255"},
	{"lying: offset without a CFA register", CODE(CIE_X86_64), CODE("\x0f\x01\x70\x0e\x08"),
	 "bad: FDE of 0x1000: instruction 0x0e without a CFA register"},
	{"lying: register without a CFA register", CODE(""), CODE("\x0d\x07"),
	 "bad: FDE of 0x1000: instruction 0x0d without a CFA register"},
	{"lying: offset times alignment overflows", CODE(CIE_X86_64), CODE("\x83\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
	 "bad: FDE of 0x1000: call frame program: truncated at offset 0xf"},
	{"lying: offset beyond a signed one", CODE(CIE_X86_64), CODE("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
	 "bad: FDE of 0x1000: call frame program: truncated at offset 0x10"},
	{"lying: expression longer than the program", CODE(CIE_X86_64), CODE("\x0f\x05\x70"),
	 "bad: FDE of 0x1000: call frame program: truncated at offset 0x7"},
};
/* clang-format on */

/* CIE program and FDE program after each other in one section. */
struct setting {
	uint8_t room[256];
	struct cfi_section section;
	struct cie cie;
	struct fde fde;
};

static void set(struct setting *s, const struct program_case *c, size_t size)
{
	memset(s, 0, sizeof *s);
	memcpy(s->room, c->cie, c->cie_size);
	memcpy(s->room + c->cie_size, c->code, size);
	s->section.bytes = (struct bytes){s->room, c->cie_size + size};
	s->section.is_eh = true;
	s->cie = (struct cie){.code_align = 1, .data_align = -8, .return_reg = 16};
	s->cie.program = reader_over(s->section.bytes);
	s->cie.program.end = s->cie.program.at + c->cie_size;
	s->fde = (struct fde){.cie = &s->cie, .ea = FUNCTION, .size = SIZE};
	s->fde.program = reader_over(s->section.bytes);
	s->fde.program.at += c->cie_size;
}

static char *rows_text(const struct setting *s)
{
	struct program program;
	struct err e = {.kind = ERR_NONE};
	struct row row;
	bool over = false;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	const char *between = "";

	if (program_begin(&program, &s->section, &s->fde, &e))
		while (program_next(&program, &row, &over, &e)) {
			fprintf(out, "%s0x%lx ", between, (unsigned long)row.start);
			row_print(out, &row);
			between = "; ";
		}
	if (!over)
		fprintf(out, "%sbad: %s", between, e.text);
	fclose(out);
	return text;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct setting s;
		char *text;

		print_message("%s\n", cases[i].name);
		set(&s, &cases[i], cases[i].size);
		text = rows_text(&s);
		assert_string_equal(text, cases[i].want);
		free(text);
	}
}

/* A program cut anywhere gives the rows before the cut, and then either ends or says where. */
static void test_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t size = 0; size < cases[i].size; size++) {
			struct setting s;
			char *text, *bad;

			set(&s, &cases[i], size);
			text = rows_text(&s);
			bad = strstr(text, "bad: ");
			if (bad && !strstr(cases[i].want, "bad: "))
				assert_non_null(strstr(bad, "truncated at offset 0x"));
			free(text);
		}
	}
}

/* row_at gives the last row that begins at or before the address. */
static void test_row_at(void **state)
{
	static const struct {
		uint64_t ea;
		int64_t offset;
		uint64_t start, end;
	} at[] = {
		{0x1000, 8, 0x1000, 0x1001},  {0x1001, 16, 0x1001, 0x1004},
		{0x1003, 16, 0x1001, 0x1004}, {0x1004, 24, 0x1004, 0x1100},
		{0x10ff, 24, 0x1004, 0x1100},
	};
	static const struct program_case c = {.cie = CIE_X86_64,
					      .cie_size = 5,
					      .code = "\x41\x0e\x10\x43\x0e\x18",
					      .size = 6};
	struct setting s;
	struct row row;

	(void)state;
	set(&s, &c, c.size);
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
		assert_true(row_at(&s.section, &s.fde, at[i].ea, &row, NULL));
		assert_int_equal(row.cfa.offset, at[i].offset);
		assert_int_equal(row.start, at[i].start);
		assert_int_equal(row.end, at[i].end);
		assert_int_equal(row.return_reg, 16);
	}
}

static void test_alignments(void **state)
{
	static const struct program_case c = {.cie = "\x0c\x1f\x00",
					      .cie_size = 3,
					      .code = "\x41\x0e\x20\x9d\x04",
					      .size = 5};
	struct setting s;
	char *text;

	(void)state;
	set(&s, &c, c.size);
	s.cie.code_align = 4;
	text = rows_text(&s);
	assert_string_equal(text, "0x1000 31+0; 0x1004 31+32 29=c-32");
	free(text);
	s.cie.code_align = UINT64_MAX;
	text = rows_text(&s);
	assert_non_null(strstr(text, "location wraps around"));
	free(text);
}

static void test_ra_signed(void **state)
{
	static const struct program_case c = {.cie = "\x0c\x1f\x00",
					      .cie_size = 3,
					      .code = "\x41\x2d\x41\x2d\x41\x2c",
					      .size = 6};
	static const bool want[] = {false, true, false, true};
	struct setting s;
	struct row row;

	(void)state;
	set(&s, &c, c.size);
	for (size_t i = 0; i < sizeof want; i++) {
		assert_true(row_at(&s.section, &s.fde, FUNCTION + i, &row, NULL));
		assert_int_equal(row.ra_signed, want[i]);
	}
}

static void test_remembered_limit(void **state)
{
	uint8_t deep[REMEMBERED_MAX + 1];
	struct program_case c = {.cie = CIE_X86_64, .cie_size = 5, .code = (const char *)deep};
	struct setting s;
	char *text;

	(void)state;
	memset(deep, 0x0a, sizeof deep);
	c.size = REMEMBERED_MAX;
	set(&s, &c, c.size);
	text = rows_text(&s);
	assert_string_equal(text, "0x1000 7+8 16=c-8");
	free(text);
	c.size = REMEMBERED_MAX + 1;
	set(&s, &c, c.size);
	text = rows_text(&s);
	assert_string_equal(text, "bad: FDE of 0x1000: more than 32 remembered states");
	free(text);
}

/* As many instructions as may be, and one more. What the last one says shows that all were run. */
static void test_steps_limit(void **state)
{
	size_t last = PROGRAM_STEPS_MAX - 1;
	uint8_t *code = calloc(1, last + 3);
	struct program_case c = {.cie = CIE_X86_64, .cie_size = 5, .code = ""};
	struct setting s;
	struct row row;
	struct err e = {.kind = ERR_NONE};

	(void)state;
	assert_non_null(code);
	memcpy(code + last, "\x0e\x10", 2); /* def_cfa_offset 16 */
	set(&s, &c, 0);
	s.fde.program = reader_over((struct bytes){code, last + 2});
	assert_true(row_at(&s.section, &s.fde, FUNCTION, &row, &e));
	assert_int_equal(row.cfa.offset, 16);
	s.fde.program = reader_over((struct bytes){code, last + 3});
	assert_false(row_at(&s.section, &s.fde, FUNCTION, &row, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.text, "call frame program: more than 131072 steps"));
	free(code);
}

static void test_return_register(void **state)
{
	static const struct program_case c = {.cie = CIE_X86_64, .cie_size = 5, .code = ""};
	struct setting s;
	char *text;

	(void)state;
	set(&s, &c, 0);
	s.cie.return_reg = 1000;
	text = rows_text(&s);
	assert_string_equal(text, "bad: return address in register 1000");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),        cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_row_at),      cmocka_unit_test(test_alignments),
		cmocka_unit_test(test_ra_signed),   cmocka_unit_test(test_remembered_limit),
		cmocka_unit_test(test_steps_limit), cmocka_unit_test(test_return_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
