/* Walks over stacks as arrays, x86_64 and aarch64, on whichever host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scene.h"

#define LENGTH(a) (sizeof(a) / sizeof(a)[0])
#define STACK(s, va, ...)                                       \
	scene_stack((s), (va), (const uint64_t[]){__VA_ARGS__}, \
		    sizeof((const uint64_t[]){__VA_ARGS__}) / 8)

enum { RDX = 1, RBX = 3, RDI = 5, RBP = 6, RSP = 7, RIP = 16 }; /* psABI figure 3.36 */
enum { X19 = 19, X29 = 29, X30 = 30, A_SP = 31, A_PC = 32 };

/* CFA = rsp + 16; CFA = rbp + 16 with rbp saved; no caller. */
#define PROGRAM_RSP_16 BYTES("\x0e\x10")
#define PROGRAM_RBP BYTES("\x0c\x06\x10\x86\x02")
#define PROGRAM_OUTERMOST BYTES("\x07\x10")
/* aarch64: stp x29,x30,[sp,#-32]!; the same with x29 as CFA register; no caller. */
#define PROGRAM_FRAME_32 BYTES("\x0e\x20\x9d\x04\x9e\x03")
#define PROGRAM_X29_32 BYTES("\x0c\x1d\x20\x9d\x04\x9e\x03")
#define PROGRAM_A_OUTERMOST BYTES("\x07\x1e")

static struct scene *begin(const struct arch *arch)
{
	struct scene *s = test_malloc(sizeof *s);

	scene_begin(s, arch);
	return s;
}

/* x86_64 with pc and SP at the beginning of the stack. */
static struct scene *begin_x86_64(uint64_t pc)
{
	struct scene *s = begin(&arch_x86_64);

	scene_register(s, RIP, pc);
	scene_register(s, RSP, SCENE_STACK);
	return s;
}

static struct scene *begin_aarch64(uint64_t pc)
{
	struct scene *s = begin(&arch_aarch64);

	scene_register(s, A_PC, pc);
	scene_register(s, A_SP, SCENE_STACK);
	return s;
}

static void expect(struct scene *s, const char *want)
{
	assert_string_equal(scene_text(s), want);
	scene_end(s);
	test_free(s);
}

/* --- Call frame information --- */

static void test_cfi(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_cfi(s, 0x20, 0x20, PROGRAM_RBP);
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RBP, SCENE_STACK + 24);
	STACK(s, SCENE_STACK, 1, CODE_AT(0x30), 2, 0x99, CODE_AT(0x50));
	expect(s, "+0x10=registers; +0x30<cfi; +0x50<cfi; outermost frame");
}

/* A call at the end of a function that does not return: the row is that of the call, not of the
 * function behind it. */
static void test_noreturn_call(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES(""));
	scene_cfi(s, 0x20, 0x20, PROGRAM_RSP_16);
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	STACK(s, SCENE_STACK, CODE_AT(0x40), 1, CODE_AT(0x41));
	expect(s, "+0x10=registers; +0x40<cfi; +0x41<cfi; outermost frame");
}

/* An FDE without instructions is one: the frame pointer is not asked. */
static void test_empty_fde_wins(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES("\0\0\0"));
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RBP, SCENE_STACK + 16);
	STACK(s, SCENE_STACK, CODE_AT(0x50), 0, SCENE_STACK + 32, CODE_AT(0x80), 0, 0);
	expect(s, "+0x10=registers; +0x50<cfi; outermost frame");
}

/* vfork keeps its return address in rdi while the child uses the stack. */
static void test_return_address_in_register(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES("\x0e\x00\x09\x10\x05"));
	scene_cfi(s, 0x20, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RDI, CODE_AT(0x30));
	STACK(s, SCENE_STACK, 1, 2);
	expect(s, "+0x10=registers; +0x30<cfi; outermost frame");
}

/* A realigned stack: the CFA is in memory below rbp. */
static void test_cfa_by_expression(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES("\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00"));
	scene_cfi(s, 0x20, 0x20, PROGRAM_RBP);
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RBP, SCENE_STACK + 16);
	STACK(s, SCENE_STACK, 1, SCENE_STACK + 48, SCENE_STACK + 56, 4, 5, CODE_AT(0x30), 7,
	      SCENE_STACK, CODE_AT(0x50));
	expect(s, "+0x10=registers; +0x30<cfi; +0x50<cfi; outermost frame");
}

