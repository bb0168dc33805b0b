/*
 * arch/x86_64: register set of struct user_regs_struct (27 slots), DWARF numbers of the x86-64
 * psABI figure 3.36.
 *
 * Signal frame: the kernel pushes struct rt_sigframe {char *pretcode; struct ucontext uc; ...}; the
 * handler's `ret` pops pretcode, so that at the trampoline SP points at uc. uc is uc_flags (8),
 * uc_link (8), uc_stack (24), then struct sigcontext: 40 bytes to the first register.
 */
#include "arch/arch.h"

#include <elf.h>

#include "arch/syscalls.h"
#include "arch/x86_64_code.h"

enum {
	R15,
	R14,
	R13,
	R12,
	RBP,
	RBX,
	R11,
	R10,
	R9,
	R8,
	RAX,
	RCX,
	RDX,
	RSI,
	RDI,
	ORIG_RAX,
	RIP,
	CS,
	EFLAGS,
	RSP,
	SS,
	FS_BASE,
	GS_BASE,
	DS,
	ES,
	FS,
	GS,
	SLOTS
};

/* clang-format off */
static const struct arch_register registers[] = {
	{"RAX", RAX, 0},  {"RBX", RBX, 3},  {"RCX", RCX, 2},  {"RDX", RDX, 1},
	{"RSI", RSI, 4},  {"RDI", RDI, 5},  {"RBP", RBP, 6},  {"RSP", RSP, 7},
	{"R8", R8, 8},    {"R9", R9, 9},    {"R10", R10, 10}, {"R11", R11, 11},
	{"R12", R12, 12}, {"R13", R13, 13}, {"R14", R14, 14}, {"R15", R15, 15},
	{"RIP", RIP, 16}, {"EFLAGS", EFLAGS, -1},
	{"CS", CS, -1},   {"SS", SS, -1},   {"DS", DS, -1},   {"ES", ES, -1},
	{"FS", FS, -1},   {"GS", GS, -1},
	{"FS_BASE", FS_BASE, -1}, {"GS_BASE", GS_BASE, -1}, {"ORIG_RAX", ORIG_RAX, -1},
};

/* struct sigcontext (asm/sigcontext.h) in 8-byte words, up to the flags. */
static const int8_t sigframe_slots[] = {
	R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP, EFLAGS,
};

