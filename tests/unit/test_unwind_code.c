/* Walks through functions without call frame information, by what their code does until it returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define STACK(s, va, ...)                                       \
	scene_stack((s), (va), (const uint64_t[]){__VA_ARGS__}, \
		    sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

enum { X19 = 19, X29 = 29, X30 = 30, A_SP = 31, A_PC = 32 };

#define STR_X30 BYTES("\xfe\x0f\x1f\xf8") /* str x30,[sp,#-16]! */
#define LDR_X30 BYTES("\xfe\x07\x41\xf8") /* ldr x30,[sp],#16 */
#define LDR_X19 BYTES("\xf3\x07\x40\xf9") /* ldr x19,[sp,#8] */
#define SUB_SP BYTES("\xff\x03\x01\xd1")  /* sub sp,sp,#64 */
#define ADD_SP BYTES("\xff\x03\x01\x91")  /* add sp,sp,#64 */
#define BL BYTES("\x40\x00\x00\x94")      /* bl +0x100 */
#define RET BYTES("\xc0\x03\x5f\xd6")
/* CFA = SP + 16 with LR at CFA - 16; CFA = x19 + 0 with LR at CFA - 8; no caller. */
#define PROGRAM_LR_16 BYTES("\x0e\x10\x9e\x02")
#define PROGRAM_X19 BYTES("\x0c\x13\x00\x9e\x01")
#define PROGRAM_OUTERMOST BYTES("\x07\x1e")

/* Functions: 0x100 without CFI, called by the one at 0x200, called by the outermost one at 0x300. */
static struct scene *begin(size_t pc_off)
{
	struct scene *s = test_malloc(sizeof *s);

	scene_begin(s, &arch_aarch64);
	scene_code(s, 0x208, BL);
	scene_code(s, 0x308, BL);
	scene_cfi(s, 0x300, 0x100, PROGRAM_OUTERMOST);
	scene_register(s, A_PC, CODE_AT(pc_off));
	scene_register(s, A_SP, SCENE_STACK);
	scene_register(s, X29, 0);
	return s;
}

static void expect(struct scene *s, const char *want)
{
	assert_string_equal(scene_text(s), want);
	scene_end(s);
	test_free(s);
}

/* As musl's functions do: no frame record, so that its chain would miss the caller. */
static void test_saved_lr(void **state)
{
	struct scene *s = begin(0x40);

	(void)state;
	scene_cfi(s, 0x40, 0x40, BYTES("\x0e\x00"));
	scene_code(s, 0x100, STR_X30);
	scene_code(s, 0x104, BL);
	scene_code(s, 0x108, LDR_X30);
	scene_code(s, 0x10c, RET);
	scene_cfi(s, 0x200, 0x100, PROGRAM_LR_16);
	scene_register(s, X30, CODE_AT(0x108));
	STACK(s, SCENE_STACK, CODE_AT(0x20c), 0, CODE_AT(0x30c), 0);
	expect(s, "+0x40=registers; +0x108<cfi; +0x20c<scan; +0x30c<cfi; outermost frame");
}

/* The caller's row needs a register that the function saved. */
static void test_callee_saved(void **state)
{
	struct scene *s = begin(0x104);

	(void)state;
	scene_code(s, 0x100, STR_X30);
	scene_code(s, 0x104, LDR_X19);
	scene_code(s, 0x108, LDR_X30);
	scene_code(s, 0x10c, RET);
	scene_cfi(s, 0x200, 0x100, PROGRAM_X19);
	STACK(s, SCENE_STACK, CODE_AT(0x20c), SCENE_STACK + 40, 0, 0, CODE_AT(0x30c), 0);
	expect(s, "+0x104=registers; +0x20c<scan; +0x30c<cfi; outermost frame");
}

/* A leaf that has moved SP: its caller's frame is found by SP. */
static void test_leaf_with_room(void **state)
{
	struct scene *s = begin(0x104);

	(void)state;
	scene_code(s, 0x100, SUB_SP);
	scene_code(s, 0x108, ADD_SP);
	scene_code(s, 0x10c, RET);
	scene_cfi(s, 0x200, 0x100, PROGRAM_LR_16);
	scene_register(s, X30, CODE_AT(0x20c));
	STACK(s, SCENE_STACK, 1, 2, 3, 4, 5, 6, 7, 8, CODE_AT(0x30c), 0);
	expect(s, "+0x104=registers; +0x20c<scan; +0x30c<cfi; outermost frame");
}