/* The stub of a PLT: the CFA depends on how far in it the pc is. */
static void test_plt_stub(void **state)
{
	static const struct {
		size_t off;
		uint64_t words[2];
	} at[] = {{0x20, {CODE_AT(0x50), 0}}, {0x2b, {7, CODE_AT(0x50)}}};

	(void)state;
	for (size_t i = 0; i < LENGTH(at); i++) {
		struct scene *s = begin_x86_64(CODE_AT(at[i].off));

		scene_cfi(s, 0x20, 0x20,
			  BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"));
		scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
		scene_stack(s, SCENE_STACK, at[i].words, 2);
		expect(s, i ? "+0x2b=registers; +0x50<cfi; outermost frame"
			    : "+0x20=registers; +0x50<cfi; outermost frame");
	}
}

static void test_damaged_cfi(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_cfi(s, 0x20, 0x20, BYTES("\x3f"));
	STACK(s, SCENE_STACK, 1, CODE_AT(0x30), 3, 4);
	expect(s, "+0x10=registers; +0x30<cfi; damaged unwind information [prog+0x1030]");
}

/* What cannot be read does not hide the frame pointer. */
static void test_damaged_cfi_with_frame_pointer(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES("\x3f"));
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RBP, SCENE_STACK + 8);
	STACK(s, SCENE_STACK, 1, 0, CODE_AT(0x50));
	expect(s, "+0x10=registers; +0x50<fp; outermost frame");
}

/* --- Signals --- */

/* The saved registers of x86_64's struct sigcontext from its first word. */
static void sigcontext(uint64_t *at, uint64_t rbp, uint64_t rsp, uint64_t rip)
{
	at[10] = rbp;
	at[15] = rsp;
	at[16] = rip;
}

#define SIGRETURN "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"

/* A handler that was called on the interrupted stack; the trampoline has no CFI, and what lies
 * before it belongs to another function. The interrupted pc is the first instruction of its
 * function. */
static void test_signal(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));
	uint64_t stack[40] = {0};

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES(""));
	scene_cfi(s, 0x60, 0x20, PROGRAM_OUTERMOST);
	scene_code(s, 0x80, BYTES(SIGRETURN));
	scene_cfi(s, 0x100, 0x40, PROGRAM_RSP_16);
	scene_cfi(s, 0x140, 0x40, BYTES(""));
	scene_cfi(s, 0x200, 0x40, PROGRAM_OUTERMOST);
	stack[0] = CODE_AT(0x80);
	sigcontext(stack + 6, 0, SCENE_STACK + 8 * 30, CODE_AT(0x140));
	stack[30] = CODE_AT(0x210);
	scene_stack(s, SCENE_STACK, stack, LENGTH(stack));
	expect(s, "+0x10=registers; +0x80=cfi; +0x140=signal; +0x210<cfi; outermost frame");
}

/* The thread is in the trampoline's system call itself. */
static void test_in_trampoline(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x87));
	uint64_t stack[40] = {0};

	(void)state;
	scene_code(s, 0x80, BYTES(SIGRETURN));
	scene_cfi(s, 0x140, 0x40, PROGRAM_OUTERMOST);
	sigcontext(stack + 5, 0, SCENE_STACK + 8 * 30, CODE_AT(0x140));
	scene_stack(s, SCENE_STACK, stack, LENGTH(stack));
	expect(s, "+0x87=registers; +0x140=signal; outermost frame");
}

/* A handler on a stack of its own, interrupted by another one on the main stack, all with CFI.
 * The walk goes up, down and up again. */
static void test_nested_signals_on_two_stacks(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));
	uint64_t main_stack[80] = {0}, alt_stack[40] = {0};

	(void)state;
	/* rsp and rip at CFA + 160 - 8 and CFA + 168 - 8 as DW_CFA_expression breg7. */
	scene_signal_cfi(s, 0x7f, 0x20,
			 BYTES("\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01"
			       "\x10\x06\x03\x77\xf8\x00"));
	scene_code(s, 0x80, BYTES(SIGRETURN));
	scene_cfi(s, 0x00, 0x40, BYTES(""));
	scene_cfi(s, 0x100, 0x40, BYTES(""));
	scene_cfi(s, 0x200, 0x40, PROGRAM_RBP);
	scene_cfi(s, 0x300, 0x40, PROGRAM_OUTERMOST);
	main_stack[0] = CODE_AT(0x80);
	sigcontext(main_stack + 6, 0, SCENE_ALT_STACK, CODE_AT(0x120));
	alt_stack[0] = CODE_AT(0x80);
	sigcontext(alt_stack + 6, SCENE_STACK + 8 * 60, SCENE_STACK + 8 * 50, CODE_AT(0x220));
	main_stack[61] = CODE_AT(0x310);
	scene_stack(s, SCENE_STACK, main_stack, LENGTH(main_stack));
	scene_stack(s, SCENE_ALT_STACK, alt_stack, LENGTH(alt_stack));
	expect(s, "+0x10=registers; +0x80=cfi; +0x120=cfi; +0x80=cfi; +0x220=cfi; +0x310<cfi; "
		  "outermost frame");
}

/* --- Calls to what is no code --- */

