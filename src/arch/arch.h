/*
 * arch/arch: a CPU architecture as a value.
 *
 * One const table each for x86_64 and aarch64, both always built, so that either host can read
 * the captures of the other. Sources: x86-64 psABI 1.0 (figure 3.36, DWARF register numbers),
 * AADWARF64 (DWARF for the Arm 64-bit Architecture), and the kernel's NT_PRSTATUS register sets
 * (struct user_regs_struct, struct user_pt_regs).
 */
#ifndef STACKER_ARCH_ARCH_H
#define STACKER_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

/* The larger of the two NT_PRSTATUS sets in 8-byte slots: aarch64 34, x86_64 27. */
#define ARCH_SLOTS 34
/* DWARF register numbers up to this are followed when unwinding (aarch64 needs 0..34). */
#define ARCH_DWARF_REGS 40

/* General registers as PTRACE_GETREGSET(NT_PRSTATUS) delivers them, slot by slot. */
struct registers {
	uint64_t at[ARCH_SLOTS];
};

struct arch_register {
	const char *name; /* as reports and captures name it: "RAX", "X0" */
	uint8_t slot;     /* index into struct registers */
	int8_t dwarf;     /* DWARF number, -1 when it has none that unwinding needs */
};

/* A fixed run of machine code. */
struct arch_code {
	const char *bytes;
	size_t size;
	size_t syscall_at; /* offset of its system call instruction */
};

/* Where the return address of an interrupted function is. */
enum arch_ra_place {
	ARCH_RA_UNKNOWN,
	ARCH_RA_IN_FRAME, /* in the frame record that the frame pointer points at */
	ARCH_RA_IN_LR,
	ARCH_RA_ON_STACK, /* at SP + sp_offset; the frame pointer is still the caller's */
};

struct arch_ra {
	enum arch_ra_place place;
	uint32_t sp_offset;
};

/* An address at a distance from SP, or from the frame pointer, as they are at a pc. */
struct arch_place {
	bool from_fp;
	int64_t offset;
};

struct arch_saved {
	int8_t dwarf;
	struct arch_place place;
};

/* What a function will give back when it returns, and where all that is while it runs.
 * Registers that are not listed are still the caller's. */
#define ARCH_FRAME_SAVED_MAX 16
struct arch_frame {
	struct arch_place sp; /* the caller's SP itself, not where it is saved */
	bool ra_in_lr;
	bool doubtful; /* SP is not where the ABI has it at calls */
	bool by_jump;  /* told by a jump to another function, or by what looks like one */
	struct arch_place ra; /* unless in LR */
	uint8_t saved_count;
	struct arch_saved saved[ARCH_FRAME_SAVED_MAX];
};

/* A blocking system call that returns EINTR when its thread is merely stopped by a tracer, and
 * that may be begun again when it had no time limit (see process/tracee.c). */
struct arch_restartable {
	int16_t syscall;
	int8_t limit_slot; /* slot of the argument that tells whether its time is limited */
	enum arch_limit {
		ARCH_LIMIT_NEVER,   /* it has no such argument */
		ARCH_LIMIT_INT,     /* an int, negative for none */
		ARCH_LIMIT_POINTER, /* NULL for none */
		ARCH_LIMIT_FLAG,    /* flags, without limit_flag for none */
	} limit;
	uint64_t limit_flag;
};

struct syscall_names;

