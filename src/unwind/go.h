/*
 * unwind/go: frames of Go.
 *
 * Go has no .eh_frame. Its own table (.gopclntab, elf/gopclntab.h) says for each address how much of the
 * stack the function uses there, in prologues and epilogues as well, and it is never stripped; so it
 * is asked before .debug_frame, which Go's linker makes of the same numbers without what follows here.
 *
 * A goroutine's stack ends in runtime.goexit. The runtime works on the thread's own stack ("g0"); what
 * it does there for good (mcall, morestack) has left the goroutine behind: that is the end of the
 * stack (runtime/traceback.go, topofstack). systemstack and asmcgocall come back to the goroutine.
 * Neither keeps its stack pointer where others can find it without the runtime's own structures, but
 * they keep the frame pointer: it points at the frame record of their caller, which lies right below
 * that one's return address.
 *
 * On aarch64 the return address is in LR as long as the function uses no stack, and else at SP, with the
 * caller's frame pointer below it. systemstack and asmcgocall take the frame pointer of the stack that
 * they go to: the goroutine is not found again, and the stack ends there.
 */
#ifndef STACKER_UNWIND_GO_H
#define STACKER_UNWIND_GO_H

#include "unwind/cursor.h"

/* Whether out->pc, of the kind that stands there, is in a function of Go; then the rest is filled in. */
bool go_plan(const struct planner *planner, const struct module_range *range, struct plan *out);

/* By a plan of kind PLAN_GO or PLAN_GO_SWITCH. On false, with the reason in `ending`, the cursor is
 * unchanged. */
bool step_by_go(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		struct ending *ending);

#endif
