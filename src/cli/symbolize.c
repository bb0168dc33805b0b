/*
 * stacker symbolize: a capture file, perhaps of another machine and architecture, becomes a
 * report.
 */
#include <string.h>
#include <unistd.h>

#include "cli/named.h"
#include "cli/pipeline.h"
#include "snapshot/capture_file.h"

/* Raw stacks let this machine unwind again, with whatever better information it has. */
static void unwind_again(struct arena *arena, const struct options *options,
			 struct snapshot *snapshot, struct modules *modules)
{
	struct unwind_options unwinding = pipeline_unwinding(arena, options, modules);
	struct unwinder *unwinder = unwinder_new(arena, snapshot, modules, &unwinding);

	for (size_t i = 0; i < snapshot->thread_count; i++) {
		struct thread *thread = &snapshot->threads[i];
		struct stack recorded = thread->stack;

		if (!thread->has_registers || !thread->piece_count)
			continue;
		unwind_thread(unwinder, thread);
		/* Files missing here may have been there at the capture. */
		if (thread->stack.count + thread->stack.elided <
		    recorded.count + recorded.elided)
			thread->stack = recorded;
	}
}

/* "-" is standard input, a pipe from another machine perhaps. */
static bool input_open(struct named_file *out, struct arena *arena, const char *name,
		       struct err *e)
{
	if (strcmp(name, "-") == 0)
		return named_file_read(out, arena, STDIN_FILENO, "standard input", e);
	return named_file_open(out, arena, name, e);
}

int symbolize_run(struct arena *arena, const struct options *options)
{
	struct module_search search = {
		.executable = options->executable ? &options->named->executable : NULL,
		.sysroot = options->sysroot,
		.sysroot_dir = options->named->sysroot,
		.any_build_id = options->any_build_id,
	};
	struct report_options printing = report_options_of(options);
	struct snapshot snapshot;
	struct modules modules;
	struct output out;
	struct named_file input;
	struct err e = {0};

	if (!options->input) {
		err_set(&e, ERR_USAGE, "which capture? --input FILE");
		return fail(&e);
	}
	if (options->argument_count) {
		err_set(&e, ERR_USAGE, "what is '%s'? see stacker symbolize --help",
			options->arguments[0]);
		return fail(&e);
	}
	progress(options, "reading the capture");
	if (!input_open(&input, arena, options->input, &e) ||
	    !pipeline_output(&out, arena, options, &e)) {
		progress(options, NULL);
		return fail(&e);
	}
	pipeline_restrict(&out, options, -1);
	if (!capture_read(arena, input.data, input.name, &snapshot, &e) ||
	    !modules_open_offline(&modules, arena, &snapshot, &search, &e)) {
		progress(options, NULL);
		output_abandon(&out);
		return fail(&e);
	}
	unwind_again(arena, options, &snapshot, &modules);
	printing.from_capture = true;
	printing.capture_name = input.name;
	return pipeline_print(&out, arena, options, &snapshot, &modules, &printing);
}
