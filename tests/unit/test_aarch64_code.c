/*
 * aarch64: the frame of a function, told by running its code forward to its return. The code
 * below each case is what gcc, clang and musl's authors wrote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/aarch64_code.h"

#define WORDS_MAX 16

enum { CALLED = true, EXACT = false };

#define NOP 0xd503201f
#define RET 0xd65f03c0
#define RETAA 0xd65f0bff
#define AUTIASP 0xd50323bf
#define BL 0x94000400 /* somewhere else */
#define BLR_X1 0xd63f0020
#define BLRAA 0xd73f0821 /* x1, x1 */
#define BR_X16 0xd61f0200
#define UDF 0x00000000
#define B(words) (0x14000000 | ((uint32_t)(words)&0x3ffffff))
#define BEQ(words) (0x54000000 | ((uint32_t)(words)&0x7ffff) << 5)
#define CBZ(words) (0xb4000000 | ((uint32_t)(words)&0x7ffff) << 5)
#define TBZ(words) (0x36000000 | ((uint32_t)(words)&0x3fff) << 5)
#define PUSH_FP_LR_32 0xa9be7bfd /* stp x29,x30,[sp,#-32]! */
#define POP_FP_LR_32 0xa8c27bfd  /* ldp x29,x30,[sp],#32 */
#define MOV_FP_SP 0x910003fd     /* mov x29,sp */
#define MOV_SP_FP 0x910003bf     /* mov sp,x29 */
#define PUSH_LR_16 0xf81f0ffe    /* str x30,[sp,#-16]! */
#define POP_LR_16 0xf84107fe     /* ldr x30,[sp],#16 */
#define LDP_X19_X20 0xa94153f3   /* ldp x19,x20,[sp,#16] */
#define LDR_X21_X30 0xa9427bf5   /* ldp x21,x30,[sp,#32] */
#define ADD_SP_48 0x9100c3ff
#define SUB_SP_48 0xd100c3ff
#define ADD_SP_4096 0x914007ff /* add sp,sp,#1,lsl #12 */
#define ADD_SP_X16 0x8b3063ff  /* add sp,sp,x16 */
#define AND_SP 0x927cec1f      /* and sp,x0,#~15 */
#define TST_X0 0xf2400c1f      /* tst x0,#15 */
#define CMP_SP_X1 0xeb2163ff   /* cmp sp,x1 */
#define POP_D8_D9 0x6cc127e8   /* ldp d8,d9,[sp],#16 */
#define LDR_X19_FP 0xf85f03b3  /* ldur x19,[x29,#-16] */
#define LDR_X30_X9 0xf940013e  /* ldr x30,[x9] */
#define MOV_X30_X9 0xaa0903fe
#define STP_FP_LR_SP_16 0xa9017bfd /* stp x29,x30,[sp,#16] */
#define LDP_FP_LR_SP_16 0xa9417bfd /* ldp x29,x30,[sp,#16] */
#define LDR_X30_SP_8 0xf94007fe    /* ldr x30,[sp,#8] */

struct code_case {
	const char *name;
	bool called;
	uint32_t code[WORDS_MAX]; /* up to a word END */
	const char *want;         /* NULL: cannot be told */
};

/* No instruction; udf is 0. */
#define END 0xffffffff