/* What lies where the return address should be is code, but nothing called from there. */
static void test_not_after_a_call(void **state)
{
	struct scene *s = begin(0x108);

	(void)state;
	scene_code(s, 0x108, LDR_X30);
	scene_code(s, 0x10c, RET);
	scene_register(s, X30, CODE_AT(0x20c));
	scene_cfi(s, 0x200, 0x100, PROGRAM_OUTERMOST);
	STACK(s, SCENE_STACK, CODE_AT(0x280), 0);
	expect(s, "+0x108=registers; +0x20c<lr; outermost frame");
}

/* A thread's first function: 0 is what it was given to return to. */
static void test_zero(void **state)
{
	struct scene *s = begin(0x108);

	(void)state;
	scene_code(s, 0x108, LDR_X30);
	scene_code(s, 0x10c, RET);
	STACK(s, SCENE_STACK, 0, 0);
	expect(s, "+0x108=registers; outermost frame");
}

/* The outermost function of a program never returns; what started it had cleared x29 and x30. */
static void test_beginning(void **state)
{
	struct scene *s = begin(0x40);

	(void)state;
	scene_cfi(s, 0x40, 0x40, BYTES("\x0e\x00"));
	scene_code(s, 0x100, STR_X30);
	scene_code(s, 0x104, BL);
	scene_register(s, X30, CODE_AT(0x108));
	STACK(s, SCENE_STACK, 0, 0);
	expect(s, "+0x40=registers; +0x108<cfi; outermost frame");
}

/* The same with a frame pointer: then 0 may lie there by chance. */
static void test_no_beginning(void **state)
{
	struct scene *s = begin(0x40);

	(void)state;
	scene_cfi(s, 0x40, 0x40, BYTES("\x0e\x00"));
	scene_code(s, 0x100, STR_X30);
	scene_code(s, 0x104, BL);
	scene_register(s, X30, CODE_AT(0x108));
	scene_register(s, X29, SCENE_STACK + 8);
	STACK(s, SCENE_STACK, 0, 0, 1);
	expect(s, "+0x40=registers; +0x108<cfi; no unwind information [prog+0x1108]");
}

/* The stack was not captured so far. */
static void test_not_captured(void **state)
{
	struct scene *s = begin(0x108);

	(void)state;
	scene_code(s, 0x108, LDR_X30);
	scene_code(s, 0x10c, RET);
	expect(s, "+0x108=registers; outside the captured stack [0x7ffe00100000]");
}

/* A tag in the top byte of the frame pointer, in a row's CFA register and in a frame record. */
static void test_tagged_frame_pointer(void **state)
{
	const uint64_t tag = UINT64_C(0x5a) << 56;
	struct scene *s = begin(0x100);

	(void)state;
	scene_cfi(s, 0x100, 0x10, BYTES("\x0c\x1d\x10\x9d\x02\x9e\x01")); /* CFA = x29 + 16 */
	scene_register(s, X29, tag | SCENE_STACK);
	STACK(s, SCENE_STACK, tag | (SCENE_STACK + 32), CODE_AT(0x20c), 0, 0, 0,
	      CODE_AT(0x30c));
	expect(s, "+0x100=registers; +0x20c<cfi; +0x30c<fp; outermost frame");
}

/* --- x86_64 --- */

enum { RBX = 3, RBP = 6, RSP = 7, RIP = 16 };

#define CALL BYTES("\xe8\x00\x00\x00\x00")
#define CALL_RBX BYTES("\xff\xd3")
#define PUSH_RBX_AND_ROOM BYTES("\x53\x48\x83\xec\x10") /* push %rbx; sub $16,%rsp */
#define LEAVE_RET BYTES("\xc9\xc3")
#define POP_RBX_RET BYTES("\x48\x83\xc4\x10\x5b\xc3") /* add $16,%rsp; pop %rbx; ret */
#define FOREVER BYTES("\xeb\xfe")
/* CFA = rsp + 16, the return address below it; CFA = rbx + 0; no caller. */
#define X_PROGRAM_16 BYTES("\x0c\x07\x10\x90\x01")
#define X_PROGRAM_RBX BYTES("\x0c\x03\x00\x90\x01")
#define X_PROGRAM_OUTERMOST BYTES("\x07\x10")