static void test_wild_calls(void **state)
{
	static const struct {
		uint64_t pc;
		const char *want;
	} wild[] = {
		{0, "0x0=registers; +0x50<scan; outermost frame"},
		{0x123, "0x123=registers; +0x50<scan; outermost frame"},
		{SCENE_DATA, "0x7f0000300000=registers; +0x50<scan; outermost frame"},
		{UINT64_MAX, "0xffffffffffffffff=registers; +0x50<scan; outermost frame"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(wild); i++) {
		struct scene *s = begin_x86_64(wild[i].pc);

		scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
		STACK(s, SCENE_STACK, CODE_AT(0x50), 2);
		expect(s, wild[i].want);
	}
}

/* A call to NULL whose signal is being handled. */
static void test_wild_call_below_signal(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));
	uint64_t stack[40] = {0};

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES(""));
	scene_code(s, 0x80, BYTES(SIGRETURN));
	scene_cfi(s, 0x200, 0x40, PROGRAM_OUTERMOST);
	stack[0] = CODE_AT(0x80);
	sigcontext(stack + 6, 0, SCENE_STACK + 8 * 30, 0);
	stack[30] = CODE_AT(0x210);
	scene_stack(s, SCENE_STACK, stack, LENGTH(stack));
	expect(s, "+0x10=registers; +0x80=cfi; 0x0=signal; +0x210<scan; outermost frame");
}

static void test_wild_pc_without_caller(void **state)
{
	struct scene *s = begin_x86_64(0x123);

	(void)state;
	STACK(s, SCENE_STACK, 1, 2);
	expect(s, "0x123=registers; no module at this address [0x123]");
}

/* --- Without call frame information --- */

static void test_frame_pointers(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_register(s, RBP, SCENE_STACK + 8);
	STACK(s, SCENE_STACK, 1, SCENE_STACK + 32, CODE_AT(0x30), 4, 0, CODE_AT(0x50), 5);
	expect(s, "+0x10=registers; +0x30<fp; +0x50<fp; outermost frame");
}

/* From code without CFI into code with it, and back. */
static void test_frame_pointers_between_cfi(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_cfi(s, 0x80, 0x20, BYTES("\x0e\x10\x86\x02"));
	scene_cfi(s, 0xc0, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RBP, SCENE_STACK + 24);
	STACK(s, SCENE_STACK, 1, CODE_AT(0x50), 2, 0x99, CODE_AT(0x90), SCENE_STACK + 64,
	      CODE_AT(0x60), 3, 0x98, CODE_AT(0xd0));
	expect(s, "+0x10=registers; +0x50<cfi; +0x90<fp; +0x60<cfi; +0xd0<fp; outermost frame");
}

/* Jitted code: no module at all. */
static void test_jit(void **state)
{
	struct scene *s = begin_x86_64(SCENE_JIT + 0x10);

	(void)state;
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	scene_register(s, RBP, SCENE_STACK + 8);
	STACK(s, SCENE_STACK, 1, SCENE_STACK + 32, SCENE_JIT + 0x20, 4, 0, CODE_AT(0x50));
	expect(s, "0x7f0000200010=registers; 0x7f0000200020<fp; +0x50<fp; outermost frame");
}

static void test_no_way(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_register(s, RBP, 12345);
	STACK(s, SCENE_STACK, 1, CODE_AT(0x30), 4);
	expect(s, "+0x10=registers; no unwind information [prog+0x1010]");
}

/* A frame pointer of 0 is the end of a chain only where there was one. */
static void test_zero_is_not_always_the_end(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	STACK(s, SCENE_STACK, 1, CODE_AT(0x50), 4, 5);
	expect(s, "+0x10=registers; +0x50<cfi; no unwind information [prog+0x1050]");
}

