/*
 * unwind/unwind: registers and memory in, frames out. A pure core: no process, no file, no
 * printing; it runs the same for a live snapshot, a capture with stacks and a test's arrays, for
 * either architecture on either host.
 *
 * One step, in this order: the table of Go programs (unwind/go.h), call frame information of
 * .eh_frame (its table, else a linear scan),
 * .debug_frame (also of the separate debug file), a signal trampoline without CFI, the
 * frame-pointer chain, the leaf rule (return address in LR, or on top of the stack after a call to
 * a bad address). CFI wins wherever an FDE covers the pc, even an "empty" one. Every frame says how
 * it was found, every stack why it ended.
 */
#ifndef STACKER_UNWIND_UNWIND_H
#define STACKER_UNWIND_UNWIND_H

#include "module/module.h"
#include "snapshot/snapshot.h"
#include "unwind/cfi.h"

/* Frames kept of one stack; the middle of a deeper one is elided. Both halves are kept. */
#define UNWIND_FRAMES_KEPT 2048

struct unwind_options {
	uint64_t frame_limit; /* stop after so many, elided ones included; 0: no limit */
	size_t frames_kept;   /* 0: UNWIND_FRAMES_KEPT */
	/* Asked at most once a module, and only where it has code without call frame information. */
	struct cfi_debug_files debug_files;
};

struct unwinder;

/* `modules` may be written to (module->cfi is filled lazily). The unwinder and all frames live in
 * the arena. One unwinder serves all threads: its row cache is what makes them cheap. */
struct unwinder *unwinder_new(struct arena *arena, const struct snapshot *snapshot,
			      struct modules *modules, const struct unwind_options *options);

/* Walks one thread's stack and fills thread->stack. A thread without registers gets no frames and
 * STOP_NO_REGISTERS. Never fails: an ended walk is a result. */
void unwind_thread(struct unwinder *unwinder, struct thread *thread);

/* All threads of the snapshot. */
void unwind_all(struct unwinder *unwinder, struct snapshot *snapshot);

#endif
