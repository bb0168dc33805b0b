/*
 * unwind/plan: what is to be done at one pc to get to the caller, worked out once per distinct pc.
 *
 * Nearly all rows that compilers make have one form: the CFA is a register and an offset, the return
 * address and some registers lie in whole words below it. Such a row becomes a compact plan, which is
 * small and is applied without a look at the row. Other rows stay as they are.
 */
#ifndef STACKER_UNWIND_PLAN_H
#define STACKER_UNWIND_PLAN_H

#include "unwind/cfi.h"
#include "unwind/memory.h"
#include "unwind/row.h"

/* aarch64 has x19 to x30 to save, x86_64 six registers and the return address. */
#define PLAN_SAVED_MAX 12

enum plan_kind {
	PLAN_EMPTY,    /* free slot of the cache */
	PLAN_NOT_CODE, /* no executable mapping is there */
	PLAN_COMPACT,
	PLAN_ROW,
	PLAN_SIGNAL,    /* a signal trampoline: the kernel's frame is on the stack */
	PLAN_GO,        /* a function of Go, by the size of its frame */
	PLAN_GO_SWITCH, /* one that has gone on from a goroutine's stack to another */
	PLAN_OUTERMOST, /* nothing called this */
	PLAN_NO_CFI,
	PLAN_BAD_CFI,
};

/* A row with what its expressions need. */
struct plan_row {
	struct row row;
	uint64_t load_bias;
};

struct plan {
	struct pc pc;
	uint8_t kind;      /* enum plan_kind */
	uint8_t found_by;  /* enum found_by, of the caller */
	bool signal_frame; /* the caller was interrupted */
	bool is_entered;   /* a return address here was put there for the code to begin */
	bool go_by_record; /* PLAN_GO: SP is another stack's, the frame pointer tells the frame */
	bool go_injected; /* PLAN_GO: its caller did not call, but was interrupted */
	uint8_t return_reg;
	/* PLAN_COMPACT */
	uint8_t cfa_reg;
	uint8_t saved_count;
	bool ra_saved; /* then saved[0] is the return address; else it is in return_reg */
	int32_t cfa_offset;
	uint8_t saved_regs[PLAN_SAVED_MAX];
	int16_t saved_words[PLAN_SAVED_MAX]; /* distance from the CFA in 8-byte words */
	union {
		const struct plan_row *row; /* PLAN_ROW */
		uint64_t go_size;           /* PLAN_GO: as go_frame.size */
		uint64_t go_function;       /* PLAN_GO_SWITCH: va of the function's beginning */
	};
};

struct planner {
	struct arena *arena;
	const struct snapshot *snapshot;
	struct modules *modules;
	struct cfi_debug_files debug_files;
};

/* Fills in everything but PLAN_EMPTY. */
void plan_make(const struct planner *planner, struct pc pc, struct plan *out);

/* Whether something executable is mapped at va. */
bool is_code(const struct planner *planner, uint64_t va);

#endif
