/*
 * process/collect: waiting until the threads that were asked to stop have stopped.
 *
 * Each time that we wake we take a processor from the threads that we wait for, and waking
 * costs more than what they have left to do. So we sleep until the one that was asked last has
 * stopped: by then nearly all others have, too. A timer's signal, the tick, ends sleeps that
 * take long.
 */
#ifndef STACKER_PROCESS_COLLECT_H
#define STACKER_PROCESS_COLLECT_H

#include "process/tracee.h"

/* Around everything below, in the tracing thread. */
void ticks_begin(struct hold *hold);
void ticks_end(struct hold *hold);

/* Did somebody send a signal of hold->ends? It is blocked, and taken here: hold->ended_by. */
bool asked_to_end(struct hold *hold);

/* Waits for the threads [from, to) of the table, hold->timeout_ns at the most, or until
 * somebody asks us to end (hold->ended_by). Those that did not stop are HELD_LATE then. */
void threads_collect(struct hold *hold, size_t from, size_t to);

/* Asked to end in the middle: threads that were interrupted already are given a moment to stop,
 * and registers are read all the same, so that their calls can be begun again (tracee_release). */
void interrupted_collect(struct hold *hold);

#endif
