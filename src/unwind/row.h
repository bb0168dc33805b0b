/*
 * unwind/row: how to get from a frame to its caller at one place in the code, as DWARF's call frame
 * table says it (DWARF 5 section 6.4.1): one rule for the CFA and one for each register.
 */
#ifndef STACKER_UNWIND_ROW_H
#define STACKER_UNWIND_ROW_H

#include "arch/arch.h"
#include "base/bytes.h"

/* Where the caller's value of a register is; CFA is that of the frame. E is a DWARF expression
 * that starts with the CFA on its stack. */
enum rule_kind {
	RULE_UNSPECIFIED,    /* no instruction named it: unchanged, like RULE_SAME */
	RULE_UNDEFINED,      /* lost; for the return address: there is no caller */
	RULE_SAME,           /* unchanged */
	RULE_OFFSET,         /* in memory at CFA + offset */
	RULE_VAL_OFFSET,     /* the number CFA + offset */
	RULE_REGISTER,       /* in register `reg` */
	RULE_EXPRESSION,     /* in memory at E */
	RULE_VAL_EXPRESSION, /* the number E */
};

struct rule {
	uint8_t kind; /* enum rule_kind */
	uint32_t expression_size;
	union {
		int64_t offset;
		uint64_t reg;              /* DWARF number; may be one that is not followed */
		const uint8_t *expression; /* in the section's bytes */
	};
};

enum cfa_kind {
	CFA_UNSET,      /* no instruction defined it: the row is of no use */
	CFA_REGISTER,   /* register `reg` + offset */
	CFA_EXPRESSION, /* the value of an expression that starts with an empty stack */
};

struct cfa_rule {
	uint8_t kind; /* enum cfa_kind */
	uint32_t expression_size;
	uint64_t reg; /* DWARF number */
	int64_t offset;
	const uint8_t *expression;
};

struct row {
	uint64_t start, end; /* ea: holds for start <= ea < end */
	struct cfa_rule cfa;
	struct rule rules[ARCH_DWARF_REGS]; /* by DWARF number */
	bool ra_signed;    /* aarch64: the return address carries an authentication code */
	bool signal_frame; /* the caller was interrupted, it did not call */
	bool from_debug_frame;
	uint8_t return_reg; /* the register whose rule tells the return address */
};

#endif