/* clang-format off */
static const struct code_case cases[] = {
	{"nothing but a return", EXACT, {RET, END}, "sp+0 lr"},
	{"not of a caller: LR is lost", CALLED, {RET, END}, NULL},
	{"frame record", CALLED, {NOP, POP_FP_LR_32, RET, END}, "sp+32 sp+8 x29=sp+0"},
	{"signed", CALLED, {POP_FP_LR_32, AUTIASP, RET, END}, "sp+32 sp+8 x29=sp+0"},
	{"signed, in one instruction", CALLED, {POP_FP_LR_32, RETAA, END}, "sp+32 sp+8 x29=sp+0"},
	{"only LR is saved", CALLED, {POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"before the frame is made", EXACT, {PUSH_FP_LR_32, MOV_FP_SP, BL, POP_FP_LR_32, RET, END}, "sp+0 lr"},
	{"the frame is half made", EXACT, {MOV_FP_SP, BL, POP_FP_LR_32, RET, END}, "sp+32 sp+8 x29=sp+0"},
	{"there is room, and nothing in it", EXACT,
	 {STP_FP_LR_SP_16, BL, LDP_FP_LR_SP_16, ADD_SP_48, RET, END}, "sp+48 lr"},
	{"before a frame of variable size", EXACT,
	 {PUSH_FP_LR_32, MOV_FP_SP, ADD_SP_X16, BL, MOV_SP_FP, POP_FP_LR_32, RET, END}, "sp+0 lr"},
	{"before the return", EXACT, {AUTIASP, RET, END}, "sp+0 lr"},
	{"a leaf with room", EXACT, {NOP, ADD_SP_48, RET, END}, "sp+48 lr"},
	{"a leaf before its room", EXACT, {SUB_SP_48, NOP, ADD_SP_48, RET, END}, "sp+0 lr"},
	{"callee-saved registers", CALLED, {LDP_X19_X20, LDR_X21_X30, ADD_SP_48, RET, END},
	 "sp+48 sp+40 x19=sp+16 x20=sp+24 x21=sp+32"},
	{"vector registers", CALLED, {POP_D8_D9, POP_LR_16, RET, END}, "sp+32 sp+16"},
	{"two steps", CALLED, {ADD_SP_4096, ADD_SP_48, POP_LR_16, RET, END}, "sp+4160 sp+4144"},
	{"by the frame pointer", CALLED, {LDR_X19_FP, MOV_SP_FP, POP_FP_LR_32, RET, END},
	 "fp+32 fp+8 x19=fp-16 x29=fp+0"},
	{"variable room, then the frame pointer", CALLED, {ADD_SP_X16, MOV_SP_FP, POP_FP_LR_32, RET, END},
	 "fp+32 fp+8 x29=fp+0"},
	{"aligned, then the frame pointer", CALLED, {AND_SP, MOV_SP_FP, POP_FP_LR_32, RET, END},
	 "fp+32 fp+8 x29=fp+0"},
	{"variable room", CALLED, {ADD_SP_X16, POP_FP_LR_32, RET, END}, NULL},
	{"comparisons write no SP", CALLED, {TST_X0, CMP_SP_X1, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"calls between", CALLED, {BL, BLR_X1, BLRAA, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"a call after LR was loaded", CALLED, {POP_LR_16, BL, RET, END}, NULL},
	{"a jump", CALLED, {B(3), UDF, UDF, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"a jump back", CALLED, {B(2), B(3), B(-1), UDF, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"straight on", CALLED, {BEQ(4), POP_LR_16, RET, UDF, UDF, END}, "sp+16 sp+0"},
	{"the other way: no return", CALLED, {BEQ(4), BL, UDF, UDF, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"the other way, cbz", CALLED, {CBZ(2), UDF, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"the other way, tbz", CALLED, {TBZ(2), UDF, POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"a loop that can be left", CALLED, {BEQ(3), BL, B(-2), POP_LR_16, RET, END}, "sp+16 sp+0"},
	{"a loop without an end", CALLED, {BL, B(-1), END}, NULL},
	{"the next function's code", CALLED, {BL, PUSH_FP_LR_32, MOV_FP_SP, POP_FP_LR_32, RET, END}, NULL},
	{"the next function's code, behind a call that does not return", EXACT,
	 {BL, PUSH_LR_16, POP_LR_16, RET, END}, NULL},
	{"SP is left below", EXACT, {SUB_SP_48, RET, END}, NULL},
	{"the other way, not the next function", CALLED,
	 {BEQ(5), BL, PUSH_LR_16, POP_LR_16, RET, POP_FP_LR_32, RET, END}, "sp+32 sp+8 x29=sp+0"},
	{"a jump into another function, which makes a frame in the same place", CALLED,
	 {POP_LR_16, B(2), UDF, PUSH_FP_LR_32, BL, POP_FP_LR_32, RET, END}, "sp+16 sp+0"},
	{"the same, after a frame by the frame pointer", CALLED,
	 {MOV_SP_FP, POP_FP_LR_32, PUSH_LR_16, BL, POP_LR_16, RET, END}, "fp+32 fp+8 x29=fp+0"},
	{"a table of targets", EXACT, {BR_X16, RET, END}, NULL},
	{"LR from elsewhere", EXACT, {LDR_X30_X9, RET, END}, NULL},
	{"LR from a register", EXACT, {MOV_X30_X9, RET, END}, NULL},
	{"LR with another register's neighbour", CALLED, {LDR_X30_SP_8, ADD_SP_48, RET, END}, "sp+48 sp+8"},
	{"out of the text, forward", CALLED, {B(1000), END}, NULL},
	{"out of the text, backward", CALLED, {B(-1000), END}, NULL},
	{"the text ends", CALLED, {NOP, NOP, END}, NULL},
};
/* clang-format on */

static size_t code_bytes(const uint32_t *code, uint8_t *bytes)
{
	size_t count = 0;

	for (; code[count] != END; count++)
		for (unsigned i = 0; i < 4; i++)
			bytes[4 * count + i] = (uint8_t)(code[count] >> (8 * i));
	return 4 * count;
}

static int print_place(char *text, size_t size, struct arch_place place)
{
	return snprintf(text, size, "%s%+lld", place.from_fp ? "fp" : "sp",
			(long long)place.offset);
}

static const char *frame_text(const struct arch_frame *frame)
{
	static char text[256];
	size_t len = (size_t)print_place(text, sizeof text, frame->sp);

	if (frame->ra_in_lr) {
		len += (size_t)snprintf(text + len, sizeof text - len, " lr");
	} else {
		text[len++] = ' ';
		len += (size_t)print_place(text + len, sizeof text - len, frame->ra);
	}
	for (unsigned i = 0; i < frame->saved_count; i++) {
		len += (size_t)snprintf(text + len, sizeof text - len,
					" x%d=", frame->saved[i].dwarf);
		len += (size_t)print_place(text + len, sizeof text - len,
					   frame->saved[i].place);
	}
	return text;
}

static void test_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t bytes[4 * WORDS_MAX];
		struct bytes text = {bytes, code_bytes(cases[i].code, bytes)};
		struct arch_frame frame;

		print_message("%s\n", cases[i].name);
		if (!cases[i].want) {
			assert_false(aarch64_frame_by_code(text, 0, cases[i].called, &frame));
			continue;
		}
		assert_true(aarch64_frame_by_code(text, 0, cases[i].called, &frame));
		assert_string_equal(frame_text(&frame), cases[i].want);
	}
}

/* Cut short at every length the answer is the same, or none. */
static void test_frames_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t bytes[4 * WORDS_MAX];
		size_t size = code_bytes(cases[i].code, bytes);

		for (size_t len = 0; len < size; len++) {
			struct bytes text = {bytes, len};
			struct arch_frame frame;

			if (!aarch64_frame_by_code(text, 0, cases[i].called, &frame))
				continue;
			assert_non_null(cases[i].want);
			assert_string_equal(frame_text(&frame), cases[i].want);
		}
	}
}

/* Branches everywhere: the search ends. */
static void test_branches_have_a_limit(void **state)
{
	static uint8_t bytes[1 << 16];
	struct bytes text = {bytes, sizeof bytes};
	struct arch_frame frame;

	(void)state;
	for (size_t at = 0; at < sizeof bytes; at += 4) {
		uint32_t code = BEQ(at % 3 ? 7 : -5);

		memcpy(bytes + at, &code, 4);
	}
	assert_false(aarch64_frame_by_code(text, 0x8000, CALLED, &frame));
	assert_false(aarch64_frame_by_code(text, 0x8002, CALLED, &frame));
	assert_false(aarch64_frame_by_code(text, sizeof bytes + 4, CALLED, &frame));
	assert_false(aarch64_frame_by_code(text, SIZE_MAX, CALLED, &frame));
}

/* Functions that end in a call which does not return; the pc is behind the code. */
/* clang-format off */
static const struct code_case entry_cases[] = {
	{"LR is saved", CALLED, {RET, PUSH_LR_16, BL, BL, END}, "sp+16 sp+0"},
	{"a frame record", CALLED, {NOP, PUSH_FP_LR_32, MOV_FP_SP, BL, NOP, BL, END}, "sp+32 sp+8 x29=sp+0"},
	{"the beginning of the text", CALLED, {PUSH_FP_LR_32, BL, END}, "sp+32 sp+8 x29=sp+0"},
	{"behind another such function", CALLED, {PUSH_FP_LR_32, BL, PUSH_LR_16, BL, END}, "sp+16 sp+0"},
	{"a jump on the way", CALLED, {RET, PUSH_LR_16, B(2), UDF, BL, END}, "sp+16 sp+0"},
	{"a loop on the way", CALLED, {RET, PUSH_LR_16, BL, B(3), BL, B(-3), BEQ(-3), BL, END}, "sp+16 sp+0"},
	{"variable room, and a frame pointer", CALLED,
	 {RET, PUSH_FP_LR_32, MOV_FP_SP, ADD_SP_X16, BL, END}, "fp+32 fp+8 x29=fp+0"},
	{"variable room", CALLED, {RET, PUSH_LR_16, ADD_SP_X16, BL, END}, NULL},
	{"no LR is saved", CALLED, {RET, SUB_SP_48, BL, END}, NULL},
	{"no way leads there", CALLED, {RET, PUSH_LR_16, BL, RET, BL, END}, NULL},
	{"a return just before", CALLED, {RET, PUSH_LR_16, BL, POP_LR_16, RET, END}, NULL},
	{"a trap just before", CALLED, {RET, PUSH_LR_16, BL, UDF, END}, NULL},
};
/* clang-format on */

static void test_frames_by_entry(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof entry_cases / sizeof entry_cases[0]; i++) {
		uint8_t bytes[4 * WORDS_MAX];
		struct bytes text = {bytes, code_bytes(entry_cases[i].code, bytes)};
		struct arch_frame frame;
		size_t entry = text.len;

		print_message("%s\n", entry_cases[i].name);
		if (!entry_cases[i].want) {
			assert_false(
				aarch64_frame_by_entry(text, text.len, CALLED, &entry, &frame));
			continue;
		}
		assert_true(aarch64_frame_by_entry(text, text.len, CALLED, &entry, &frame));
		assert_string_equal(frame_text(&frame), entry_cases[i].want);
		assert_true(entry < text.len);
	}
}

static void test_entries_of_nonsense(void **state)
{
	uint8_t bytes[64] = {0};
	struct bytes text = {bytes, sizeof bytes};
	struct arch_frame frame;
	const size_t places[] = {0, 1, 2, 3, 63, 64, 65, SIZE_MAX - 3, SIZE_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		size_t entry = places[i];

		while (aarch64_frame_by_entry(text, places[i], CALLED, &entry, &frame))
			;
	}
}

static void test_calls(void **state)
{
	static const uint32_t code[] = {BL, BLR_X1, BLRAA, RET, BR_X16, B(1), NOP, END};
	static const bool want[] = {true, true, true, false, false, false, false};
	uint8_t bytes[4 * WORDS_MAX];
	struct bytes text = {bytes, code_bytes(code, bytes)};

	(void)state;
	assert_false(aarch64_is_after_call(text, 0));
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
		assert_int_equal(aarch64_is_after_call(text, 4 * i + 4), want[i]);
	assert_false(aarch64_is_after_call(text, text.len + 4));
	assert_false(aarch64_is_after_call(text, SIZE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_frames_cut_short),
		cmocka_unit_test(test_branches_have_a_limit),
		cmocka_unit_test(test_frames_by_entry),
		cmocka_unit_test(test_entries_of_nonsense),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
