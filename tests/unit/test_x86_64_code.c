/*
 * x86_64: lengths of instructions, and the frame of a function, told by running its code forward to its
 * return, or from its beginning. The code in each case is what gcc, clang and musl's authors wrote; the
 * lengths are those of a disassembler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64_code.h"
#include "arch/x86_64_decode.h"

#define CODE_MAX 128

enum { CALLED = true, EXACT = false };

/* Hex, blanks between. */
static struct bytes code_of(const char *hex, uint8_t *bytes)
{
	size_t len = 0;
	unsigned value;
	int used;

	while (sscanf(hex, " %2x%n", &value, &used) == 1) {
		assert_true(len < CODE_MAX);
		bytes[len++] = (uint8_t)value;
		hex += used;
	}
	return (struct bytes){bytes, len};
}

/* --- Lengths --- */

/* One instruction each, all of its bytes. */
/* clang-format off */
static const struct { const char *name, *code; } whole[] = {
	{"ret", "c3"},
	{"ret $8", "c20800"},
	{"rep ret", "f3c3"},
	{"push %rbp", "55"},
	{"push %r15", "4157"},
	{"push $0", "6a00"},
	{"push $0x12345678", "6878563412"},
	{"pushw $0x1234", "66683412"},
	{"sub $8,%rsp", "4883ec08"},
	{"sub $0x1000,%rsp", "4881ec00100000"},
	{"cmpw $0x1234,(%rax)", "6681383412"},
	{"mov (%rax),%eax", "8b00"},
	{"mov 8(%rax),%eax", "8b4008"},
	{"mov 0x100(%rax),%eax", "8b8000010000"},
	{"mov 0(%rip),%eax", "8b0500000000"},
	{"mov (%rsp),%eax", "8b0424"},
	{"mov 8(%rsp),%eax", "8b442408"},
	{"mov 0x100(%rsp),%eax", "8b842400010000"},
	{"mov 0x100(,%rax,8),%eax", "8b04c500010000"},
	{"mov 0(%rbp,%rax,1),%eax", "8b440500"},
	{"mov 0(%r13),%eax", "418b4500"},
	{"mov (%r12),%eax", "418b0424"},
	{"mov %fs:0x28,%rax", "64488b042528000000"},
	{"mov (%eax),%eax", "678b00"},
	{"mov $1,%eax", "b801000000"},
	{"mov $1,%ax", "66b80100"},
	{"movabs $1,%rax", "48b80100000000000000"},
	{"movabs 0x11,%al", "a01100000000000000"},
	{"movabs 0x11,%al, address of 32 bits", "67a011000000"},
	{"movl $1,8(%rsp)", "c744240801000000"},
	{"movw $1,8(%rsp)", "66c74424080100"},
	{"movb $1,(%rax)", "c60001"},
	{"test $1,%cl", "f6c101"},
	{"not %cl", "f6d1"},
	{"test $1,%ecx", "f7c101000000"},
	{"test $1,%cx", "66f7c10100"},
	{"neg %ecx", "f7d9"},
	{"imul $8,%eax,%eax", "6bc008"},
	{"imul $0x1000,%eax,%eax", "69c000100000"},
	{"shl $7,%rdx", "48c1e207"},
	{"enter $0x10,$0", "c8100000"},
	{"int $0x80", "cd80"},
	{"call", "e800000000"},
	{"rex.W call, thread-local storage", "666648e800000000"},
	{"call *%rax", "ffd0"},
	{"call *8(%r12)", "41ff542408"},
	{"call *0(%rip)", "ff1500000000"},
	{"jmp", "eb00"},
	{"jmp, far off", "e900000000"},
	{"bnd jmp *0(%rip)", "f2ff2500000000"},
	{"notrack jmp *%rax", "3effe0"},
	{"je", "7400"},
	{"je, far off", "0f8400000000"},
	{"jrcxz", "e300"},
	{"syscall", "0f05"},
	{"endbr64", "f30f1efa"},
	{"nopw 0(%rax,%rax,1)", "660f1f440000"},
	{"cs nopw 0(%rax,%rax,1), long", "662e0f1f840000000000"},
	{"movzbl %al,%eax", "0fb6c0"},
	{"cpuid", "0fa2"},
	{"bt $3,%eax", "0fbae003"},
	{"shld $3,%eax,%ebx", "0fa4c303"},
	{"bswap %eax", "0fc8"},
	{"lock cmpxchg %edx,16(%rdi)", "f00fb15710"},
	{"pshufd $1,%xmm0,%xmm1", "660f70c801"},
	{"emms", "0f77"},
	{"extrq $1,$2,%xmm0", "660f78c00102"},
	{"insertq $1,$2,%xmm1,%xmm0", "f20f78c10102"},
	{"pi2fd (3DNow!)", "0f0fc10d"},
	{"pshufb %xmm1,%xmm0", "660f3800c1"},
	{"crc32 %al,%eax", "f20f38f0c0"},
	{"palignr $3,%xmm1,%xmm0", "660f3a0fc103"},
	{"vzeroupper", "c5f877"},
	{"vmovdqu (%rdi),%ymm0", "c5fe6f07"},
	{"vpcmpeqb 0x20(%rdi),%ymm1,%ymm0", "c5f5744720"},
	{"vpshufd $1,%xmm0,%xmm1", "c5f970c801"},
	{"vpshufb %ymm8,%ymm1,%ymm0", "c4c27500c0"},
	{"vinserti128 $1,%xmm1,%ymm0,%ymm0", "c4e37d38c101"},
	{"shlx %rax,%rbx,%rcx", "c4e2f9f7cb"},
	{"vmovdqu64 0x40(%rdi),%zmm0", "62f1fe486f4701"},
	{"vpcmpub $4,%zmm1,%zmm0,%k0", "62f37d483ec104"},
	{"vpternlogd $0xff,%zmm0,%zmm0,%zmm0", "62f37d4825c0ff"},
	{"vaddph %zmm1,%zmm0,%zmm0", "62f57c4858c1"},
	{"vprotb $1,%xmm0,%xmm0 (XOP)", "8fe878c0c001"},
	{"bextr $0x11,%eax,%ecx (XOP)", "8fea7810c811000000"},
	{"pop (%rax)", "8f00"},
};

