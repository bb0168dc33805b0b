/*
 * process/avoid: what did not answer before, and is not asked again in this attempt.
 */
#ifndef STACKER_PROCESS_AVOID_H
#define STACKER_PROCESS_AVOID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/step.h"
#include "snapshot/snapshot.h"

#define AVOID_DEVICES 8
#define AVOID_STACKS 4

struct avoid {
	bool program; /* the program's own file, wherever it lies */
	bool maps;    /* /proc/PID/maps; goes with `space` */
	bool space;  /* all that takes the lock of its memory: reading it, map_files, cmdline */
	bool files;  /* all of them */
	bool attach; /* stopping threads */
	bool texts;  /* wait channels and kernel stacks */
	bool one_by_one; /* stacks are read one at a time, to find the one that does not answer */
	uint64_t devices[AVOID_DEVICES]; /* step_device */
	size_t device_count;
	uint64_t stacks[AVOID_STACKS]; /* addresses; all of their mappings is meant */
	size_t stack_count;
};

/* May this mapped file be looked at? */
bool avoid_permits_file(const struct avoid *avoid, const struct map *map);
void avoid_file(struct avoid *avoid, const struct map *map);
/* May the memory at va be read? */
bool avoid_permits_memory(const struct avoid *avoid, const struct snapshot *snapshot,
			  uint64_t va);

/* Learns from a step that did not answer. False: it cannot be done without. `by_bpf`: threads
 * were being read without a stop. */
bool avoid_learn(struct avoid *avoid, const struct step_at *stuck, bool by_bpf);

#endif