/* Where the frame is not there yet, or not any more. */
static void test_landmarks(void **state)
{
	static const struct {
		const char *name;
		struct bytes code;
		size_t at;
		unsigned word; /* of the return address */
	} landmarks[] = {
		{"push %rbp", {(const uint8_t *)"\x55\x48\x89\xe5", 4}, 0, 0},
		{"endbr64", {(const uint8_t *)"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 8}, 0, 0},
		{"push %rbp after endbr64",
		 {(const uint8_t *)"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5", 8},
		 4,
		 0},
		{"mov %rsp,%rbp", {(const uint8_t *)"\x55\x48\x89\xe5", 4}, 1, 1},
		{"ret", {(const uint8_t *)"\x5d\xc3", 2}, 1, 0},
		{"PLT: jmp *", {(const uint8_t *)"\xff\x25\1\2\3\4\x68\1\0\0\0\xe9", 12}, 0, 0},
		{"PLT: push", {(const uint8_t *)"\xff\x25\1\2\3\4\x68\1\0\0\0\xe9", 12}, 6, 0},
		{"PLT: jmp", {(const uint8_t *)"\xff\x25\1\2\3\4\x68\1\0\0\0\xe9", 12}, 11, 1},
		{"PLT 0: push",
		 {(const uint8_t *)"\xff\x35\1\2\3\4\xff\x25\1\2\3\4", 12},
		 0,
		 1},
		{"PLT 0: jmp *",
		 {(const uint8_t *)"\xff\x35\1\2\3\4\xff\x25\1\2\3\4", 12},
		 6,
		 2},
		{"Go's check of its stack",
		 {(const uint8_t *)"\x49\x3b\x66\x10\x76\x20", 6},
		 0,
		 0},
		{"Go's branch after it",
		 {(const uint8_t *)"\x49\x3b\x66\x10\x76\x20", 6},
		 4,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(landmarks); i++) {
		struct scene *s = begin_x86_64(CODE_AT(0x100 + landmarks[i].at));
		uint64_t stack[8] = {0};
		char want[100];

		print_message("%s\n", landmarks[i].name);
		scene_code(s, 0x100, landmarks[i].code);
		scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
		scene_register(s, RBP, SCENE_STACK + 32);
		stack[landmarks[i].word] = CODE_AT(0x50);
		stack[5] = CODE_AT(0x5f); /* what the frame pointer would find */
		scene_stack(s, SCENE_STACK, stack, LENGTH(stack));
		snprintf(want, sizeof want, "+0x%zx=registers; +0x50<scan; outermost frame",
			 0x100 + landmarks[i].at);
		expect(s, want);
	}
}

/* A leaf in assembler that was called directly: the frame pointer is its caller's. */
static void test_leaf_called_directly(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x110));

	(void)state;
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	scene_code(s, 0x4b, BYTES("\xe8\xb0\x00\x00\x00")); /* call +0x100 */
	scene_register(s, RBP, SCENE_STACK + 16);
	STACK(s, SCENE_STACK, CODE_AT(0x50), 0, 0, CODE_AT(0x5f));
	expect(s, "+0x110=registers; +0x50<scan; outermost frame");
}

/* --- Where stacks begin --- */

static void test_start_without_cfi(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	STACK(s, SCENE_STACK, 1, CODE_AT(0xf20), 1, 2, 3);
	expect(s, "+0x10=registers; +0xf20<cfi; outermost frame");
}

#define MUSL_EXIT "\x89\xc7\x31\xc0\xb0\x3c\x0f\x05"
#define GLIBC_EXIT "\x48\x89\xc7\xb8\x3c\x00\x00\x00\x0f\x05"

/* A thread's start returns to exit. With CFI that was made by a script, the next word of the
 * stack would be taken for a return address: with musl that is the thread's function. */
static void test_thread_start(void **state)
{
	static const struct {
		struct bytes code;
		bool has_cfi;
	} starts[] = {
		{{(const uint8_t *)MUSL_EXIT, 8}, false},
		{{(const uint8_t *)MUSL_EXIT, 8}, true},
		{{(const uint8_t *)GLIBC_EXIT, 10}, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(starts); i++) {
		struct scene *s = begin_x86_64(CODE_AT(0x10));

		scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
		if (starts[i].has_cfi)
			scene_cfi(s, 0x40, 0x40, BYTES(""));
		scene_code(s, 0x50, starts[i].code);
		STACK(s, SCENE_STACK, 1, CODE_AT(0x50), CODE_AT(0x60), CODE_AT(0x70));
		expect(s, "+0x10=registers; +0x50<cfi; outermost frame");
	}
}

/* A function in the middle that ends the process is no start. */
static void test_exit_in_the_middle(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_cfi(s, 0x40, 0x40, PROGRAM_RSP_16);
	scene_cfi(s, 0x80, 0x40, PROGRAM_OUTERMOST);
	scene_code(s, 0x50, BYTES(MUSL_EXIT));
	STACK(s, SCENE_STACK, 1, CODE_AT(0x50), 2, CODE_AT(0x90));
	expect(s, "+0x10=registers; +0x50<cfi; +0x90<cfi; outermost frame");
}

static void test_return_to_zero(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	STACK(s, SCENE_STACK, 1, 0);
	expect(s, "+0x10=registers; outermost frame");
}

/* The function that ends a coroutine is not called: its address is put on the new stack. What
 * lies above is not a return address. */
static void test_entered_by_return(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_cfi(s, 0x80, 0x20, BYTES(""));
	STACK(s, SCENE_STACK, 1, CODE_AT(0x80), SCENE_DATA, 2);
	expect(s, "+0x10=registers; +0x80=cfi; outermost frame");
}

/* A call at the end of code without CFI, right before a function that has some. */
static void test_noreturn_call_without_cfi(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_code(s, 0x7b, BYTES("\xe8\x80\xff\xff\xff")); /* call +0x0 */
	scene_cfi(s, 0x80, 0x20, BYTES(""));
	STACK(s, SCENE_STACK, 1, CODE_AT(0x80), 2, 3);
	expect(s, "+0x10=registers; +0x80<cfi; no unwind information [prog+0x1080]");
}

/* --- Guards --- */

/* A frame pointer that points to its own record. */
static void test_frame_pointer_loop(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_register(s, RBP, SCENE_STACK);
	STACK(s, SCENE_STACK, SCENE_STACK, CODE_AT(0x30), 1);
	expect(s, "+0x10=registers; +0x30<fp; no unwind information [prog+0x1030]");
}

/* Records on two stacks that point to each other. */
static void test_loop_over_two_stacks(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));
	const struct stack *stack;

	(void)state;
	scene_register(s, RBP, SCENE_STACK);
	STACK(s, SCENE_STACK, SCENE_ALT_STACK, CODE_AT(0x30), 1);
	STACK(s, SCENE_ALT_STACK, SCENE_STACK, CODE_AT(0x50), 1);
	stack = scene_walk(s);
	assert_int_equal(stack->stop, STOP_NO_PROGRESS);
	assert_in_range(stack->count, 2, 8);
	scene_end(s);
	test_free(s);
}