static const char *const unknown[] = {
	"06", "0e", "1f", "27", "60", "61", "82", "9a00000000", "ce", "d6", "ea00000000",
	"0f04", "0f0a", "0f0c", "0f24c0", "0f36", "0fa6c0", "c5f80500", "c4e0780000", "c4e4780000", "62f07c480000",
	"8feb7810c8",
	"66666666666666666666666666666690",
};
/* clang-format on */

static void test_lengths(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
		struct x86_64_instruction found;
		uint8_t bytes[CODE_MAX + X86_64_SIZE_MAX] = {0};
		struct bytes code = code_of(whole[i].code, bytes);

		print_message("%s\n", whole[i].name);
		assert_true(x86_64_decode(code, 0, &found));
		assert_int_equal(found.size, code.len);
		assert_true(x86_64_decode((struct bytes){bytes, sizeof bytes}, 0, &found));
		assert_int_equal(found.size, code.len);
		assert_false(x86_64_decode(code, code.len, &found));
		assert_false(x86_64_decode(code, SIZE_MAX, &found));
	}
}

/* Cut short it is no instruction. (A prefix alone is none either.) */
static void test_lengths_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
		struct x86_64_instruction found;
		uint8_t bytes[CODE_MAX];
		struct bytes code = code_of(whole[i].code, bytes);

		for (size_t len = 0; len < code.len; len++)
			assert_false(x86_64_decode((struct bytes){bytes, len}, 0, &found));
	}
}

static void test_unknown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
		struct x86_64_instruction found;
		uint8_t bytes[CODE_MAX + X86_64_SIZE_MAX] = {0};

		print_message("%s\n", unknown[i]);
		code_of(unknown[i], bytes);
		assert_false(x86_64_decode((struct bytes){bytes, sizeof bytes}, 0, &found));
	}
}

/* --- Frames --- */

static int print_place(char *text, size_t size, struct arch_place place)
{
	return snprintf(text, size, "%s%+lld", place.from_fp ? "fp" : "sp",
			(long long)place.offset);
}

/* "SP RA REGISTER=PLACE ...", by DWARF numbers. */
static const char *frame_text(const struct arch_frame *frame)
{
	static char text[256];
	size_t len = (size_t)print_place(text, sizeof text, frame->sp);

	text[len++] = ' ';
	len += (size_t)print_place(text + len, sizeof text - len, frame->ra);
	for (unsigned i = 0; i < frame->saved_count; i++) {
		len += (size_t)snprintf(text + len, sizeof text - len,
					" r%d=", frame->saved[i].dwarf);
		len += (size_t)print_place(text + len, sizeof text - len,
					   frame->saved[i].place);
	}
	if (frame->by_jump)
		len += (size_t)snprintf(text + len, sizeof text - len, " jump");
	if (frame->doubtful)
		snprintf(text + len, sizeof text - len, " doubtful");
	return text;
}

