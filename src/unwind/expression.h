/*
 * unwind/expression: DWARF expressions as call frame information uses them.
 *
 * Format: DWARF 5 section 2.5.1 and 7.7.1. What needs more than registers and memory (types, entry
 * values, other procedures, thread-local storage, pieces) is refused with a reason, as DWARF forbids
 * it in call frame information (6.4.2). Loops are bounded.
 */
#ifndef STACKER_UNWIND_EXPRESSION_H
#define STACKER_UNWIND_EXPRESSION_H

#include "unwind/memory.h"

/* Values an expression may hold at a time, and operations it may do: the longest in use (the
 * kernel's and glibc's signal frames, PLT stubs) do about a dozen. */
#define EXPRESSION_STACK_MAX 64
#define EXPRESSION_STEPS_MAX 10000

/* A frame's registers by DWARF number; bit n of `known` says that at[n] is that frame's value. */
struct frame_registers {
	uint64_t at[ARCH_DWARF_REGS];
	uint64_t known;
};
_Static_assert(ARCH_DWARF_REGS <= 64, "a bit for each register");

static inline bool register_known(const struct frame_registers *registers, uint64_t reg)
{
	return reg < ARCH_DWARF_REGS && (registers->known >> reg & 1);
}

struct expression_input {
	const struct frame_registers *registers;
	struct memory *memory;
	uint64_t load_bias; /* added to DW_OP_addr */
	bool has_initial;   /* the stack begins with `initial` (the CFA), else empty */
	uint64_t initial;
};

/* The value on top of the stack at the end. False with the reason in `ending`: STOP_BAD_CFI for a
 * bad expression or a register that is not known, else why memory could not be read. */
bool expression_value(struct bytes expression, const struct expression_input *input,
		      uint64_t *out, struct ending *ending);

#endif
