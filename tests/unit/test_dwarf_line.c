/* Line programs, given byte by byte: every version and opcode, file tables, tombstones, and their
 * malformed twins. The file has .debug_line and nothing else, so rows are all that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "dwarf/constants.h"
#include "dwarf/dwarf.h"
#include "dwarf_writer.h"
#include "elf_image.h"

#define CODE 0x1000
#define CODE_SIZE 0x1000

/* How a header differs from the usual one. */
struct shape {
	uint16_t version;
	uint8_t offset_size;
	uint8_t instruction_size, operations_max, line_range, opcode_base;
	int8_t line_base;
};

static const struct shape usual = {4, 4, 1, 1, 14, 13, -5};

static void put_tables_2(struct writer *w)
{
	put_string(w, "include");
	put_string(w, "/absolute/");
	put_u8(w, 0);
	put_string(w, "a.c");
	put_uleb(w, 0);
	put_uleb(w, 0);
	put_uleb(w, 0);
	put_string(w, "b.h");
	put_uleb(w, 1);
	put_uleb(w, 12345);
	put_uleb(w, 678);
	put_string(w, "c.h");
	put_uleb(w, 2);
	put_u16(w, 0);
	put_u8(w, 0);
}

static void put_tables_5(struct writer *w)
{
	put_u8(w, 1);
	put_uleb(w, DW_LNCT_path);
	put_uleb(w, DW_FORM_string);
	put_uleb(w, 3);
	put_string(w, "");
	put_string(w, "include");
	put_string(w, "/absolute/");
	put_u8(w, 4);
	put_uleb(w, DW_LNCT_path);
	put_uleb(w, DW_FORM_string);
	put_uleb(w, DW_LNCT_directory_index);
	put_uleb(w, DW_FORM_udata);
	put_uleb(w, DW_LNCT_MD5);
	put_uleb(w, DW_FORM_data16);
	put_uleb(w, 0x2001); /* a vendor's column */
	put_uleb(w, DW_FORM_block1);
	put_uleb(w, 3);
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = {"a.c", "b.h", "c.h"};

		put_string(w, names[i]);
		put_uleb(w, (uint64_t)i);
		put_u64(w, 0x1122334455667788);
		put_u64(w, 0x99aabbccddeeff00);
		put_u8(w, 2);
		put_u16(w, 0);
	}
}

/* The program is the text of its bytes; "A" in it stands for DW_LNE_set_address and its operand,
 * so that programs can be read: see addresses. */
static struct bytes program_make(struct arena *arena, const struct shape *shape,
				 const char *program, size_t size)
{
	/* Operand counts of standard opcodes; 13 and 14 are of some later version. */
	static const uint8_t counts[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 0};
	struct writer w = writer_begin(arena, shape->version, shape->offset_size);
	size_t unit = length_begin(&w), header;

	put_u16(&w, shape->version);
	if (shape->version >= 5) {
		put_u8(&w, 8);
		put_u8(&w, 0);
	}
	header = plain_length_begin(&w);
	put_u8(&w, shape->instruction_size);
	if (shape->version >= 4)
		put_u8(&w, shape->operations_max);
	put_u8(&w, 1);
	put_u8(&w, (uint8_t)shape->line_base);
	put_u8(&w, shape->line_range);
	put_u8(&w, shape->opcode_base);
	if (shape->opcode_base)
		put_bytes(&w, counts, shape->opcode_base - 1u);
	if (shape->version >= 5)
		put_tables_5(&w);
	else
		put_tables_2(&w);
	plain_length_end(&w, header);
	put_bytes(&w, program, size);
	length_end(&w, unit);
	return writer_bytes(&w);
}

struct file {
	struct arena arena;
	struct elf elf;
	struct dwarf *dwarf;
};

static void file_open_lines(struct file *file, struct bytes lines)
{
	struct image_section sections[2] = {image_code(".text", CODE, CODE_SIZE),
					    image_plain(".debug_line", lines)};
	struct image image = {.sections = sections, .section_count = 2};
	struct err e;

	if (!elf_open(&file->elf, &file->arena, image_make(&file->arena, &image), "test", &e))
		fail_msg("%s", e.text);
	file->dwarf = dwarf_open(&file->arena, &file->elf, NULL);
	assert_non_null(file->dwarf);
}

