/* DWARF expressions: every operation that call frames may have, and the refusal of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/expression.h"

#define STACK_VA UINT64_C(0x7ffe00001000)
#define BIAS UINT64_C(0x555500000000)

static uint8_t stack_bytes[64];
static struct memory_piece piece = {STACK_VA, {stack_bytes, sizeof stack_bytes}};
static struct map maps[] = {
	{.start = STACK_VA & ~UINT64_C(0xfff),
	 .end = STACK_VA + 0x2000,
	 .permissions = "rw-p",
	 .path = "[stack]",
	 .module = -1},
};
static const struct snapshot snapshot = {.arch = &arch_x86_64, .maps = maps, .map_count = 1};
static const struct modules no_modules;

struct expression_case {
	const char *name;
	const char *code;
	size_t size;
	uint64_t want; /* or, with `error`, nothing */
	const char *error;
	enum stop stop;
};

#define GIVES(code, want) code, sizeof(code) - 1, want, NULL, STOP_UNKNOWN
#define REFUSES(code, error) code, sizeof(code) - 1, 0, error, STOP_BAD_CFI
#define FAILS(code, stop) code, sizeof(code) - 1, 0, NULL, stop

/* Registers: r7 = STACK_VA, r0 = 100, r16 = 0x55550000100b; others are not known. The stack begins with
 * the CFA, STACK_VA + 16. */
