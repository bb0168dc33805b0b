/*
 * The step in hand, for the process that waits.
 */
#include "process/step.h"

static struct step_at *shown;

void steps_show(struct step_at *where)
{
	shown = where;
}

/* The reader looks only when the count has stood still for long. */
void step_begin(enum step what, uint64_t number, const char *text)
{
	if (!shown)
		return;
	shown->what = what;
	shown->number = number;
	shown->text = text;
	__atomic_store_n(&shown->count, shown->count + 1, __ATOMIC_RELEASE);
}
