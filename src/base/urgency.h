/*
 * base/urgency: the calling thread before others, while its work is short.
 *
 * Among a thousand threads that compute, 0.05 s of work at normal priority wait for half a minute.
 */
#ifndef STACKER_BASE_URGENCY_H
#define STACKER_BASE_URGENCY_H

/* Niceness of -20 until the process has used half a second of processor time; then as before. Does
 * nothing where the kernel does not permit it, or somebody has chosen another niceness or policy. */
void urgency_begin(void);

/* In a process that was forked meanwhile: it has half a second of its own. */
void urgency_go_on(void);

/* Threads that are started from now on are as before. */
void urgency_keep(void);

#endif