/* clang-format off */
static const struct expression_case cases[] = {
	{"nothing: the CFA", GIVES("", STACK_VA + 16)},
	{"addr", GIVES("\x03\x10\0\0\0\0\0\0\0", BIAS + 16)},
	{"const1u", GIVES("\x08\xff", 255)},
	{"const1s", GIVES("\x09\xff", (uint64_t)-1)},
	{"const2u", GIVES("\x0a\xfe\xff", 0xfffe)},
	{"const2s", GIVES("\x0b\xfe\xff", (uint64_t)-2)},
	{"const4u", GIVES("\x0c\xfe\xff\xff\xff", 0xfffffffe)},
	{"const4s", GIVES("\x0d\xfe\xff\xff\xff", (uint64_t)-2)},
	{"const8u", GIVES("\x0e\x88\x77\x66\x55\x44\x33\x22\x11", 0x1122334455667788)},
	{"const8s", GIVES("\x0f\xfe\xff\xff\xff\xff\xff\xff\xff", (uint64_t)-2)},
	{"constu", GIVES("\x10\x80\x01", 128)},
	{"consts", GIVES("\x11\x80\x7f", (uint64_t)-128)},
	{"lit0", GIVES("\x30", 0)},
	{"lit31", GIVES("\x4f", 31)},
	{"breg0", GIVES("\x70\x05", 105)},
	{"breg0, negative", GIVES("\x70\x7b", 95)},
	{"breg7", GIVES("\x77\x08", STACK_VA + 8)},
	{"bregx", GIVES("\x92\x07\x08", STACK_VA + 8)},
	{"dup", GIVES("\x35\x12\x22", 10)},
	{"drop", GIVES("\x35\x36\x13", 5)},
	{"over", GIVES("\x35\x36\x14\x1c", 1)},
	{"pick", GIVES("\x35\x36\x37\x15\x02", 5)},
	{"swap", GIVES("\x35\x33\x16\x1c", (uint64_t)-2)},
	{"rot: the second becomes the top", GIVES("\x31\x32\x33\x17", 2)},
	{"rot: the third becomes the second", GIVES("\x31\x32\x33\x17\x13", 1)},
	{"rot: the top becomes the third", GIVES("\x31\x32\x33\x17\x13\x13", 3)},
	{"abs", GIVES("\x09\xf6\x19", 10)},
	{"abs of the most negative", GIVES("\x0e\0\0\0\0\0\0\0\x80\x19", UINT64_C(1) << 63)},
	{"and", GIVES("\x3c\x3a\x1a", 8)},
	{"div is signed", GIVES("\x09\xf6\x33\x1b", (uint64_t)-3)},
	{"div of the most negative by -1", GIVES("\x0e\0\0\0\0\0\0\0\x80\x09\xff\x1b", UINT64_C(1) << 63)},
	{"minus", GIVES("\x35\x33\x1c", 2)},
	{"mod", GIVES("\x3b\x34\x1d", 3)},
	{"mod is unsigned", GIVES("\x09\xff\x3a\x1d", UINT64_MAX % 10)},
	{"mul", GIVES("\x35\x33\x1e", 15)},
	{"neg", GIVES("\x35\x1f", (uint64_t)-5)},
	{"not", GIVES("\x30\x20", UINT64_MAX)},
	{"or", GIVES("\x3c\x33\x21", 15)},
	{"plus", GIVES("\x35\x33\x22", 8)},
	{"plus_uconst", GIVES("\x35\x23\x80\x01", 133)},
	{"shl", GIVES("\x31\x34\x24", 16)},
	{"shl by 64", GIVES("\x31\x08\x40\x24", 0)},
	{"shr", GIVES("\x09\xff\x08\x3f\x25", 1)},
	{"shr by 64", GIVES("\x09\xff\x08\x40\x25", 0)},
	{"shra", GIVES("\x09\xf0\x32\x26", (uint64_t)-4)},
	{"shra by 0", GIVES("\x09\xf0\x30\x26", (uint64_t)-16)},
	{"shra by 200 of a negative", GIVES("\x09\xf0\x08\xc8\x26", UINT64_MAX)},
	{"shra by 200 of a positive", GIVES("\x35\x08\xc8\x26", 0)},
	{"xor", GIVES("\x3c\x3a\x27", 6)},
	{"eq", GIVES("\x35\x35\x29", 1)},
	{"ge", GIVES("\x35\x35\x2a", 1)},
	{"gt is signed", GIVES("\x35\x09\xff\x2b", 1)},
	{"le", GIVES("\x35\x36\x2c", 1)},
	{"lt", GIVES("\x36\x35\x2d", 0)},
	{"ne", GIVES("\x36\x35\x2e", 1)},
	{"skip", GIVES("\x35\x2f\x01\x00\x36", 5)},
	{"bra taken", GIVES("\x35\x31\x28\x01\x00\x36", 5)},
	{"bra not taken", GIVES("\x35\x30\x28\x01\x00\x36", 6)},
	{"a loop: 5 + 4 + 3 + 2 + 1", GIVES("\x30\x35\x12\x17\x22\x16\x31\x1c\x12\x28\xf6\xff\x13", 15)},
	{"nop", GIVES("\x35\x96", 5)},
	{"deref", GIVES("\x77\x00\x06", 0x0706050403020100)},
	{"deref, unaligned", GIVES("\x77\x01\x06", 0x0807060504030201)},
	{"deref_size 1", GIVES("\x77\x07\x94\x01", 7)},
	{"deref_size 2", GIVES("\x77\x02\x94\x02", 0x0302)},
	{"deref_size 4", GIVES("\x77\x04\x94\x04", 0x07060504)},
	{"a PLT stub: SP + 8 + 8 after its push", GIVES("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", STACK_VA + 16)},
	{"a realigned stack: the word below a register", GIVES("\x77\x08\x06", 0x0f0e0d0c0b0a0908)},

	{"refused: register not known", REFUSES("\x71\x00", "expression needs a register that is not known")},
	{"refused: register that is none", REFUSES("\x92\xff\x01\x00", "expression needs a register that is not known")},
	{"refused: reg0", REFUSES("\x50", "expression names a register instead of a value")},
	{"refused: reg31", REFUSES("\x6f", "expression names a register instead of a value")},
	{"refused: entry_value", REFUSES("\xa3\x01\x50", "expression needs a value at function entry")},
	{"refused: GNU_entry_value", REFUSES("\xf3\x01\x50", "expression needs a value at function entry")},
	{"refused: fbreg", REFUSES("\x91\x00", "expression with an operation that call frames cannot have")},
	{"refused: piece", REFUSES("\x93\x08", "expression with an operation that call frames cannot have")},
	{"refused: call_frame_cfa", REFUSES("\x9c", "expression with an operation that call frames cannot have")},
	{"refused: xderef", REFUSES("\x18", "expression with an operation that call frames cannot have")},
	{"refused: no operation", REFUSES("\xff", "expression with an operation that call frames cannot have")},
	{"refused: division by zero", REFUSES("\x31\x30\x1b", "expression divides by zero")},
	{"refused: remainder by zero", REFUSES("\x31\x30\x1d", "expression divides by zero")},
	{"refused: too few values", REFUSES("\x13\x12", "expression takes more values than it has")},
	{"refused: plus of one", REFUSES("\x22", "expression takes more values than it has")},
	{"refused: pick below", REFUSES("\x15\x01", "expression picks below its stack")},
	{"refused: no value left", REFUSES("\x13", "expression without a value")},
	{"refused: jump before the beginning", REFUSES("\x2f\xfc\xff", "expression jumps out of itself")},
	{"refused: jump past the end", REFUSES("\x2f\x01\x00", "expression jumps out of itself")},
	{"refused: endless loop", REFUSES("\x2f\xfd\xff", "expression does not end")},
	{"refused: deref_size 9", REFUSES("\x77\x00\x94\x09", "expression reads an unknown size")},
	{"refused: deref_size 0", REFUSES("\x77\x00\x94\x00", "expression reads an unknown size")},
	{"outside of the copied stack", FAILS("\x77\xc0\x00\x06", STOP_NOT_CAPTURED)},
	{"across its end", FAILS("\x77\x39\x06", STOP_NOT_CAPTURED)},
	{"where nothing is mapped", FAILS("\x30\x06", STOP_UNREADABLE)},
};
/* clang-format on */

