/*
 * process/runners: threads that ran between two looks, one by one, and still without a stop.
 *
 * In the short time that one thread takes, one that waits in line for a processor goes on to wait. One
 * that is on a processor is driven from it for that time (process/occupier), as by any thread of higher
 * priority; that needs real-time scheduling.
 */
#ifndef STACKER_PROCESS_RUNNERS_H
#define STACKER_PROCESS_RUNNERS_H

#include "process/iterator.h"
#include "process/sightings.h"

struct runners {
	const struct iterator *iterator;
	struct sightings *sightings;
	struct stacks *stacks;
	bool realtime; /* we have it: processors may be taken */
};

/* Settles what can be settled; those that are not have no picture. True: while the last one was driven
 * from its processor all others were glanced at, so that all pictures may be of that moment. */
bool runners_settle(const struct runners *runners);

#endif
