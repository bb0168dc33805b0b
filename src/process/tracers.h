/*
 * process/tracers: others who trace the process already. There can be only one tracer of a thread.
 *
 * Another one that only looks, as we do, lets go within milliseconds: that is waited for, for a
 * small part of --timeout. One that stays is named.
 */
#ifndef STACKER_PROCESS_TRACERS_H
#define STACKER_PROCESS_TRACERS_H

#include "process/procfs.h"

struct tracer {
	uint32_t pid; /* 0: none */
	char name[64];
};

/* Fills in pid and name of the process that the thread `tid`, as TracerPid says it, is of. */
void tracer_name(struct tracer *tracer, uint32_t tid);

/* How long others are still waited for. */
struct patience {
	uint64_t until_ns; /* 0: nobody has been waited for yet */
	unsigned pauses, unseen;
	struct tracer seen; /* the last one */
};

/* Waits for a moment; false when there has been enough of that. `timeout_ns`: of the capture. */
bool patience_pause(struct patience *patience, uint64_t timeout_ns);

/* A thread could not be attached: waits as above, in case that another tracer is why. One that is
 * not seen may have let go since: that is believed a few times. */
bool patience_with_thread(struct patience *patience, const struct process *process,
			  uint32_t tid, uint64_t timeout_ns);

/* Sets ERR_BUSY, in one line with the cure. Always returns false. */
bool tracer_explain(uint32_t pid, const struct tracer *tracer, struct err *e);

/* Refuses to stop who traces this very program, or traces who does: each would wait for the other
 * for ever. True when `pid` is none of these. */
bool own_tracers_check(uint32_t pid, struct err *e);

#endif
