/*
 * process/maps: the text of /proc/PID/maps as data (proc_pid_maps(5)).
 */
#ifndef STACKER_PROCESS_MAPS_H
#define STACKER_PROCESS_MAPS_H

#include "snapshot/snapshot.h"

/* Of a text that is read. */
#define MAPS_TEXT_MAX ((size_t)256 << 20)

/* Parses the whole text. Lines that are not understood are skipped, so are lines that are not in
 * ascending order (the kernel writes them so; a changing process can repeat one). Paths: the
 * kernel's "\012" for a newline is undone; a final " (deleted)" is split off. Both may be part of a
 * name all the same: the caller checks by inode. */
void maps_parse(struct arena *arena, struct bytes text, struct map **maps, size_t *count);

/* The same executable mappings, in both? */
bool maps_have_same_code(const struct map *a, size_t a_count, const struct map *b,
			 size_t b_count);

#endif