static const struct arch_code trampolines[] = {
	{"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9, 7}, /* mov $15,%rax; syscall: glibc, musl */
	{"\xb8\x0f\x00\x00\x00\x0f\x05", 7, 5},         /* mov $15,%eax; syscall: Go, others */
};

static const struct arch_code exits[] = {
	/* mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall: musl's clone */
	{"\x89\xc7\x31\xc0\xb0\x3c\x0f\x05", 8, 6},
	/* mov %rax,%rdi; mov $60,%eax; syscall: glibc's clone */
	{"\x48\x89\xc7\xb8\x3c\x00\x00\x00\x0f\x05", 10, 8},
	/* mov %eax,%edi; mov $60 or $231,%eax; syscall: start files without a libc */
	{"\x89\xc7\xb8\x3c\x00\x00\x00\x0f\x05", 9, 7},
	{"\x89\xc7\xb8\xe7\x00\x00\x00\x0f\x05", 9, 7},
};

/*
 * Places in code where the return address is known by the code alone: at the beginning and the end of
 * a function with a frame pointer, where the frame pointer is the caller's, and in the stubs that
 * linkers make. Hex bytes; `|` is the instruction to come, `..` is any byte. The first that matches
 * counts; the number is the distance of the return address from SP.
 */
static const struct landmark {
	const char *code;
	uint32_t sp_offset;
} landmarks[] = {
	{"|c3", 0},                               /* ret */
	{"|c2....", 0},                           /* ret $n */
	{"|f3c3", 0},                             /* rep ret */
	{"|f2c3", 0},                             /* bnd ret */
	{"|554889e5", 0},                         /* push %rbp; mov %rsp,%rbp */
	{"|55488bec", 0},                         /* the other encoding */
	{"|f30f1efa55", 0},                       /* endbr64; push %rbp */
	{"55|4889e5", 8},
	{"55|488bec", 8},
	{"|493b661076", 0},                       /* Go: cmp 16(%r14),%rsp; jbe */
	{"|493b66100f86", 0},
	{"493b6610|76", 0},
	{"493b6610|0f86", 0},
	{"|ff35........ff25", 8},                 /* PLT 0: push GOT[1]; jmp *GOT[2] */
	{"|ff35........f2ff25", 8},
	{"ff35........|ff25", 16},
	{"ff35........|f2ff25", 16},
	{"|68........e9", 0},                     /* PLT: push $n; jmp PLT 0 */
	{"|68........f2e9", 0},
	{"|f30f1efa68........", 0},
	{"68........|e9", 8},
	{"68........|f2e9", 8},
	{"|ff25", 0},                             /* PLT: jmp *GOT[n] */
	{"|f2ff25", 0},
	{"|f30f1efaff25", 0},
	{"|f30f1efaf2ff25", 0},
};
/* Numbers of asm/unistd_64.h. The fourth argument is in R10, the fifth in R8. */
static const struct arch_restartable restartables[] = {
	{232, R10, ARCH_LIMIT_INT, 0},       /* epoll_wait */
	{281, R10, ARCH_LIMIT_INT, 0},       /* epoll_pwait */
	{441, R10, ARCH_LIMIT_POINTER, 0},   /* epoll_pwait2 */
	{65, -1, ARCH_LIMIT_NEVER, 0},       /* semop */
	{220, R10, ARCH_LIMIT_POINTER, 0},   /* semtimedop */
	{128, RDX, ARCH_LIMIT_POINTER, 0},   /* rt_sigtimedwait, sigwaitinfo */
	{208, R8, ARCH_LIMIT_POINTER, 0},    /* io_getevents */
	/* io_uring_enter: with IORING_ENTER_EXT_ARG a limit may be in memory. EINTR means that it
	 * handed in nothing: else it returns how much. */
	{426, R10, ARCH_LIMIT_FLAG, 1 << 3},
};
/* clang-format on */

static int hex_digit(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* Whether `code`, which has its `|` on text[at], is there. */
static bool landmark_at(const char *code, struct bytes text, size_t at)
{
	size_t before = (size_t)(strchr(code, '|') - code) / 2;

	if (at < before)
		return false;
	for (size_t i = at - before; *code; i++) {
		if (*code == '|')
			code++;
		if (i >= text.len)
			return false;
		if (*code != '.' && text.at[i] != hex_digit(code[0]) * 16 + hex_digit(code[1]))
			return false;
		code += 2;
	}
	return true;
}

static struct arch_ra return_address(struct bytes text, size_t at)
{
	for (size_t i = 0; i < sizeof landmarks / sizeof landmarks[0]; i++)
		if (landmark_at(landmarks[i].code, text, at))
			return (struct arch_ra){ARCH_RA_ON_STACK, landmarks[i].sp_offset};
	return (struct arch_ra){ARCH_RA_UNKNOWN, 0};
}

/* call rel32 */
static bool direct_call(struct bytes text, size_t at, int64_t *target)
{
	struct reader r;

	if (at < 5 || at > text.len)
		return false;
	r = reader_at(text, at - 5);
	if (read_u8(&r) != 0xe8)
		return false;
	*target = read_sint(&r, 4);
	return true;
}

static uint64_t strip_pointer(uint64_t va, uint64_t mask)
{
	(void)mask;
	return va;
}

const struct arch arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.slot_count = SLOTS,
	.registers = registers,
	.register_count = sizeof registers / sizeof registers[0],
	.pc_slot = RIP,
	.sp_slot = RSP,
	.dwarf_pc = 16,
	.dwarf_sp = 7,
	.dwarf_fp = 6,
	.dwarf_lr = -1,
	.red_zone = 128,
	.syscall_slot = ORIG_RAX,
	.syscalls = &x86_64_syscalls,
	.thread_pointer_slot = FS_BASE,
	.result_slot = RAX,
	.restartables = restartables,
	.restartable_count = sizeof restartables / sizeof restartables[0],
	.pc_align_mask = 0,
	.sigframe_registers = 40,
	.sigframe_stack = 16,
	.sigframe_slots = sigframe_slots,
	.sigframe_words = sizeof sigframe_slots,
	.trampolines = trampolines,
	.trampoline_count = sizeof trampolines / sizeof trampolines[0],
	.exits = exits,
	.exit_count = sizeof exits / sizeof exits[0],
	.sp_above_frame_record = true,
	.return_address = return_address,
	.direct_call = direct_call,
	.frame_by_code = x86_64_frame_by_code,
	.frame_by_entry = x86_64_frame_by_entry,
	.is_after_call = x86_64_is_after_call,
	.strip_pointer = strip_pointer,
};
