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

enum {
	R15, R14, R13, R12, RBP, RBX, R11, R10, R9, R8, RAX, RCX, RDX, RSI, RDI, ORIG_RAX, RIP, CS,
	EFLAGS, RSP, SS, FS_BASE, GS_BASE, DS, ES, FS, GS, SLOTS
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

/* mov $15,%rax (with REX.W); syscall: glibc and musl alike. */
static const uint8_t sigreturn_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
/* clang-format on */

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
	.pc_align_mask = 0,
	.sigframe_registers = 40,
	.sigframe_stack = 16,
	.sigframe_slots = sigframe_slots,
	.sigframe_words = sizeof sigframe_slots,
	.sigreturn_code = sigreturn_code,
	.sigreturn_size = sizeof sigreturn_code,
	.strip_pointer = strip_pointer,
};
