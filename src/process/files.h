/*
 * process/files: the modules of a live process and the files behind them, opened before the stop.
 *
 * Order for one module: /proc/PID/map_files/START-END (the mapped file itself, whatever was
 * renamed or deleted; needs a capability); for the program /proc/PID/exe; then /proc/PID/root +
 * path (the target's own view; unless it is the same inode, its build-id has to prove it:
 * snapshot/module_source). A file is looked at with O_PATH and fstat before it is opened:
 * devices and FIFOs are never opened.
 */
#ifndef STACKER_PROCESS_FILES_H
#define STACKER_PROCESS_FILES_H

#include "process/avoid.h"
#include "process/process.h"
#include "process/procfs.h"

/* Fills out->snapshot.modules and maps[].module, out->files and out->sources; reads the vDSO. Every
 * file that has an executable mapping is a module. What `avoid` names is not looked at. */
void files_open(struct captured *out, struct arena *arena, const struct process *process,
		const struct avoid *avoid);

/* For when files_open met the limit of open files, and the stacks are there: closes all and opens
 * those that frames need, the most needed first. */
void files_open_needed(struct captured *out, struct arena *arena, const struct process *process,
		       const struct avoid *avoid);

/* The text that just-in-time compilers write for perf: /tmp/perf-PID.map in the target's root, by
 * its pid in its own pid namespace. Only a regular file of the target's user or of root; empty when
 * there is none, or when it is larger than PERF_MAP_MAX, which
 * out->snapshot.code_names_left_out then says. */
#define PERF_MAP_MAX ((size_t)256 << 20)
void perf_map_read(struct captured *out, struct arena *arena, const struct process *process,
		   const struct process_status *status);

#endif
