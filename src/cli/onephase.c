/*
 * stacker onephase: capture, unwind, symbolize and print without a file in between.
 */
#include "cli/pipeline.h"

int onephase_run(struct arena *arena, const struct options *options)
{
	struct report_options printing = report_options_of(options);
	struct snapshot snapshot;
	struct modules modules;
	struct output out;
	struct err e = {0};

	if (!pipeline_output(&out, arena, options, &e))
		return fail(&e);
	if (!pipeline_capture(arena, options, &out, &snapshot, &modules, &e)) {
		output_abandon(&out);
		return fail(&e);
	}
	return pipeline_print(&out, arena, options, &snapshot, &modules, &printing);
}