/* Records that go back and forth between two stacks without ever meeting a pc and place twice. */
static void test_endless_side_steps(void **state)
{
	enum { RECORDS = 1000 };
	static uint64_t stack[2 * RECORDS], alt[2 * RECORDS];
	struct scene *s = begin_x86_64(CODE_AT(0x10));
	const struct stack *walked;

	(void)state;
	for (size_t i = 0; i < RECORDS; i++) {
		stack[2 * i] = SCENE_ALT_STACK + 16 * i;
		alt[2 * i] = SCENE_STACK + 16 * (i + 1);
		stack[2 * i + 1] = alt[2 * i + 1] = CODE_AT(0x30);
	}
	scene_register(s, RBP, SCENE_STACK);
	scene_stack(s, SCENE_STACK, stack, 2 * RECORDS);
	scene_stack(s, SCENE_ALT_STACK, alt, 2 * RECORDS);
	walked = scene_walk(s);
	assert_int_equal(walked->stop, STOP_NO_PROGRESS);
	assert_in_range(walked->count, 256, 2 * 256 + 4);
	scene_end(s);
	test_free(s);
}

/* The return address is in a register, so that each step may claim any CFA: beyond the captured
 * stack, or a byte further on it. */
static void test_growth_without_stack(void **state)
{
	static const struct bytes programs[] = {
		BYTES("\x0e\x80\x80\x08\x09\x10\x05"),
		BYTES("\x0e\x01\x09\x10\x05"),
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(programs); i++) {
		struct scene *s = begin_x86_64(CODE_AT(0x10));
		const struct stack *walked;

		scene_cfi(s, 0x00, 0x20, programs[i]);
		scene_register(s, RDI, CODE_AT(0x10));
		scene_stack(s, SCENE_STACK, (const uint64_t[4096]){0}, 4096);
		walked = scene_walk(s);
		assert_int_equal(walked->stop, STOP_NO_PROGRESS);
		assert_in_range(walked->count, 2, 256 + 4);
		scene_end(s);
		test_free(s);
	}
}

/* A CFA that stays where it is, with the same return address. */
static void test_no_progress(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x30));

	(void)state;
	scene_cfi(s, 0x20, 0x20, BYTES("\x0c\x07\x00\x90\x7f\x11\x10\x00"));
	STACK(s, SCENE_STACK, CODE_AT(0x30), 1);
	expect(s, "+0x30=registers; no progress [0x555555001030]");
}

static void test_not_code(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	STACK(s, SCENE_STACK, 1, SCENE_DATA, 3, 4);
	expect(s, "+0x10=registers; return address is not code [0x7f0000300000]");
}

static void test_not_captured(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	s->thread.stack_missing = 4096;
	STACK(s, SCENE_STACK, 1, CODE_AT(0x10), 3);
	expect(s,
	       "+0x10=registers; +0x10<cfi; outside the captured stack "
	       "[0x7ffe00100018; 4096 bytes were left out: --stack-limit or --stack-total is too low]");
}

static void test_unreadable(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
	scene_register(s, RSP, 0x1000);
	expect(s, "+0x10=registers; unreadable memory [0x1008]");
}

static void test_no_registers(void **state)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));

	(void)state;
	s->thread.has_registers = false;
	expect(s, "no registers");
}

/* A stack cut anywhere: no frame more than with all of it, and a reason. */
static void test_stacks_cut_short(void **state)
{
	static const uint64_t words[] = {1, CODE_AT(0x30), 2, 0x99, CODE_AT(0x50)};

	(void)state;
	for (size_t count = 0; count < LENGTH(words); count++) {
		struct scene *s = begin_x86_64(CODE_AT(0x10));
		const struct stack *stack;

		scene_cfi(s, 0x00, 0x20, PROGRAM_RSP_16);
		scene_cfi(s, 0x20, 0x20, PROGRAM_RBP);
		scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
		scene_register(s, RBP, SCENE_STACK + 24);
		scene_stack(s, SCENE_STACK, words, count);
		stack = scene_walk(s);
		assert_int_equal(stack->count, count < 2 ? 1 : 2);
		assert_int_equal(stack->stop, STOP_NOT_CAPTURED);
		scene_end(s);
		test_free(s);
	}
}

/* --- Deep stacks --- */