struct code_case {
	const char *name;
	bool called;
	const char *code;
	const char *want; /* NULL: cannot be told */
};

/* clang-format off */
static const struct code_case returns[] = {
	{"nothing but a return", EXACT, "c3", "sp+8 sp+0"},
	{"a return that releases arguments", EXACT, "c21000", "sp+24 sp+0"},
	{"musl's pause", CALLED, "4889c7 e83c040000 4883c418 c3", "sp+32 sp+24"},
	{"musl's pause, from its beginning", EXACT,
	 "4883ec10 4531c9 6a00 31d2 e800000000 4889c7 4883c418 c3", "sp+8 sp+0"},
	{"musl's __timedwait_cp", CALLED,
	 "5e 5f 89c2 83f8da 4883c420 5b 5d 415c 415d 415e c3",
	 "sp+96 sp+88 r3=sp+48 r6=sp+56 r12=sp+64 r13=sp+72 r14=sp+80"},
	{"frame pointer, popped", CALLED, "5d c3", "sp+16 sp+8 r6=sp+0"},
	{"frame pointer, leave", CALLED, "31c0 c9 c3", "fp+16 fp+8 r6=fp+0"},
	{"frame pointer, lea", CALLED, "488d65f0 5b 415c 5d c3",
	 "fp+16 fp+8 r3=fp-16 r6=fp+0 r12=fp-8"},
	{"frame pointer, mov", CALLED, "4889ec 5d c3", "fp+16 fp+8 r6=fp+0"},
	{"frame pointer, about to be made", EXACT, "55 4889e5 4883ec20 c9 c3", "sp+8 sp+0"},
	{"frame pointer, half made", EXACT, "4889e5 4883ec20 c9 c3", "sp+16 sp+8 r6=sp+0"},
	{"mov of callee-saved registers", CALLED,
	 "488b5c2408 488b6c2410 4c8b642418 4883c428 c3", "sp+48 sp+40 r3=sp+8 r6=sp+16 r12=sp+24"},
	{"registers of 32 bits give nothing back", CALLED, "8b5c2408 4883c428 c3", "sp+48 sp+40"},
	{"variable room, then the frame pointer", CALLED, "4829c4 c9 c3", "fp+16 fp+8 r6=fp+0"},
	{"aligned, then the frame pointer", CALLED, "4883e4f0 c9 c3", "fp+16 fp+8 r6=fp+0"},
	{"variable room", CALLED, "4829c4 5d c3", NULL},
	{"aligned", CALLED, "4883e4f0 5d c3", NULL},
	{"SP from a register", CALLED, "4889fc 5d c3", NULL},
	{"SP exchanged", CALLED, "4887e7 5d c3", NULL},
	{"SP popped", CALLED, "5c c3", NULL},
	{"the frame pointer is another value", CALLED, "4889fd c9 c3", NULL},
	{"a comparison writes no SP", CALLED, "4883fc00 5d c3", "sp+16 sp+8 r6=sp+0"},
	{"flags", CALLED, "9c 9d 58 c3", "sp+16 sp+8"},
	{"arguments pushed and released", CALLED, "6a01 6800000000 ff7010 e800000000 4883c420 c3", "sp+16 sp+8"},
	{"calls between", CALLED, "ffd0 e800000000 ff5308 58 c3", "sp+16 sp+8"},
	{"a jump", CALLED, "eb02 0f0b 58 c3", "sp+16 sp+8"},
	{"a far jump", CALLED, "e902000000 0f0b 58 c3", "sp+16 sp+8"},
	{"a jump back", CALLED, "eb03 58 c3 f4 ebfb", "sp+16 sp+8"},
	{"a tail call to code that is there", CALLED, "58 e901000000 f4 53 5b c3", "sp+16 sp+8"},
	{"a tail call by the PLT", CALLED, "58 ff2500000000", "sp+16 sp+8 jump"},
	{"a table of targets", CALLED, "58 3effe0", NULL},
	{"straight on", CALLED, "7403 58 c3 f4 f4", "sp+16 sp+8"},
	{"the other way: stopped", CALLED, "7401 f4 58 c3", "sp+16 sp+8"},
	{"the other way, far off", CALLED, "0f8402000000 0f0b 58 c3", "sp+16 sp+8"},
	{"the other way: padding", CALLED, "7402 0000 58 c3", "sp+16 sp+8"},
	{"the other way: a trap", CALLED, "7401 cc 58 c3", "sp+16 sp+8"},
	{"a loop that can be left", CALLED, "7402 ebfc 58 c3", "sp+16 sp+8"},
	{"a loop without an end", CALLED, "e800000000 ebf9", NULL},
	{"the next function's code", CALLED, "e800000000 53 5b c3", "sp+8 sp+0 doubtful"},
	{"the other way, not the next function's code", CALLED, "7408 e800000000 53 5b c3 58 c3", "sp+16 sp+8"},
	{"the frame pointer, saved and made on the way", EXACT, "55 4889e5 31c0 c9 c3", "sp+8 sp+0"},
	{"a register used on the way", EXACT, "53 488b1f 488b5c2410 5b c3", "sp+8 sp+0"},
	{"a register used after a jump into another function", CALLED,
	 "5b eb00 53 488b5c2410 5b c3", "sp+16 sp+8 r3=sp+0"},
	{"above SP", EXACT, "50 c3", NULL},
	{"far return", EXACT, "cb", NULL},
	{"enter", EXACT, "c8100000 c9 c3", NULL},
	{"out of the text, forward", CALLED, "eb70", NULL},
	{"out of the text, backward", CALLED, "eb80", NULL},
	{"no instruction", CALLED, "06 58 c3", NULL},
	{"the text ends", CALLED, "90 90", NULL},
};