/* Opcodes. */
#define COPY "\x01"
#define ADVANCE_PC "\x02"
#define ADVANCE_LINE "\x03"
#define SET_FILE "\x04"
#define SET_COLUMN "\x05"
#define NEGATE_STMT "\x06"
#define BASIC_BLOCK "\x07"
#define CONST_ADD_PC "\x08"
#define FIXED_ADVANCE_PC "\x09"
#define PROLOGUE_END "\x0a"
#define EPILOGUE_BEGIN "\x0b"
#define SET_ISA "\x0c"
#define END "\0\1\1"
#define DISCRIMINATOR "\0\2\4\x07"
#define SET_ADDRESS(text) "\0\x09\2" text
#define AT_1000 SET_ADDRESS("\0\x10\0\0\0\0\0\0")
#define AT_1100 SET_ADDRESS("\0\x11\0\0\0\0\0\0")
#define AT_1800 SET_ADDRESS("\0\x18\0\0\0\0\0\0")
#define AT_0 SET_ADDRESS("\0\0\0\0\0\0\0\0")
#define AT_1 SET_ADDRESS("\1\0\0\0\0\0\0\0")
#define AT_MINUS_1 SET_ADDRESS("\xff\xff\xff\xff\xff\xff\xff\xff")
#define AT_MINUS_2 SET_ADDRESS("\xfe\xff\xff\xff\xff\xff\xff\xff")

struct want {
	uint64_t ea;
	uint32_t line; /* 0: nothing is known of this address */
	uint32_t column;
	const char *file;
};

struct line_case {
	const char *name;
	struct shape shape;
	const char *program;
	size_t size;
	struct want want[6]; /* up to ea 0; by ascending ea */
};

#define P(text) text, sizeof(text) - 1
#define USUAL                          \
	{                              \
		4, 4, 1, 1, 14, 13, -5 \
	}

