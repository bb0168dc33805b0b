/*
 * base/placer: a process that is set apart to put one file in its place.
 *
 * Where a program has given up writing (cli/sandbox), it can still fill what is open, but not give
 * it a name. So a process is made before, which can, and which does nothing but that: once, when
 * it is asked. When the program ends without having asked, however it ends, it gives up instead,
 * and so removes what is unfinished.
 */
#ifndef STACKER_BASE_PLACER_H
#define STACKER_BASE_PLACER_H

#include <stdbool.h>

#include "base/err.h"

/* What it does. Both run in that process, with the memory as it was at the start. */
struct placer_task {
	bool (*place)(void *context, struct err *e);
	void (*give_up)(void *context);
	void *context;
};

struct placer {
	int requests, answers; /* pipes; -1: there is no such process */
	int pid;
};

/* False with errno. */
bool placer_start(struct placer *placer, const struct placer_task *task);
/* What `place` returned; the process ends. */
bool placer_ask(struct placer *placer, struct err *e);
/* Without having asked: returns when `give_up` has. Nothing where there is no process. */
void placer_end(struct placer *placer);

#endif