/* `|` is the pc. */
static const struct code_case entries[] = {
	{"musl's start: never returns", CALLED,
	 "55 53 4889fb 4883ec08 ff13 | 4889c7 e800000000", "sp+32 sp+24 r3=sp+8 r6=sp+16"},
	{"musl's libc_start_main_stage2", CALLED,
	 "4155 4863c6 4154 4c8d6cc208 4989d4 55 4889c5 53 4889fb 4883ec08 e800000000 89ef ffd3 | 89c7 e800000000",
	 "sp+48 sp+40 r3=sp+8 r6=sp+16 r12=sp+24 r13=sp+32"},
	{"endbr64", CALLED, "f30f1efa 50 ffd0 | 0f0b", "sp+16 sp+8"},
	{"frame pointer", CALLED, "55 4889e5 53 50 ffd0 | ebfc", "sp+32 sp+24 r3=sp+8 r6=sp+16"},
	{"frame pointer, aligned", CALLED, "55 4889e5 4883e4e0 ffd0 | ebfc", "fp+16 fp+8 r6=fp+0"},
	{"mov of callee-saved registers", CALLED, "4883ec18 48895c2408 ffd0 | ebfc", "sp+32 sp+24 r3=sp+8"},
	{"loaded, but not given back", CALLED, "53 50 488b1c24 ffd0 | ebfc", NULL},
	{"loaded, but not given back, aligned", CALLED, "53 4883ec10 488b1c24 ffd0 | ebfc", "sp+32 sp+24 r3=sp+16"},
	{"given back on the way", CALLED, "53 5b 50 ffd0 | ebfc", "sp+16 sp+8"},
	{"after a return", CALLED, "5b c3 50 ffd0 | ebfc", "sp+16 sp+8"},
	{"after a jump", CALLED, "5b e900000000 50 ffd0 | ebfc", "sp+16 sp+8"},
	{"after a call that does not return", CALLED, "51 e800000000 50 ffd0 | ebfc", "sp+16 sp+8"},
	{"after a trap", CALLED, "51 0f0b 50 ffd0 | ebfc", "sp+16 sp+8"},
	{"by the other way", CALLED, "50 7402 58 c3 ffd0 | ebfc", "sp+16 sp+8"},
	{"not aligned for a call", CALLED, "53 50 ffd0 | ebfc", NULL},
	{"interrupted there", EXACT, "53 50 ffd0 | ebfc", "sp+24 sp+16 r3=sp+8"},
	{"leads past the pc", EXACT, "b8 90 | 909090 ebfc", NULL},
	{"room of another's", EXACT, "58 | ebfe", NULL},
};
/* clang-format on */

static void test_returns(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof returns / sizeof returns[0]; i++) {
		uint8_t bytes[CODE_MAX];
		struct bytes code = code_of(returns[i].code, bytes);
		struct arch_frame frame;
		bool found = x86_64_frame_by_code(code, 0, returns[i].called, &frame);

		print_message("%s\n", returns[i].name);
		assert_int_equal(found, returns[i].want != NULL);
		if (found)
			assert_string_equal(frame_text(&frame), returns[i].want);
	}
}

