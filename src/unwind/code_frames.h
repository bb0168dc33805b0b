/*
 * unwind/code_frames: what running a function's code tells about its frame, kept by pc.
 *
 * It depends on the code alone, and all threads of a static musl program end in the same few
 * functions without call frame information.
 */
#ifndef STACKER_UNWIND_CODE_FRAMES_H
#define STACKER_UNWIND_CODE_FRAMES_H

#include "arch/arch.h"

/* A power of two. Few functions are met that need this; of two that share a place the latest stays. */
#define CODE_FRAMES 64

struct code_question {
	const struct arch *arch;
	struct bytes text;
	size_t at; /* text[at] is the code at pc */
	uint64_t pc;
	bool called;   /* pc is a return address */
	bool by_entry; /* arch->frame_by_entry; else arch->frame_by_code */
};

/* A question and its answer. */
struct code_frame {
	uint64_t pc;
	bool known, called, by_entry, found;
	size_t from, entry; /* by_entry: *entry as it was asked, and as it was answered */
	struct arch_frame frame;
};

struct code_frames {
	struct code_frame at[CODE_FRAMES];
};

/* Answers as those functions do; `entry` is only used by one of them. */
bool code_frame(struct code_frames *frames, const struct code_question *question, size_t *entry,
		struct arch_frame *out);

#endif