struct arch {
	const char *name;                      /* "x86_64", "aarch64": as uname -m */
	uint16_t elf_machine;                  /* EM_* */
	size_t slot_count;                     /* 8-byte slots of NT_PRSTATUS */
	const struct arch_register *registers; /* in the order they are printed */
	size_t register_count;
	uint8_t pc_slot, sp_slot;
	/* DWARF numbers. lr < 0: calls push the return address instead of setting a register. */
	int8_t dwarf_pc, dwarf_sp, dwarf_fp, dwarf_lr;
	bool has_pac;      /* return addresses may carry pointer-authentication bits */
	uint32_t red_zone; /* bytes below SP that a leaf function may use */
	/* Slot that tells the system call a thread is in (ORIG_RAX). Where there is none:
	 * slot_count, and the slot in which a call is given its number. */
	uint32_t syscall_slot, syscall_number_slot;
	const struct syscall_names *syscalls;
	/* Where a thread's control block is, which both libcs put on top of its stack: in a
	 * slot, or, where that is slot_count, the one word of this ptrace register set (0: not
	 * to be had). */
	uint32_t thread_pointer_slot, thread_pointer_set;
	/* Where a system call leaves its result, and the calls that may be begun again by
	 * setting it; none where the kernel decides about restarts before a tracer sees the
	 * thread. */
	uint8_t result_slot;
	const struct arch_restartable *restartables;
	size_t restartable_count;
	/* Bits of an address that loads and stores ignore, and that may hold a tag (top byte
	 * ignore). */
	uint64_t ignored_address_bits;
	/* Lowest bit of an instruction address that can be set, as a mask of bits that must be
	 * 0. */
	uint64_t pc_align_mask;
	/* Offsets inside the signal frame that the kernel pushes, from the SP at the trampoline
	 * to the interrupted thread's slot values; see arch/ARCH.c for the derivation. */
	uint32_t sigframe_registers;  /* offset of the saved registers block from SP */
	uint32_t sigframe_stack;      /* offset of uc_stack {ss_sp, ss_flags, ss_size} */
	const int8_t *sigframe_slots; /* slot of each saved 8-byte word, -1 unused */
	size_t sigframe_words;
	/* Signal trampolines (mov NR_rt_sigreturn; syscall), to know one without CFI. */
	const struct arch_code *trampolines;
	size_t trampoline_count;
	/* What a thread's first function returns to: exit. Nothing called the code that holds
	 * it. */
	const struct arch_code *exits;
	size_t exit_count;
	/* A frame record is the caller's frame pointer and the return address above it. Whether
	 * the caller's stack begins right above the record (x86_64), or anywhere above
	 * (aarch64). */
	bool sp_above_frame_record;
	/* Where the return address is when a thread is interrupted at text[at], told by the
	 * code around it. For code without call frame information. */
	struct arch_ra (*return_address)(struct bytes text, size_t at);
	/* The target of the direct call that returns to text[at], as a distance from there;
	 * false when the instruction before is no direct call. */
	bool (*direct_call)(struct bytes text, size_t at, int64_t *target);
	/* The frame of the function at text[at], told by running its code forward to its
	 * return; `called`: pc is a return address. False when that leads nowhere. NULL: cannot
	 * be told. */
	bool (*frame_by_code)(struct bytes text, size_t at, bool called,
			      struct arch_frame *out);
	/* The same, told by running the code to text[at] from what may be the beginning of its
	 * function: the nearest before `*entry` (at first: `at`) that leads here, which
	 * `*entry` then is. False when there is no other. NULL: cannot be told. */
	bool (*frame_by_entry)(struct bytes text, size_t at, bool called, size_t *entry,
			       struct arch_frame *out);
	/* Whether the instruction before text[at] is a call of any kind. */
	bool (*is_after_call)(struct bytes text, size_t at);
	/* A code pointer as it points, without pointer-authentication bits (`mask` from the
	 * kernel's NT_ARM_PAC_MASK; 0: unknown, a default for 48-bit user addresses is used). */
	uint64_t (*strip_pointer)(uint64_t va, uint64_t mask);
};

extern const struct arch arch_x86_64;
extern const struct arch arch_aarch64;

/* NULL when there is none. */
const struct arch *arch_of_machine(uint16_t elf_machine);
const struct arch *arch_named(const char *name);
/* For messages: "x86_64, aarch64". */
const char *arch_names(struct arena *arena);
/* Numbers of system calls are below this. */
#define ARCH_SYSCALLS_MAX 1024
/* The name of a system call, "futex"; NULL when the number is not known. */
const char *arch_syscall_name(const struct arch *arch, int64_t number);
/* The architecture this program was built for. */
const struct arch *arch_host(void);
/* The bits of a code address that hold a signature on this machine, told by the processor; 0:
 * none. */
uint64_t arch_host_pac_mask(void);

#endif
