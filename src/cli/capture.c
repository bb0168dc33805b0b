/*
 * stacker capture: the first phase. Writes the unwound stacks, and tells how to go on.
 */
#include <stdio.h>
#include <string.h>

#include "base/signals.h"
#include "cli/pipeline.h"
#include "snapshot/capture_file.h"

static bool is_printable(const char *word)
{
	for (; *word; word++)
		if ((unsigned char)*word < ' ' || (unsigned char)*word >= 0x7f)
			return false;
	return true;
}

/* Inside single quotes; with `escaped` in printf's own spelling, where bytes that could move the
 * terminal, or say something else there, are octal. */
static void quoted_print(FILE *out, const char *word, bool escaped)
{
	fputc('\'', out);
	for (; *word; word++) {
		unsigned char byte = (unsigned char)*word;

		if (byte == '\'')
			fputs("'\\''", out);
		else if (escaped && (byte < ' ' || byte >= 0x7f))
			fprintf(out, "\\%03o", byte);
		else if (escaped && (byte == '\\' || byte == '%'))
			fprintf(out, "%c%c", byte, byte);
		else
			fputc(byte, out);
	}
	fputc('\'', out);
}

/* A word that every POSIX shell takes back unchanged. */
static void word_print(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=./:,@%";

	if (*word && word[strspn(word, plain)] == '\0') {
		fputs(word, out);
	} else if (is_printable(word)) {
		quoted_print(out, word, false);
	} else {
		fputs("\"$(printf ", out);
		quoted_print(out, word, true);
		fputs(")\"", out);
	}
}

static const struct snapshot_module *program_of(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->module_count; i++)
		if (snapshot->modules[i].is_executable)
			return &snapshot->modules[i];
	return NULL;
}

/* A command that works here. What only the process has left is named by way of it. */
static void next_step_print(FILE *out, const struct snapshot *snapshot, bool has_root,
			    const char *path)
{
	const struct snapshot_module *program = program_of(snapshot);
	bool deleted = program && program->deleted;

	if (deleted)
		fprintf(out, "The program's file was deleted or replaced (build-id %s).\n",
			program->build_id ? program->build_id : "not known");
	fprintf(out, "%s with:\n  stacker symbolize --input ",
		deleted || has_root ? "While the process lives, symbolize it" : "Symbolize it");
	word_print(out, path);
	if (deleted) {
		fprintf(out, " --executable /proc/%u/exe", snapshot->pid);
	} else if (program && !has_root) {
		fputs(" --executable ", out);
		word_print(out, program->path);
	}
	if (has_root)
		fprintf(out, " --sysroot /proc/%u/root", snapshot->pid);
	fputc('\n', out);
}

int capture_run(struct arena *arena, const struct options *options)
{
	struct capture_options writing = {.with_stacks = options->with_stacks};
	struct report_options printing = {.capture_only = true};
	struct snapshot snapshot;
	struct modules modules;
	struct output out;
	struct err e = {0};
	FILE *talk;

	if (!options->output) {
		err_set(&e, ERR_USAGE, "where to? --output FILE (- is stdout)");
		return fail(&e);
	}
	/* Before the target is touched: a place that cannot be written costs it nothing. */
	if (!output_open(&out, arena, options->output, &e))
		return fail(&e);
	if (!pipeline_capture(arena, options, &out, &snapshot, &modules, &e) ||
	    !capture_write(out.stream, &snapshot, &writing, &e)) {
		output_abandon(&out);
		return fail(&e);
	}
	talk = output_is_stdout(&out) ? stderr : stdout;
	if (!output_commit(&out, &e))
		return fail(&e);
	stdout_pipe_may_end_us();
	if (!options->quiet) {
		report_print_head(talk, &snapshot, &printing);
		if (talk == stdout)
			next_step_print(talk, &snapshot, modules.root != NULL, options->output);
	}
	if (snapshot.code_names_left_out)
		complain("code made at run time has no names: %s",
			 snapshot.code_names_left_out);
	return complain_about_cut_files() || snapshot_is_partial(&snapshot) ? EXIT_PARTIAL
									    : EXIT_COMPLETE;
}
