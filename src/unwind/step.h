/*
 * unwind/step: one step from a frame to its caller, in place.
 */
#ifndef STACKER_UNWIND_STEP_H
#define STACKER_UNWIND_STEP_H

#include "unwind/cursor.h"

/* By a plan of kind PLAN_COMPACT, PLAN_ROW or PLAN_SIGNAL. On false, with the reason in `ending`,
 * the cursor is unchanged. */
bool step_by_plan(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		  struct ending *ending);

#endif