/* Functions: 0x100 without CFI, called by the one at 0x200, called by the outermost one at 0x300. */
static struct scene *begin_x86_64(size_t pc_off)
{
	struct scene *s = test_malloc(sizeof *s);

	scene_begin(s, &arch_x86_64);
	scene_code(s, 0x208, CALL);
	scene_code(s, 0x308, CALL);
	scene_cfi(s, 0x300, 0x100, X_PROGRAM_OUTERMOST);
	scene_register(s, RIP, CODE_AT(pc_off));
	scene_register(s, RSP, SCENE_STACK);
	scene_register(s, RBP, 0);
	return s;
}

/* Neither tables nor a frame pointer, called and interrupted. */
static void test_x86_64_returns(void **state)
{
	struct scene *s = begin_x86_64(0x40);

	(void)state;
	scene_cfi(s, 0x40, 0x40, BYTES("\x0c\x07\x08\x90\x01"));
	scene_code(s, 0x103, CALL);
	scene_code(s, 0x108, POP_RBX_RET);
	scene_cfi(s, 0x200, 0x100, X_PROGRAM_RBX);
	STACK(s, SCENE_STACK, CODE_AT(0x108), 1, 2, SCENE_STACK + 64, CODE_AT(0x20d), 0, 0,
	      CODE_AT(0x30d), 0);
	expect(s, "+0x40=registers; +0x108<cfi; +0x20d<scan; +0x30d<cfi; outermost frame");
}

/* A thread's first function: code to its return there is none. */
static void test_x86_64_never_returns(void **state)
{
	struct scene *s = begin_x86_64(0x40);

	(void)state;
	scene_cfi(s, 0x40, 0x40, BYTES("\x0c\x07\x08\x90\x01"));
	scene_code(s, 0x100, PUSH_RBX_AND_ROOM);
	scene_code(s, 0x105, CALL_RBX);
	scene_code(s, 0x107, FOREVER);
	scene_cfi(s, 0x200, 0x100, X_PROGRAM_RBX);
	STACK(s, SCENE_STACK, CODE_AT(0x107), 1, 2, SCENE_STACK + 64, CODE_AT(0x20d), 0, 0,
	      CODE_AT(0x30d), 0);
	expect(s, "+0x40=registers; +0x107<cfi; +0x20d<scan; +0x30d<cfi; outermost frame");
}

/* The same, but nothing was called from the address that lies there. */
static void test_x86_64_not_after_a_call(void **state)
{
	struct scene *s = begin_x86_64(0x40);

	(void)state;
	scene_cfi(s, 0x40, 0x40, BYTES("\x0c\x07\x08\x90\x01"));
	scene_code(s, 0x100, PUSH_RBX_AND_ROOM);
	scene_code(s, 0x105, CALL_RBX);
	scene_code(s, 0x107, FOREVER);
	STACK(s, SCENE_STACK, CODE_AT(0x107), 1, 2, 3, CODE_AT(0x240), 0);
	expect(s, "+0x40=registers; +0x107<cfi; no unwind information [prog+0x1107]");
}

/* Where the frame pointer and the code say the same, it was found by the frame pointer. */
static void test_x86_64_frame_pointer(void **state)
{
	struct scene *s = begin_x86_64(0x108);

	(void)state;
	scene_code(s, 0x108, LEAVE_RET);
	scene_cfi(s, 0x200, 0x100, X_PROGRAM_16);
	scene_register(s, RBP, SCENE_STACK + 16);
	STACK(s, SCENE_STACK, 1, 2, 0, CODE_AT(0x20d), 0, CODE_AT(0x30d), 0);
	expect(s, "+0x108=registers; +0x20d<fp; +0x30d<cfi; outermost frame");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_saved_lr),
		cmocka_unit_test(test_callee_saved),
		cmocka_unit_test(test_leaf_with_room),
		cmocka_unit_test(test_not_after_a_call),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_beginning),
		cmocka_unit_test(test_no_beginning),
		cmocka_unit_test(test_not_captured),
		cmocka_unit_test(test_tagged_frame_pointer),
		cmocka_unit_test(test_x86_64_returns),
		cmocka_unit_test(test_x86_64_never_returns),
		cmocka_unit_test(test_x86_64_not_after_a_call),
		cmocka_unit_test(test_x86_64_frame_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