static struct scene *begin_recursion(size_t depth)
{
	struct scene *s = begin_x86_64(CODE_AT(0x10));
	uint64_t *stack = test_calloc(2 * depth + 2, sizeof *stack);

	s->maps[4].end = SCENE_STACK + 16 * depth + 0x10000;
	scene_cfi(s, 0x00, 0x40, PROGRAM_RSP_16);
	scene_cfi(s, 0x40, 0x20, PROGRAM_OUTERMOST);
	for (size_t i = 0; i < depth; i++)
		stack[2 * i + 1] = CODE_AT(0x20);
	stack[2 * depth + 1] = CODE_AT(0x50);
	scene_stack(s, SCENE_STACK, stack, 2 * depth + 2);
	test_free(stack);
	return s;
}

static void test_elision(void **state)
{
	static const struct {
		size_t depth, kept;
		const char *want;
	} elisions[] = {
		{2, 4, "+0x10=registers; +0x20<cfi; +0x20<cfi; +0x50<cfi; outermost frame"},
		{3, 4,
		 "+0x10=registers; +0x20<cfi; ... 1 elided; +0x20<cfi; +0x50<cfi; outermost frame"},
		{3, 5,
		 "+0x10=registers; +0x20<cfi; +0x20<cfi; +0x20<cfi; +0x50<cfi; outermost frame"},
		{100000, 4,
		 "+0x10=registers; +0x20<cfi; ... 99998 elided; +0x20<cfi; +0x50<cfi; outermost frame"},
		{100000, 1, "+0x10=registers; ... 100000 elided; +0x50<cfi; outermost frame"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(elisions); i++) {
		struct scene *s = begin_recursion(elisions[i].depth);

		s->options.frames_kept = elisions[i].kept;
		expect(s, elisions[i].want);
	}
}

static void test_default_elision(void **state)
{
	struct scene *s = begin_recursion(100000);
	const struct stack *stack = scene_walk(s);

	(void)state;
	assert_int_equal(stack->count, UNWIND_FRAMES_KEPT);
	assert_int_equal(stack->elided, 100002 - UNWIND_FRAMES_KEPT);
	assert_int_equal(stack->elided_at, UNWIND_FRAMES_KEPT / 2);
	assert_int_equal(stack->frames[0].pc.va, CODE_AT(0x10));
	assert_int_equal(stack->frames[UNWIND_FRAMES_KEPT - 1].pc.va, CODE_AT(0x50));
	assert_int_equal(stack->stop, STOP_OUTERMOST);
	scene_end(s);
	test_free(s);
}

static void test_frame_limit(void **state)
{
	struct scene *s = begin_recursion(100);

	(void)state;
	s->options.frame_limit = 3;
	expect(s, "+0x10=registers; +0x20<cfi; +0x20<cfi; frame limit [3 frames]");
}

/* --- aarch64 --- */

static void test_a_cfi(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES("")); /* a leaf */
	scene_cfi(s, 0x20, 0x20, PROGRAM_FRAME_32);
	scene_cfi(s, 0x40, 0x20, PROGRAM_X29_32);
	scene_cfi(s, 0x60, 0x20, PROGRAM_A_OUTERMOST);
	scene_register(s, X30, CODE_AT(0x30));
	STACK(s, SCENE_STACK, SCENE_STACK + 40, CODE_AT(0x50), 1, 2, 3, 4, CODE_AT(0x70), 5, 6);
	expect(s, "+0x10=registers; +0x30<cfi; +0x50<cfi; +0x70<cfi; outermost frame");
}

/* Signed return addresses, in LR and on the stack, with the kernel's mask and without. */
static void test_a_signed(void **state)
{
	static const uint64_t masks[] = {0, UINT64_C(0x007f000000000000)};
	const uint64_t code = UINT64_C(0x002a000000000000);

	(void)state;
	for (size_t i = 0; i < LENGTH(masks); i++) {
		struct scene *s = begin_aarch64(CODE_AT(0x10));

		s->snapshot.pac_code_mask = masks[i];
		scene_cfi(s, 0x00, 0x20, BYTES("\x2d"));
		scene_cfi(s, 0x20, 0x20, PROGRAM_FRAME_32);
		scene_cfi(s, 0x60, 0x20, PROGRAM_A_OUTERMOST);
		scene_register(s, X30, CODE_AT(0x30) | code);
		STACK(s, SCENE_STACK, 0, CODE_AT(0x70) | code, 1, 2);
		expect(s, "+0x10=registers; +0x30<cfi; +0x70<cfi; outermost frame");
	}
}

/* A call that does not return, in a function that did not save LR: its caller is lost, and not
 * its own pc again. */
static void test_a_lost_lr(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, PROGRAM_FRAME_32);
	scene_cfi(s, 0x20, 0x20, BYTES(""));
	STACK(s, SCENE_STACK, 0, CODE_AT(0x30), 1, 2, 3, 4);
	expect(s, "+0x10=registers; +0x30<cfi; damaged unwind information [prog+0x1030: "
		  "a rule needs a register that is not known]");
}

