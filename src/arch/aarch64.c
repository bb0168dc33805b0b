/*
 * arch/aarch64: register set of struct user_pt_regs (34 slots: x0-x30, sp, pc, pstate), DWARF
 * numbers of AADWARF64 (0-30, 31 = SP, 32 = PC, 34 = RA_SIGN_STATE).
 *
 * Signal frame: struct rt_sigframe {siginfo (128); ucontext}; at the trampoline SP points at it.
 * ucontext is uc_flags (8), uc_link (8), uc_stack (24), uc_sigmask (8) and padding to 128 bytes of
 * mask, then struct sigcontext aligned to 16: fault_address (8), regs[31], sp, pc, pstate.
 * 128 + 40 + 128 = 296, rounded up to 304; 8 more for fault_address: 312.
 */
#include "arch/arch.h"

#include <elf.h>

enum { SP = 31, PC = 32, PSTATE = 33, SLOTS = 34 };

/* clang-format off */
static const struct arch_register registers[] = {
	{"X0", 0, 0},    {"X1", 1, 1},    {"X2", 2, 2},    {"X3", 3, 3},
	{"X4", 4, 4},    {"X5", 5, 5},    {"X6", 6, 6},    {"X7", 7, 7},
	{"X8", 8, 8},    {"X9", 9, 9},    {"X10", 10, 10}, {"X11", 11, 11},
	{"X12", 12, 12}, {"X13", 13, 13}, {"X14", 14, 14}, {"X15", 15, 15},
	{"X16", 16, 16}, {"X17", 17, 17}, {"X18", 18, 18}, {"X19", 19, 19},
	{"X20", 20, 20}, {"X21", 21, 21}, {"X22", 22, 22}, {"X23", 23, 23},
	{"X24", 24, 24}, {"X25", 25, 25}, {"X26", 26, 26}, {"X27", 27, 27},
	{"X28", 28, 28}, {"X29", 29, 29}, {"X30", 30, 30}, {"SP", SP, 31},
	{"PC", PC, 32},  {"PSTATE", PSTATE, -1},
};

static const int8_t sigframe_slots[] = {
	0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, SP, PC, PSTATE,
};

/* mov x8, #139; svc #0: the vDSO's, and that of every libc. */
static const uint8_t sigreturn_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
/* clang-format on */

/* Bits 48..54 carry the code when the kernel's mask is not known: 48-bit user addresses, with the
 * top byte reserved for tags (bit 55 tells kernel from user addresses and stays). */
#define PAC_MASK_DEFAULT UINT64_C(0x007f000000000000)
#define TOP_BYTE UINT64_C(0xff00000000000000)

static uint64_t strip_pointer(uint64_t va, uint64_t mask)
{
	return va & ~(mask ? mask : PAC_MASK_DEFAULT) & ~TOP_BYTE;
}

const struct arch arch_aarch64 = {
	.name = "aarch64",
	.elf_machine = EM_AARCH64,
	.slot_count = SLOTS,
	.registers = registers,
	.register_count = sizeof registers / sizeof registers[0],
	.pc_slot = PC,
	.sp_slot = SP,
	.dwarf_pc = 32,
	.dwarf_sp = 31,
	.dwarf_fp = 29,
	.dwarf_lr = 30,
	.has_pac = true,
	.red_zone = 0,
	.syscall_slot = SLOTS,
	.pc_align_mask = 3,
	.sigframe_registers = 312,
	.sigframe_stack = 144,
	.sigframe_slots = sigframe_slots,
	.sigframe_words = sizeof sigframe_slots,
	.sigreturn_code = sigreturn_code,
	.sigreturn_size = sizeof sigreturn_code,
	.strip_pointer = strip_pointer,
};
