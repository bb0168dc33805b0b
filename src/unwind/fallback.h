/*
 * unwind/fallback: the step where there is no call frame information.
 *
 * First the function's own code is run forward to its return, where that can be had and comes to one
 * (arch->frame_by_code), or from its beginning (arch->frame_by_entry). Else, for a return address, the frame-pointer chain. For an exact pc the
 * machine code around it says whether the function has its frame yet (arch->return_address); without
 * an answer, a direct call that is known to have led here, then the chain, then LR. For a pc that is
 * no code at all (a call to NULL or to a wild address): where the call left the return address.
 */
#ifndef STACKER_UNWIND_FALLBACK_H
#define STACKER_UNWIND_FALLBACK_H

#include "unwind/cursor.h"

/* `plan` is that of the cursor's pc. On false the cursor is unchanged. */
bool step_by_fallback(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		      struct ending *ending);

#endif
