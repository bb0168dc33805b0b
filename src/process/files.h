/*
 * process/files: the modules of a live process and the files behind them, opened before the stop.
 *
 * Order for one module: /proc/PID/map_files/START-END (the mapped file itself, whatever was renamed
 * or deleted; needs a capability), /proc/PID/root + path (the target's own view; must be the same
 * inode or have the build-id that is in memory), /proc/PID/exe for the program. A file is looked at
 * with O_PATH and fstat before it is opened: devices and FIFOs are never opened.
 */
#ifndef STACKER_PROCESS_FILES_H
#define STACKER_PROCESS_FILES_H

#include "process/process.h"
#include "process/procfs.h"

/* Fills out->snapshot.modules and maps[].module, out->files and out->whys; reads the vDSO. Every
 * file that has an executable mapping is a module. */
void files_open(struct captured *out, struct arena *arena, const struct process *process);

#endif
