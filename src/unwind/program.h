/*
 * unwind/program: call frame programs (DW_CFA_*) run to rows.
 *
 * Format: DWARF 5 section 6.4.2 and 7.24, the GNU extensions of binutils, and AADWARF64 (return
 * address signing). A CIE's program makes the rules that its functions begin with; it has no
 * locations, so that an instruction that moves the location is refused there.
 */
#ifndef STACKER_UNWIND_PROGRAM_H
#define STACKER_UNWIND_PROGRAM_H

#include "unwind/entry.h"
#include "unwind/row.h"

/* Compilers nest DW_CFA_remember_state once or twice. */
#define REMEMBERED_MAX 32

/* The part of a row that remember and restore deal with. */
struct row_rules {
	struct cfa_rule cfa;
	struct rule rules[ARCH_DWARF_REGS];
	bool ra_signed;
};

/* Instructions of one program: every call and return address of a function that saves and restores
 * all registers around each would need some thousand. */
#define PROGRAM_STEPS_MAX 131072

struct program {
	const struct cfi_section *section;
	const struct fde *fde;
	struct reader code;
	uint64_t location, next; /* ea of the row being built; of the one after it */
	uint32_t steps;          /* instructions run so far */
	bool in_cie;
	bool over;
	struct row_rules now, initial;
	struct row_rules remembered[REMEMBERED_MAX];
	size_t remembered_count;
};

/* Runs the CIE's program and stands before the first row. `section` and `fde` must outlive it. */
bool program_begin(struct program *program, const struct cfi_section *section,
		   const struct fde *fde, struct err *e);

/* Gives the next row of the function, in ascending order; rows may be empty (start == end). False
 * without an error (e->kind stays as it was, *over is set) after the last. */
bool program_next(struct program *program, struct row *out, bool *over, struct err *e);

/* The row that holds at `ea`, which the FDE covers. */
bool row_at(const struct cfi_section *section, const struct fde *fde, uint64_t ea,
	    struct row *out, struct err *e);

#endif
