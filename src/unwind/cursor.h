/*
 * unwind/cursor: a frame on the way, and what a walk carries from frame to frame.
 */
#ifndef STACKER_UNWIND_CURSOR_H
#define STACKER_UNWIND_CURSOR_H

#include "unwind/code_frames.h"
#include "unwind/expression.h"
#include "unwind/plan.h"

/* A frame on the way. */
struct cursor {
	struct pc pc;
	enum found_by found_by;
	uint64_t stack_at;       /* as stack_va of struct frame */
	bool switched_by_signal; /* the step here crossed a signal frame */
	/* By DWARF number. The pc is among them (PLT stubs' CFI asks for it). A register of which
	 * nothing is known keeps its value where compilers promise that, and also where they do not:
	 * some hand-written callees have conventions of their own. After a call, LR is not known: it
	 * held the return address into this frame. */
	struct frame_registers registers;
};

struct stepper {
	const struct arch *arch;
	uint64_t pac_mask;
	int8_t dwarf_of_slot[ARCH_SLOTS]; /* -1: none */
	const struct planner *planner;
	struct memory memory; /* of the thread */
	struct code_frames *code_frames;
	unsigned entry_searches; /* so far, of the thread (see unwind/fallback.c) */
};

void stepper_begin(struct stepper *stepper, const struct planner *planner);

/* The innermost frame. */
void cursor_begin(struct cursor *cursor, const struct stepper *stepper,
		  const struct registers *registers);

/* The phrase of an ending that says that a rule needs a register which is not known. */
extern const char *const register_not_known;

static inline void set_register(struct frame_registers *registers, uint8_t reg, uint64_t value)
{
	registers->at[reg] = value;
	registers->known |= UINT64_C(1) << reg;
}

/* The address that a register points to: where tags are ignored, without one. */
static inline uint64_t address_of(const struct stepper *stepper, uint64_t value)
{
	return value & ~stepper->arch->ignored_address_bits;
}

/* Moves the cursor to a pc; `ra` is as found in memory. */
static inline void cursor_move(struct cursor *cursor, const struct stepper *stepper,
			       uint64_t ra, enum pc_kind kind, enum found_by found_by)
{
	cursor->pc =
		(struct pc){stepper->arch->strip_pointer(ra, stepper->pac_mask), (uint8_t)kind};
	cursor->found_by = found_by;
	cursor->switched_by_signal = false;
	set_register(&cursor->registers, (uint8_t)stepper->arch->dwarf_pc, cursor->pc.va);
	if (kind == PC_RETURN && stepper->arch->dwarf_lr >= 0)
		cursor->registers.known &= ~(UINT64_C(1) << stepper->arch->dwarf_lr);
}

#endif
