/*
 * process/image: is the program that a process runs still the one whose maps were read?
 */
#ifndef STACKER_PROCESS_IMAGE_H
#define STACKER_PROCESS_IMAGE_H

#include "process/procfs.h"

/* One program of a process. */
struct image {
	/* Its auxiliary vector, whose addresses (stack, vDSO, entry) an exec draws anew. */
	uint8_t auxv[512];
	size_t size; /* 0: not readable */
	/* /proc/PID/maps: shows the memory that was the process's when this was opened, and nothing
	 * once nobody has that any more. -1: none. */
	int maps;
};

#define IMAGE_NONE ((struct image){.size = 0, .maps = -1})

/* `with_maps`: they may be asked for. */
void image_open(struct image *image, const struct process *process, bool with_maps);
void image_close(struct image *image);

/* Has there been an exec since? The process is opened anew, by its id: an exec from another thread takes
 * that thread's id away. One that has ended has not changed. */
bool image_changed(const struct image *before, uint32_t pid, struct arena *arena);

#endif