/* clang-format off */
static const struct line_case cases[] = {
	{"copy and advance",
	 USUAL,
	 P(AT_1000 COPY ADVANCE_PC "\x10" ADVANCE_LINE "\x04" SET_COLUMN "\x07" COPY ADVANCE_PC
				   "\x80\1" END),
	 {{0xfff, 0, 0, NULL},
	  {0x1000, 1, 0, "a.c"},
	  {0x100f, 1, 0, "a.c"},
	  {0x1010, 5, 7, "a.c"},
	  {0x108f, 5, 7, "a.c"},
	  {0x1090, 0, 0, NULL}}},
	/* 13 + 14 * 2 + 6: 2 addresses, -5 + 6 lines. */
	{"special opcodes",
	 USUAL,
	 P(AT_1000 ADVANCE_LINE "\x09" COPY "\x2f" "\xff" ADVANCE_PC "\x01" END),
	 {{0x1001, 10, 0, "a.c"}, {0x1002, 11, 0, "a.c"}, {0x1012, 11, 0, "a.c"},
	  {0x1013, 10, 0, "a.c"}, {0x1014, 0, 0, NULL}}},
	{"const_add_pc moves as opcode 255 does",
	 USUAL,
	 P(AT_1000 COPY CONST_ADD_PC ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x1010, 1, 0, "a.c"}, {0x1011, 2, 0, "a.c"}, {0x1012, 0, 0, NULL}}},
	{"fixed_advance_pc",
	 USUAL,
	 P(AT_1000 COPY FIXED_ADVANCE_PC "\x00\x01" ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x10ff, 1, 0, "a.c"}, {0x1100, 2, 0, "a.c"}, {0x1101, 0, 0, NULL}}},
	{"flags, isa and discriminator change no line",
	 USUAL,
	 P(AT_1000 NEGATE_STMT BASIC_BLOCK PROLOGUE_END EPILOGUE_BEGIN SET_ISA
	   "\x81\x01" DISCRIMINATOR COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"the last of several rows at one address holds",
	 USUAL,
	 P(AT_1000 COPY ADVANCE_LINE "\x01" COPY ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 3, 0, "a.c"}}},
	{"files and directories of version 4",
	 USUAL,
	 P(AT_1000 COPY SET_FILE "\x02" ADVANCE_PC "\x01" COPY SET_FILE "\x03" ADVANCE_PC
				 "\x01" COPY SET_FILE "\x04" ADVANCE_PC "\x01" COPY SET_FILE
				 "\x00" ADVANCE_PC "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"},
	  {0x1001, 1, 0, "include/b.h"},
	  {0x1002, 1, 0, "/absolute/c.h"},
	  {0x1003, 1, 0, NULL},
	  {0x1004, 1, 0, NULL}}},
	{"files and directories of version 5 count from 0",
	 {5, 4, 1, 1, 14, 13, -5},
	 P(AT_1000 COPY SET_FILE "\x00" ADVANCE_PC "\x01" COPY SET_FILE "\x02" ADVANCE_PC
				 "\x01" COPY SET_FILE "\x03" ADVANCE_PC "\x01" COPY ADVANCE_PC
				 "\x01" END),
	 {{0x1000, 1, 0, "include/b.h"},
	  {0x1001, 1, 0, "a.c"},
	  {0x1002, 1, 0, "/absolute/c.h"},
	  {0x1003, 1, 0, NULL}}},
	{"version 2",
	 {2, 4, 1, 1, 14, 10, -5},
	 P(AT_1000 COPY SET_FILE "\x02" ADVANCE_PC "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"}, {0x1001, 1, 0, "include/b.h"}}},
	{"version 3, 64-bit",
	 {3, 8, 1, 1, 14, 13, -5},
	 P(AT_1000 COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"version 5, 64-bit",
	 {5, 8, 1, 1, 14, 13, -5},
	 P(AT_1000 COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "include/b.h"}, {0x1001, 0, 0, NULL}}},
	{"define_file",
	 USUAL,
	 P("\0\x08\3" "d.h\0\x01\0\0" AT_1000 SET_FILE "\x04" COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "include/d.h"}}},
	{"instructions of 4 bytes",
	 {4, 4, 4, 1, 14, 13, -5},
	 P(AT_1000 COPY ADVANCE_PC "\x02" ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x1007, 1, 0, "a.c"}, {0x1008, 2, 0, "a.c"}, {0x100b, 2, 0, "a.c"},
	  {0x100c, 0, 0, NULL}}},
	/* 3 operations in an instruction of 16 bytes; the second row is at operation 2 of the first
	 * instruction, the third at operation 1 of the second. */
	{"several operations in an instruction",
	 {4, 4, 16, 3, 14, 13, -5},
	 P(AT_1000 COPY ADVANCE_PC "\x02" ADVANCE_LINE "\x01" COPY ADVANCE_PC
	   "\x02" ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x02" END),
	 {{0x1000, 2, 0, "a.c"}, {0x100f, 2, 0, "a.c"}, {0x1010, 3, 0, "a.c"},
	  {0x101f, 3, 0, "a.c"}, {0x1020, 0, 0, NULL}}},
	{"opcodes of a later version are stepped over",
	 {4, 4, 1, 1, 14, 15, -5},
	 P(AT_1000 "\x0d\x81\x01\x02" "\x0e" "\0\x03\x70zz" COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"no standard opcode: all but 0 are special",
	 {4, 4, 1, 1, 4, 1, 1},
	 P(AT_1000 "\x01" "\x05" END),
	 {{0x1000, 2, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"an opcode base of 0",
	 {4, 4, 1, 1, 4, 0, 0},
	 P(AT_1000 "\x01" "\x05" END),
	 {{0x1000, 2, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"a line range of 0 divides nothing",
	 {4, 4, 1, 1, 0, 13, -5},
	 P(AT_1000 ADVANCE_LINE "\x08" COPY "\xff" ADVANCE_PC "\x01" END),
	 {{0x1000, 4, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"no operation in an instruction",
	 {4, 4, 1, 0, 14, 13, -5},
	 P(AT_1000 COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"}, {0x1001, 0, 0, NULL}}},
	{"dead sequences, then a live one",
	 USUAL,
	 P(AT_0 COPY ADVANCE_PC "\x80\x80\1" END AT_1 COPY ADVANCE_PC
	   "\x80\x80\1" END AT_MINUS_1 COPY ADVANCE_PC "\x80\x80\1" END AT_MINUS_2 COPY ADVANCE_PC
	   "\x80\x80\1" END AT_1100 ADVANCE_LINE "\x04" COPY ADVANCE_PC "\x01" END),
	 {{0x10, 0, 0, NULL}, {0x1000, 0, 0, NULL}, {0x1100, 5, 0, "a.c"}, {0x1101, 0, 0, NULL}}},
	{"a tombstone within a sequence",
	 USUAL,
	 P(AT_1000 COPY ADVANCE_PC "\x10" COPY AT_0 ADVANCE_LINE "\x01" COPY ADVANCE_PC
	   "\x10" COPY AT_1100 ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x100f, 1, 0, "a.c"}, {0x1010, 0, 0, NULL}, {0x10ff, 0, 0, NULL},
	  {0x1100, 3, 0, "a.c"}, {0x1101, 0, 0, NULL}}},
	{"a tombstone of -1 within a sequence",
	 USUAL,
	 P(AT_1000 COPY ADVANCE_PC "\x10" COPY AT_MINUS_1 COPY AT_1100 ADVANCE_LINE
	   "\x01" COPY ADVANCE_PC "\x01" END),
	 {{0x100f, 1, 0, "a.c"}, {0x1010, 0, 0, NULL}, {0x1100, 2, 0, "a.c"}}},
	{"addresses that go back",
	 USUAL,
	 P(AT_1800 COPY ADVANCE_PC "\x10" ADVANCE_LINE "\x01" COPY AT_1000 ADVANCE_LINE
	   "\x01" COPY ADVANCE_PC "\x10" END),
	 {{0x1000, 3, 0, "a.c"}, {0x1010, 0, 0, NULL}, {0x1800, 1, 0, "a.c"},
	  {0x1810, 0, 0, NULL}}},
	{"lines wrap around 2^32",
	 USUAL,
	 P(AT_1000 ADVANCE_LINE "\x7e" COPY ADVANCE_PC "\x01" ADVANCE_LINE "\x08" COPY ADVANCE_PC
				"\x01" END),
	 {{0x1000, UINT32_MAX, 0, "a.c"}, {0x1001, 7, 0, "a.c"}}},
	{"no address was ever set", USUAL, P(COPY ADVANCE_PC "\x80\x80\2" END), {{0x1000, 0, 0, NULL}}},
	{"a sequence without an end", USUAL, P(AT_1000 COPY ADVANCE_PC "\x10"), {{0x1000, 0, 0, NULL}}},
	{"an extended opcode longer than the rest", USUAL, P(AT_1000 COPY "\0\x7f\1"),
	 {{0x1000, 0, 0, NULL}}},
	{"an extended opcode of no length",
	 USUAL,
	 P(AT_1000 COPY "\0\0" ADVANCE_PC "\x01" END),
	 {{0x1000, 1, 0, "a.c"}}},
	{"an address of 9 bytes", USUAL, P("\0\x0a\2\0\x10\0\0\0\0\0\0\0" COPY ADVANCE_PC "\x01" END),
	 {{0x1000, 0, 0, NULL}}},
};

/* clang-format on */

static size_t want_count(const struct line_case *c)
{
	size_t count = 0;

	while (count < 6 && c->want[count].ea)
		count++;
	return count;
}

static bool answer_right(const struct dwarf_answer *answer, const struct want *want)
{
	const struct dwarf_frame *frame = answer->frames;

	if (!want->line)
		return answer->frame_count == 0;
	if (answer->frame_count != 1 || frame->line != want->line ||
	    frame->column != want->column || (frame->file != NULL) != (want->file != NULL))
		return false;
	return !want->file || strcmp(frame->file, want->file) == 0;
}

static void check_programs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct line_case *c = &cases[i];
		struct file file = {0};
		struct dwarf_answer answers[6] = {{0}};
		size_t count = want_count(c);

		file_open_lines(&file,
				program_make(&file.arena, &c->shape, c->program, c->size));
		for (size_t j = 0; j < count; j++)
			answers[j].ea = c->want[j].ea;
		dwarf_lookup(file.dwarf, answers, count);
		for (size_t j = 0; j < count; j++)
			if (!answer_right(&answers[j], &c->want[j]))
				fail_msg("%s: at 0x%llx %s:%u:%u", c->name,
					 (unsigned long long)answers[j].ea,
					 answers[j].frame_count && answers[j].frames->file
						 ? answers[j].frames->file
						 : "(none)",
					 answers[j].frame_count ? answers[j].frames->line : 0,
					 answers[j].frame_count ? answers[j].frames->column
								: 0);
		arena_free(&file.arena);
	}
}

/* Each address alone gives the same as all at once: the run ends early, and begins late. */
static void check_one_by_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct line_case *c = &cases[i];
		struct file file = {0};

		file_open_lines(&file,
				program_make(&file.arena, &c->shape, c->program, c->size));
		for (size_t j = 0; j < want_count(c); j++) {
			struct dwarf_answer answer = {.ea = c->want[j].ea};

			dwarf_lookup(file.dwarf, &answer, 1);
			if (!answer_right(&answer, &c->want[j]))
				fail_msg("%s: 0x%llx alone", c->name,
					 (unsigned long long)answer.ea);
		}
		arena_free(&file.arena);
	}
}

/* Several programs in one section are all run, also behind one that nobody can read. */
static void check_programs_in_a_row(void **state)
{
	struct file file = {0};
	struct shape unknown = usual;
	struct writer w = writer_begin(&file.arena, 4, 4);
	struct dwarf_answer answers[2] = {{.ea = 0x1000}, {.ea = 0x1100}};
	struct bytes program;

	(void)state;
	unknown.version = 6;
	program = program_make(&file.arena, &usual, P(AT_1000 COPY ADVANCE_PC "\x01" END));
	put_bytes(&w, program.at, program.len);
	program = program_make(&file.arena, &unknown, P(AT_1000 COPY ADVANCE_PC "\x01" END));
	put_bytes(&w, program.at, program.len);
	program = program_make(&file.arena, &usual,
			       P(AT_1100 ADVANCE_LINE "\x01" COPY ADVANCE_PC "\x01" END));
	put_bytes(&w, program.at, program.len);
	file_open_lines(&file, writer_bytes(&w));
	dwarf_lookup(file.dwarf, answers, 2);
	assert_int_equal(answers[0].frame_count, 1);
	assert_int_equal(answers[0].frames->line, 1);
	assert_int_equal(answers[1].frame_count, 1);
	assert_int_equal(answers[1].frames->line, 2);
	arena_free(&file.arena);
}

/* Cut at every length and with every byte changed: no answer is worse than none. What it must not
 * do is read outside (the sanitizers tell), run for ever, or invent an address. */
static void ask_some(struct bytes lines)
{
	struct file file = {0};
	struct dwarf_answer answers[3] = {{.ea = 0x10}, {.ea = 0x1000}, {.ea = 0x1013}};

	file_open_lines(&file, lines);
	dwarf_lookup(file.dwarf, answers, 3);
	assert_int_equal(answers[0].frame_count, 0);
	arena_free(&file.arena);
}

static void check_damaged(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i += 3) {
		struct arena arena = {0};
		struct bytes lines =
			program_make(&arena, &cases[i].shape, cases[i].program, cases[i].size);
		uint8_t *copy = malloc(lines.len);

		for (size_t len = 1; len < lines.len; len++) {
			memcpy(copy, lines.at, len);
			ask_some((struct bytes){copy, len});
		}
		for (size_t at = 0; at < lines.len; at++) {
			memcpy(copy, lines.at, lines.len);
			copy[at] ^= 0xff;
			ask_some((struct bytes){copy, lines.len});
		}
		free(copy);
		arena_free(&arena);
	}
}

/* Counts that promise more entries than there can be, and entries that cost no byte. */
static void check_lying_tables(void **state)
{
	static const struct {
		const char *name;
		const char *tables;
		size_t size;
	} lies[] = {
		{"directories without columns", P("\0\xff\xff\xff\xff\x0f")},
		{"more directories than bytes", P("\1\1\x08\xff\xff\xff\xff\x0f"
						  "a\0")},
		{"directories that cost nothing", P("\1\1\x19\x20"
						    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")},
		{"17 columns",
		 P("\x11\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08"
		   "\1\x08\1\x08\1\x08\1\x08\1\x08\1\x08\0")},
		{"a form nobody knows", P("\1\1\x7f\1\0")},
	};

	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		struct file file = {0};
		struct writer w = writer_begin(&file.arena, 5, 4);
		struct dwarf_answer answer = {.ea = 0x1000};
		size_t unit = length_begin(&w), header;

		put_u16(&w, 5);
		put_u16(&w, 8);
		header = plain_length_begin(&w);
		put_bytes(&w, P("\1\1\1\xfb\x0e\x0d\0\1\1\1\1\0\0\0\1\0\0\1"));
		put_bytes(&w, lies[i].tables, lies[i].size);
		plain_length_end(&w, header);
		put_bytes(&w, P(AT_1000 COPY ADVANCE_PC "\x01" END));
		length_end(&w, unit);
		file_open_lines(&file, writer_bytes(&w));
		dwarf_lookup(file.dwarf, &answer, 1);
		/* The line is known all the same. */
		if (answer.frame_count != 1 || answer.frames->line != 1 || answer.frames->file)
			fail_msg("%s", lies[i].name);
		arena_free(&file.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_programs),          cmocka_unit_test(check_one_by_one),
		cmocka_unit_test(check_programs_in_a_row), cmocka_unit_test(check_damaged),
		cmocka_unit_test(check_lying_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
