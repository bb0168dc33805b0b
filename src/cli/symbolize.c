/*
 * stacker symbolize: a capture file, perhaps of another machine and architecture, becomes a
 * report.
 */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/pipeline.h"
#include "snapshot/capture_file.h"

/* A pipe may never end. Captures of 10,000 threads with all their stacks have some hundred
 * megabytes. */
#define PIPED_MAX ((size_t)1 << 30)

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
		if (thread->stack.count + thread->stack.folded <
		    recorded.count + recorded.folded)
			thread->stack = recorded;
	}
}

/* "-" is standard input, a pipe from another machine perhaps. *name becomes what messages call
 * it. */
static bool capture_text(struct arena *arena, const char **name, struct bytes *text,
			 struct err *e)
{
	if (strcmp(*name, "-") != 0)
		return file_map(*name, text, e);
	*name = "standard input";
	return file_read_fd(arena, STDIN_FILENO, *name, PIPED_MAX, text, e);
}

int symbolize_run(struct arena *arena, const struct options *options)
{
	struct module_search search = {
		.executable = options->executable,
		.sysroot = options->sysroot,
		.any_build_id = options->any_build_id,
	};
	struct report_options printing = report_options_of(options);
	struct snapshot snapshot;
	struct modules modules;
	struct output out;
	struct bytes text;
	struct err e = {0};
	const char *name = options->input;

	if (!name) {
		err_set(&e, ERR_USAGE, "which capture? --input FILE");
		return fail(&e);
	}
	if (options->argument_count) {
		err_set(&e, ERR_USAGE, "what is '%s'? see stacker symbolize --help",
			options->arguments[0]);
		return fail(&e);
	}
	progress(options, "reading the capture");
	if (!capture_text(arena, &name, &text, &e) ||
	    !pipeline_output(&out, arena, options, &e)) {
		progress(options, NULL);
		return fail(&e);
	}
	pipeline_restrict(&out, options, -1);
	if (!capture_read(arena, text, name, &snapshot, &e) ||
	    !modules_open_offline(&modules, arena, &snapshot, &search, &e)) {
		progress(options, NULL);
		output_abandon(&out);
		return fail(&e);
	}
	unwind_again(arena, options, &snapshot, &modules);
	printing.from_capture = true;
	printing.capture_name = name;
	return pipeline_print(&out, arena, options, &snapshot, &modules, &printing);
}