/* Cut short the answer is the same, or worse. */
static void test_returns_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof returns / sizeof returns[0]; i++) {
		uint8_t bytes[CODE_MAX];
		struct bytes code = code_of(returns[i].code, bytes);

		for (size_t len = 0; len < code.len; len++) {
			struct arch_frame frame;

			if (!x86_64_frame_by_code((struct bytes){bytes, len}, 0,
						  returns[i].called, &frame) ||
			    frame.doubtful)
				continue;
			assert_non_null(returns[i].want);
			assert_string_equal(frame_text(&frame), returns[i].want);
		}
	}
}

/* `hex` with its `|` left out. */
static struct bytes code_at(const char *hex, uint8_t *bytes, size_t *at)
{
	const char *mark = strchr(hex, '|');
	struct bytes code = code_of(hex, bytes);
	struct bytes rest = code_of(mark + 1, bytes + code.len);

	*at = code.len;
	code.len += rest.len;
	return code;
}

static void test_entries(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		uint8_t bytes[2 * CODE_MAX];
		size_t at;
		struct bytes code = code_at(entries[i].code, bytes, &at);
		size_t entry = at;
		struct arch_frame frame;
		bool found = x86_64_frame_by_entry(code, at, entries[i].called, &entry, &frame);

		print_message("%s\n", entries[i].name);
		assert_int_equal(found, entries[i].want != NULL);
		if (found)
			assert_string_equal(frame_text(&frame), entries[i].want);
		assert_true(entry < at);
	}
}

/* The nearest first; each one once. */
static void test_entries_one_by_one(void **state)
{
	uint8_t bytes[CODE_MAX];
	struct bytes code = code_of("53 53 51 c3 53 c3 90 90", bytes);
	struct arch_frame frame;
	size_t entry = 7;

	(void)state;
	assert_true(x86_64_frame_by_entry(code, 7, EXACT, &entry, &frame));
	assert_int_equal(entry, 6);
	assert_string_equal(frame_text(&frame), "sp+8 sp+0");
	assert_false(x86_64_frame_by_entry(code, 7, EXACT, &entry, &frame));
	entry = SIZE_MAX;
	assert_false(x86_64_frame_by_entry(code, SIZE_MAX, EXACT, &entry, &frame));
	entry = 0;
	assert_false(x86_64_frame_by_entry((struct bytes){NULL, 0}, 0, EXACT, &entry, &frame));
}

/* Jumps everywhere: the search ends. */
static void test_jumps_have_a_limit(void **state)
{
	static uint8_t bytes[1 << 16];
	struct bytes text = {bytes, sizeof bytes};
	struct arch_frame frame;
	size_t entry = 0x8000;

	(void)state;
	for (size_t at = 0; at < sizeof bytes; at += 2) {
		bytes[at] = 0x74;
		bytes[at + 1] = at % 3 ? 14 : 0xf0;
	}
	assert_false(x86_64_frame_by_code(text, 0x8000, CALLED, &frame));
	assert_false(x86_64_frame_by_code(text, 0x8001, CALLED, &frame));
	assert_false(x86_64_frame_by_code(text, sizeof bytes + 4, CALLED, &frame));
	assert_false(x86_64_frame_by_code(text, SIZE_MAX, CALLED, &frame));
	assert_false(x86_64_frame_by_entry(text, 0x8000, CALLED, &entry, &frame));
}

static void test_calls(void **state)
{
	/* clang-format off */
	static const struct { const char *code; bool want; } calls[] = {
		{"e800000000", true}, {"ffd0", true}, {"41ffd4", true}, {"ff5308", true}, {"41ff542408", true},
		{"ff1500000000", true}, {"ff942400010000", true}, {"41ff942400010000", true}, {"67e800000000", true},
		{"c3", false}, {"ffe0", false}, {"ff7010", false}, {"e900000000", false}, {"0f84e8000000", false},
		{"90909090909090909090", false}, {"", false},
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		uint8_t bytes[CODE_MAX];
		struct bytes code = code_of(calls[i].code, bytes);

		assert_int_equal(x86_64_is_after_call(code, code.len), calls[i].want);
		assert_false(x86_64_is_after_call(code, code.len + 1));
		assert_false(x86_64_is_after_call(code, SIZE_MAX));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_lengths_cut_short),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_returns_cut_short),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_entries_one_by_one),
		cmocka_unit_test(test_jumps_have_a_limit),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
