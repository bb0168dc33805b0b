/*
 * process/method: how the pictures of the threads are taken: without a stop by BPF, or by ptrace.
 */
#ifndef STACKER_PROCESS_METHOD_H
#define STACKER_PROCESS_METHOD_H

#include "process/job.h"

/* Decides by what is asked for and what can be had here. False with the reason when what was asked
 * for cannot be had, or when a process that is traced already would have to be stopped. */
bool method_choose(struct job *job, struct err *e);

/* Takes the pictures: fills job->table, job->hold and job->stacks. */
bool method_run(struct job *job, struct err *e);

/* Threads could not be attached, and it may be another tracer, who lets go soon: was waited for. */
bool method_is_refused_for_now(struct job *job);

#endif
