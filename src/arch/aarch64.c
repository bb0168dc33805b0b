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

#include "arch/aarch64_code.h"
#include "arch/syscalls.h"

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

static const struct arch_code trampolines[] = {
	{"\x68\x11\x80\xd2\x01\x00\x00\xd4", 8, 4}, /* mov x8,#139; svc #0: vDSO and libcs */
};

static const struct arch_code exits[] = {
	{"\xa8\x0b\x80\xd2\x01\x00\x00\xd4", 8, 4}, /* mov x8,#93; svc #0: clone of glibc, musl */
	{"\xa8\x0b\x80\x52\x01\x00\x00\xd4", 8, 4}, /* mov w8,#93 */
	{"\xc8\x0b\x80\xd2\x01\x00\x00\xd4", 8, 4}, /* mov x8,#94: exit_group */
	{"\xc8\x0b\x80\x52\x01\x00\x00\xd4", 8, 4},
};

/* Instructions that tell where the return address is; ARM ARM, C6.2. */
struct landmark {
	uint32_t mask, value;
	enum arch_ra_place place;
};

/* The one that comes next. */
static const struct landmark at_pc[] = {
	{0xffffffff, 0xd65f03c0, ARCH_RA_IN_LR}, /* ret */
	{0xfffffbff, 0xd65f0bff, ARCH_RA_IN_LR}, /* retaa, retab */
	{0xffffff3f, 0xd503233f, ARCH_RA_IN_LR}, /* paciasp, pacibsp, autiasp, autibsp */
	{0xffffff3f, 0xd503241f, ARCH_RA_IN_LR}, /* bti */
	{0xffc07fff, 0xa9807bfd, ARCH_RA_IN_LR}, /* stp x29,x30,[sp,#-n]! */
	{0xffc07fff, 0xa9007bfd, ARCH_RA_IN_LR}, /* stp x29,x30,[sp,#n] */
	{0xffc003ff, 0x910003fd, ARCH_RA_IN_LR}, /* add x29,sp,#n; mov x29,sp */
};

/* The last one before it that says something. */
static const struct landmark before_pc[] = {
	{0xffc07fff, 0xa9807bfd, ARCH_RA_IN_FRAME}, /* stp x29,x30,[sp,#-n]! */
	{0xffc07fff, 0xa9007bfd, ARCH_RA_IN_FRAME}, /* stp x29,x30,[sp,#n] */
	{0xffe00fff, 0xf8000ffe, ARCH_RA_IN_FRAME}, /* str x30,[sp,#-n]!: Go */
	{0xffc07fff, 0xa8c07bfd, ARCH_RA_IN_LR},    /* ldp x29,x30,[sp],#n */
	{0xffc07fff, 0xa9407bfd, ARCH_RA_IN_LR},    /* ldp x29,x30,[sp,#n] */
	/* Before a function's own first instruction stands the end of another. */
	{0xffffffff, 0xd65f03c0, ARCH_RA_IN_LR},
	{0xfffffbff, 0xd65f0bff, ARCH_RA_IN_LR},
	{0xfffffc1f, 0xd61f0000, ARCH_RA_IN_LR},    /* br: also the end of a PLT entry */
	{0xffffffff, 0x00000000, ARCH_RA_IN_LR},    /* padding */
};
/* clang-format on */

/* How far back a function's prologue is looked for. */
#define PROLOGUE_DISTANCE_MAX 4096

static enum arch_ra_place place_by(const struct landmark *landmarks, size_t count,
				   struct bytes text, size_t at)
{
	struct reader r = reader_at(text, at);
	uint32_t instruction = read_u32(&r);

	for (size_t i = 0; i < count && !reader_failed(&r); i++)
		if ((instruction & landmarks[i].mask) == landmarks[i].value)
			return landmarks[i].place;
	return ARCH_RA_UNKNOWN;
}

static struct arch_ra return_address(struct bytes text, size_t at)
{
	size_t first = at > PROLOGUE_DISTANCE_MAX ? at - PROLOGUE_DISTANCE_MAX : 0;
	enum arch_ra_place place = place_by(at_pc, sizeof at_pc / sizeof at_pc[0], text, at);

	for (; place == ARCH_RA_UNKNOWN && at >= first + 4; at -= 4)
		place = place_by(before_pc, sizeof before_pc / sizeof before_pc[0], text,
				 at - 4);
	return (struct arch_ra){place, 0};
}

/* bl: a distance of 26 bits in words, from the instruction itself. */
static bool direct_call(struct bytes text, size_t at, int64_t *target)
{
	struct reader r;
	uint32_t instruction;
	int64_t words;

	if (at < 4 || at > text.len)
		return false;
	r = reader_at(text, at - 4);
	instruction = read_u32(&r);
	if (instruction >> 26 != 0x25)
		return false;
	words = (int64_t)(instruction & 0x3ffffff) - (instruction & 0x2000000 ? 0x4000000 : 0);
	*target = 4 * words - 4;
	return true;
}

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
	.syscall_number_slot = 8,
	.syscalls = &aarch64_syscalls,
	.thread_pointer_slot = SLOTS,
	.thread_pointer_set = NT_ARM_TLS,
	.ignored_address_bits = TOP_BYTE,
	.pc_align_mask = 3,
	.sigframe_registers = 312,
	.sigframe_stack = 144,
	.sigframe_slots = sigframe_slots,
	.sigframe_words = sizeof sigframe_slots,
	.trampolines = trampolines,
	.trampoline_count = sizeof trampolines / sizeof trampolines[0],
	.exits = exits,
	.exit_count = sizeof exits / sizeof exits[0],
	.return_address = return_address,
	.direct_call = direct_call,
	.frame_by_code = aarch64_frame_by_code,
	.frame_by_entry = aarch64_frame_by_entry,
	.is_after_call = aarch64_is_after_call,
	.strip_pointer = strip_pointer,
};
