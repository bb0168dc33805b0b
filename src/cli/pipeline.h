/*
 * cli/pipeline: the stages put together. Commands differ only in where the snapshot comes from
 * and which half of the pipeline they run.
 */
#ifndef STACKER_CLI_PIPELINE_H
#define STACKER_CLI_PIPELINE_H

#include "base/output.h"
#include "cli/cli.h"
#include "module/module.h"
#include "output/report.h"
#include "process/process.h"
#include "symbol/symbol.h"
#include "unwind/unwind.h"

/* How to walk stacks: with the separate debug files that the options tell where to find. */
struct unwind_options pipeline_unwinding(struct arena *arena, const struct options *options,
					 const struct modules *modules);

/* Live process -> snapshot with unwound stacks, and its modules. The pid comes from --pid or
 * the only argument. Once the process is let go, nothing is possible any more but to read files
 * and to write `out` (pipeline_restrict). The caller closes nothing. */
bool pipeline_capture(struct arena *arena, const struct options *options,
		      const struct output *out, struct snapshot *snapshot,
		      struct modules *modules, struct err *e);

/* Stacks -> names. Every distinct address is looked up once. Who looked them up is returned,
 * for symbolizer_save. */
struct symbolizer *pipeline_report(struct arena *arena, const struct options *options,
				   const struct snapshot *snapshot, struct modules *modules,
				   struct report *report);

/* Were threads left out, or stacks cut? After unwinding. */
bool snapshot_is_partial(const struct snapshot *snapshot);

/* The pid of --pid or of the only argument; ERR_USAGE when there is none or both. */
bool pid_option(const struct options *options, uint32_t *pid, struct err *e);

/* What the printers are to show. */
struct report_options report_options_of(const struct options *options);

/* Opens --output (default stdout): before a process is touched, so that a place that cannot be
 * written costs it nothing. */
bool pipeline_output(struct output *out, struct arena *arena, const struct options *options,
		     struct err *e);

/* From here on nothing but reading files, writing this output and the cache (cli/confine; `root`
 * as there), which may also end us when it is a pipe that was closed. */
void pipeline_restrict(const struct output *out, const struct options *options, int root);

/* Prints the report in the wanted format and commits the output. Returns the exit status. */
int pipeline_print(struct output *out, struct arena *arena, const struct options *options,
		   const struct snapshot *snapshot, struct modules *modules,
		   const struct report_options *printing);

#endif