static void test_a_frame_pointers(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x110));

	(void)state;
	scene_code(s, 0x100, BYTES("\xfd\x7b\xbe\xa9")); /* stp x29,x30,[sp,#-32]! */
	scene_register(s, X29, SCENE_STACK);
	scene_register(s, X30, CODE_AT(0x11c));
	STACK(s, SCENE_STACK, SCENE_STACK + 48, CODE_AT(0x204), 1, 2, 3, 4, 0, CODE_AT(0x304));
	expect(s, "+0x110=registers; +0x204<fp; +0x304<fp; outermost frame");
}

/* Into CFI whose CFA is by SP, which records do not give: the saved pair gives it. The
 * callee-saved register is found again. */
static void test_a_cfi_above_frame_pointers(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x110));

	(void)state;
	scene_code(s, 0x100, BYTES("\xfd\x7b\xbe\xa9"));
	scene_cfi(s, 0x20, 0x20, BYTES("\x0e\x30\x9d\x06\x9e\x05\x93\x04"));
	scene_cfi(s, 0x40, 0x20, BYTES("\x0c\x13\x10\x9e\x01")); /* CFA = x19 + 16 */
	scene_cfi(s, 0x60, 0x20, PROGRAM_A_OUTERMOST);
	scene_register(s, X29, SCENE_STACK);
	STACK(s, SCENE_STACK, SCENE_STACK + 48, CODE_AT(0x30), 1, 2, 3, 4, 0, CODE_AT(0x50),
	      SCENE_STACK + 96, 5, 6, 7, 8, CODE_AT(0x70));
	expect(s, "+0x110=registers; +0x30<fp; +0x50<cfi; +0x70<cfi; outermost frame");
}

/* Code without CFI, interrupted where LR is the return address. */
static void test_a_leaf(void **state)
{
	static const struct {
		const char *name;
		struct bytes code;
		size_t at;
		const char *want;
	} leafs[] = {
		{"ret", {(const uint8_t *)"\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6", 8}, 4, "lr"},
		{"before the first stp", {(const uint8_t *)"\xfd\x7b\xbe\xa9", 4}, 0, "lr"},
		{"mov x29,sp",
		 {(const uint8_t *)"\xfd\x7b\xbe\xa9\xfd\x03\x00\x91", 8},
		 4,
		 "lr"},
		{"paciasp", {(const uint8_t *)"\x3f\x23\x03\xd5\xfd\x7b\xbe\xa9", 8}, 0, "lr"},
		{"behind another function's ret",
		 {(const uint8_t *)"\xc0\x03\x5f\xd6\x1f\x20\x03\xd5", 8},
		 4,
		 "lr"},
		{"behind a PLT entry",
		 {(const uint8_t *)"\x20\x02\x1f\xd6\x10\0\0\x90", 8},
		 4,
		 "lr"},
		{"with a frame",
		 {(const uint8_t *)"\xfd\x7b\xbe\xa9\xfd\x03\x00\x91\x1f\x20\x03\xd5", 12},
		 8,
		 "fp"},
		{"with Go's frame",
		 {(const uint8_t *)"\xfe\x0f\x1e\xf8\x1f\x20\x03\xd5\x1f\x20\x03\xd5", 12},
		 8,
		 "fp"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(leafs); i++) {
		struct scene *s = begin_aarch64(CODE_AT(0x100 + leafs[i].at));
		char want[100];

		print_message("%s\n", leafs[i].name);
		scene_code(s, 0x100, leafs[i].code);
		scene_cfi(s, 0x40, 0x40, PROGRAM_A_OUTERMOST);
		scene_register(s, X29, SCENE_STACK);
		scene_register(s, X30, CODE_AT(strcmp(leafs[i].want, "lr") ? 0x10c : 0x50));
		STACK(s, SCENE_STACK, 0, CODE_AT(strcmp(leafs[i].want, "lr") ? 0x50 : 0x60));
		snprintf(want, sizeof want, "+0x%zx=registers; +0x50<%s; outermost frame",
			 0x100 + leafs[i].at, leafs[i].want);
		expect(s, want);
	}
}

static void test_a_wild_calls(void **state)
{
	static const struct {
		uint64_t pc;
		const char *want;
	} wild[] = {
		{0, "0x0=registers; +0x50<lr; outermost frame"},
		{CODE_AT(0x102), "+0x102=registers; +0x50<lr; outermost frame"},
		{SCENE_DATA, "0x7f0000300000=registers; +0x50<lr; outermost frame"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(wild); i++) {
		struct scene *s = begin_aarch64(wild[i].pc);

		scene_cfi(s, 0x40, 0x20, PROGRAM_A_OUTERMOST);
		scene_register(s, X30, CODE_AT(0x50));
		STACK(s, SCENE_STACK, 1, 2);
		expect(s, wild[i].want);
	}
}

/* The trampoline of the kernel's vDSO, whose own CFI (of older kernels) would lose the
 * interrupted leaf. LR is known again after it. */
static void test_a_signal(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x10));
	uint64_t stack[100] = {0};

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES(""));
	scene_code(s, 0x80, BYTES("\x68\x11\x80\xd2\x01\x00\x00\xd4"));
	scene_signal_cfi(s, 0x7c, 0x10, BYTES("\x0c\x1d\x00\x9d\x00\x9e\x7f"));
	scene_cfi(s, 0x100, 0x20, BYTES("")); /* the interrupted leaf */
	scene_cfi(s, 0x200, 0x40, PROGRAM_A_OUTERMOST);
	scene_register(s, X30, CODE_AT(0x80));
	stack[39 + 30] = CODE_AT(0x210);    /* x30 */
	stack[39 + 31] = SCENE_STACK + 720; /* sp */
	stack[39 + 32] = CODE_AT(0x104);    /* pc */
	scene_stack(s, SCENE_STACK, stack, LENGTH(stack));
	expect(s, "+0x10=registers; +0x80=cfi; +0x104=signal; +0x210<cfi; outermost frame");
}

