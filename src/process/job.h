/*
 * process/job: what one capture works with, and the turning of it into a snapshot.
 */
#ifndef STACKER_PROCESS_JOB_H
#define STACKER_PROCESS_JOB_H

#include "process/avoid.h"
#include "process/hold.h"
#include "process/image.h"
#include "process/iterator.h"
#include "process/process.h"
#include "process/tracers.h"

struct attempt;

struct job {
	struct attempt *attempt;
	const struct avoid *avoid;
	struct captured *out;
	struct arena *arena; /* what is found: both processes see it */
	struct arena *own;   /* what it takes to find it; ready for quick writes */
	const struct capture_request *request;
	struct process process;
	struct process_status status;
	struct image image; /* the program that it runs, from before anything was read */
	uint32_t *tids;
	size_t tid_count;
	struct task_stat *stats;  /* per tid, from before a stop of all; else NULL */
	struct iterator iterator; /* open: the method is BPF */
	const char *method_note;  /* why it is not, when it was wanted */
	struct patience patience; /* with other tracers */
	struct thread_table table;
	struct hold hold;
	struct stacks stacks;
};

/* Fills threads and facts of job->out->snapshot. The main thread first, then by tid; threads that
 * exited are left away. */
void snapshot_fill(struct job *job);

#endif
