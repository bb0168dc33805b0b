/*
 * process/trouble: why a process cannot be traced, in one line with the cure.
 */
#ifndef STACKER_PROCESS_TROUBLE_H
#define STACKER_PROCESS_TROUBLE_H

#include "process/procfs.h"

/* Refuses what has no threads to show, whatever the permissions: thread ids, kernel threads, zombies.
 * True when there is nothing against it. */
bool process_check(const struct process *process, const struct process_status *status,
		   struct err *e);

/* Sets ERR_PERMISSION with the most likely cause of an EPERM or EACCES. Always returns false. */
bool permission_explain(const struct process *process, const struct process_status *status,
			struct err *e);

#endif