static void test_a_thread_start(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x10));

	(void)state;
	scene_cfi(s, 0x00, 0x20, BYTES(""));
	scene_code(s, 0x50, BYTES("\xa8\x0b\x80\xd2\x01\x00\x00\xd4"));
	scene_register(s, X30, CODE_AT(0x50));
	scene_register(s, X29, SCENE_STACK);
	STACK(s, SCENE_STACK, 0, CODE_AT(0x70));
	expect(s, "+0x10=registers; +0x50<cfi; outermost frame");
}

/* An epilogue that CFI does not tell of: it says that the frame is still there. */
static void test_a_epilogue_without_cfi(void **state)
{
	struct scene *s = begin_aarch64(CODE_AT(0x114));

	(void)state;
	scene_cfi(s, 0x100, 0x20, PROGRAM_X29_32);
	scene_code(s, 0x110, BYTES("\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6"));
	scene_cfi(s, 0x40, 0x20, PROGRAM_A_OUTERMOST);
	scene_register(s, X30, CODE_AT(0x50));
	scene_register(s, X29, SCENE_STACK + 16);
	STACK(s, SCENE_STACK, 1, 2, 0, 12345, 3);
	expect(s, "+0x114=registers; +0x50<lr; outermost frame");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cfi),
		cmocka_unit_test(test_noreturn_call),
		cmocka_unit_test(test_empty_fde_wins),
		cmocka_unit_test(test_return_address_in_register),
		cmocka_unit_test(test_cfa_by_expression),
		cmocka_unit_test(test_plt_stub),
		cmocka_unit_test(test_damaged_cfi),
		cmocka_unit_test(test_damaged_cfi_with_frame_pointer),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_in_trampoline),
		cmocka_unit_test(test_nested_signals_on_two_stacks),
		cmocka_unit_test(test_wild_calls),
		cmocka_unit_test(test_wild_call_below_signal),
		cmocka_unit_test(test_wild_pc_without_caller),
		cmocka_unit_test(test_frame_pointers),
		cmocka_unit_test(test_frame_pointers_between_cfi),
		cmocka_unit_test(test_jit),
		cmocka_unit_test(test_no_way),
		cmocka_unit_test(test_zero_is_not_always_the_end),
		cmocka_unit_test(test_landmarks),
		cmocka_unit_test(test_leaf_called_directly),
		cmocka_unit_test(test_start_without_cfi),
		cmocka_unit_test(test_thread_start),
		cmocka_unit_test(test_exit_in_the_middle),
		cmocka_unit_test(test_return_to_zero),
		cmocka_unit_test(test_entered_by_return),
		cmocka_unit_test(test_noreturn_call_without_cfi),
		cmocka_unit_test(test_frame_pointer_loop),
		cmocka_unit_test(test_loop_over_two_stacks),
		cmocka_unit_test(test_endless_side_steps),
		cmocka_unit_test(test_growth_without_stack),
		cmocka_unit_test(test_no_progress),
		cmocka_unit_test(test_not_code),
		cmocka_unit_test(test_not_captured),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_no_registers),
		cmocka_unit_test(test_stacks_cut_short),
		cmocka_unit_test(test_elision),
		cmocka_unit_test(test_default_elision),
		cmocka_unit_test(test_frame_limit),
		cmocka_unit_test(test_a_cfi),
		cmocka_unit_test(test_a_signed),
		cmocka_unit_test(test_a_lost_lr),
		cmocka_unit_test(test_a_frame_pointers),
		cmocka_unit_test(test_a_cfi_above_frame_pointers),
		cmocka_unit_test(test_a_leaf),
		cmocka_unit_test(test_a_wild_calls),
		cmocka_unit_test(test_a_signal),
		cmocka_unit_test(test_a_thread_start),
		cmocka_unit_test(test_a_epilogue_without_cfi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