static struct memory memory;
static struct frame_registers registers;

static int set_up(void **state)
{
	struct thread thread = {.pieces = &piece, .piece_count = 1};

	(void)state;
	for (size_t i = 0; i < sizeof stack_bytes; i++)
		stack_bytes[i] = (uint8_t)i;
	memory = memory_of_thread(&snapshot, &no_modules, &thread);
	registers.at[0] = 100;
	registers.at[7] = STACK_VA;
	registers.at[16] = 0x55550000100b;
	registers.known = 1U << 0 | 1U << 7 | 1U << 16;
	return 0;
}

static bool value_of(const char *code, size_t size, uint64_t *value, struct ending *ending)
{
	struct expression_input input = {
		.registers = &registers,
		.memory = &memory,
		.load_bias = BIAS,
		.has_initial = true,
		.initial = STACK_VA + 16,
	};

	return expression_value((struct bytes){(const uint8_t *)code, size}, &input, value,
				ending);
}

static void test_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct expression_case *c = &cases[i];
		struct ending ending = {.stop = STOP_UNKNOWN};
		uint64_t value = 0;

		print_message("%s\n", c->name);
		if (c->stop == STOP_UNKNOWN) {
			assert_true(value_of(c->code, c->size, &value, &ending));
			assert_int_equal(value, c->want);
			continue;
		}
		assert_false(value_of(c->code, c->size, &value, &ending));
		assert_int_equal(ending.stop, c->stop);
		if (c->error)
			assert_string_equal(ending.what, c->error);
	}
}

/* Cut anywhere, an expression has the value so far or is refused; it never reads on. */
static void test_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t size = 0; size < cases[i].size; size++) {
			struct ending ending = {.stop = STOP_UNKNOWN};
			uint8_t *exact = test_malloc(size + 1);
			uint64_t value;

			memcpy(exact, cases[i].code, size);
			if (!value_of((const char *)exact, size, &value, &ending))
				assert_int_not_equal(ending.stop, STOP_UNKNOWN);
			test_free(exact);
		}
	}
	for (size_t size = 1; size < 9; size++) {
		struct ending ending;
		uint64_t value;

		assert_false(value_of("\x0e\1\2\3\4\5\6\7\x08", size, &value, &ending));
		assert_string_equal(ending.what, "expression is cut short");
	}
}

static void test_stack_limit(void **state)
{
	char code[EXPRESSION_STACK_MAX];
	struct ending ending;
	uint64_t value;

	(void)state;
	memset(code, 0x35, sizeof code);
	/* One place is taken by the CFA. */
	assert_true(value_of(code, EXPRESSION_STACK_MAX - 1, &value, &ending));
	assert_false(value_of(code, EXPRESSION_STACK_MAX, &value, &ending));
	assert_string_equal(ending.what, "expression holds too many values");
}

static void test_empty_start(void **state)
{
	struct expression_input input = {.registers = &registers, .memory = &memory};
	struct ending ending;
	uint64_t value;

	(void)state;
	assert_false(expression_value((struct bytes){NULL, 0}, &input, &value, &ending));
	assert_string_equal(ending.what, "expression without a value");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_stack_limit),
		cmocka_unit_test(test_empty_start),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
