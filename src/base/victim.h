/*
 * base/victim: whom the kernel ends when memory runs out.
 */
#ifndef STACKER_BASE_VICTIM_H
#define STACKER_BASE_VICTIM_H

/* This process first, and those that it starts: rather than the process that is looked at. Does nothing where
 * /proc does not permit it. */
void victim_volunteer(void);

#endif
