/*
 * The table of commands, and how the command line speaks to the person before it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mapping.h"
#include "base/text.h"
#include "cli/cli.h"

static const struct command commands[] = {
	{"capture", FOR_CAPTURE, "--pid PID --output FILE",
	 "Captures registers and stacks of all threads into a JSON file.", capture_run},
	{"symbolize", FOR_SYMBOLIZE, "--input FILE [--executable EXE]",
	 "Turns a capture into functions, files and lines.", symbolize_run},
	{"onephase", FOR_ONEPHASE, "--pid PID", "Captures and symbolizes in one go.",
	 onephase_run},
	{"addr2line", FOR_ADDR2LINE, "-e FILE [-afiCps] [ADDR...]",
	 "Turns addresses of a file into functions and lines.", addr2line_run},
	{"cache", FOR_CACHE, "[--clear]",
	 "Tells where answers of earlier runs are kept, and how many.", cache_run},
};

const struct command *command_at(size_t index)
{
	return index < sizeof commands / sizeof commands[0] ? &commands[index] : NULL;
}

const struct command *command_named(const char *name)
{
	const struct command *command;

	for (size_t i = 0; (command = command_at(i)); i++)
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}

void complain(const char *fmt, ...)
{
	char text[1024], harmless[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	/* Names in the text may come from a hostile process or file. */
	fprintf(stderr, "stacker: %s\n", text_for_message(harmless, sizeof harmless, text));
}

bool complain_about_cut_files(void)
{
	size_t at = 0;
	const char *name;
	bool any = false;

	for (; (name = mapping_next_cut(&at)); any = true)
		complain("%s: became shorter, or unreadable, while it was read", name);
	return any;
}

int fail(const struct err *e)
{
	complain("%s", e->text);
	if (e->kind == ERR_USAGE)
		return EXIT_USAGE;
	return EXIT_NOTHING;
}

/* A pager that reads the report has the same terminal. */
static bool is_watched(const struct options *options)
{
	bool to_file = options->output && strcmp(options->output, "-") != 0;

	return isatty(STDERR_FILENO) && (to_file || isatty(STDOUT_FILENO));
}

void progress(const struct options *options, const char *text)
{
	char harmless[61];

	if (options->quiet || !is_watched(options))
		return;
	if (text)
		fprintf(stderr, "\r\033[K%s ...",
			text_for_message(harmless, sizeof harmless, text));
	else
		fputs("\r\033[K", stderr);
	fflush(stderr);
}
