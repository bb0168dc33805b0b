/*
 * arch/x86_64_path: what the instructions on one path through a function do to its frame.
 *
 * Nothing but SP, the frame pointer and where callee-saved registers lie is followed. It stands
 * apart from the search (arch/path), which chooses among paths and knows no opcodes.
 */
#ifndef STACKER_ARCH_X86_64_PATH_H
#define STACKER_ARCH_X86_64_PATH_H

#include "arch/path.h"
#include "arch/x86_64_decode.h"

/* A register is `away` when its caller's value is not in it but in memory, at `where`: on the
 * path to a return, where it was loaded from; on the path from an entry, where it was saved. */
struct x86_64_path {
	struct path base;
	bool from_entry; /* to the pc, which no return leads to; else from the pc to a return */
	uint32_t away;
	struct tracked where[X86_R15 + 1];
	/* On the path to a return: saved on it, at `kept_at`, and where it was away to then. */
	uint32_t kept, kept_away;
	struct tracked kept_at[X86_R15 + 1], kept_where[X86_R15 + 1];
	uint64_t released; /* by `ret`, besides the return address */
	bool by_jump;      /* the end is no `ret` */
};

/* A path that begins at `at`. */
struct x86_64_path x86_64_path_begin(size_t at, bool from_entry);

extern const struct path_rules x86_64_path_rules;

#endif
