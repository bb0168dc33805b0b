/*
 * stacker: dispatch to a command, exit status.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/file.h"
#include "base/mapping.h"
#include "base/signals.h"
#include "base/urgency.h"
#include "base/victim.h"
#include "cli/cli.h"
#include "cli/confine.h"
#include "cli/fetch.h"
#include "cli/named.h"
#include "process/process.h"

static int usage_error(const struct command *command, const struct err *e)
{
	complain("%s", e->text);
	fprintf(stderr, "Try 'stacker %s%s--help'.\n", command ? command->name : "",
		command ? " " : "");
	return EXIT_USAGE;
}

static int version_print(bool verbose)
{
	const char *missing = process_bpf_missing();

	puts("stacker " STACKER_VERSION);
	if (missing)
		printf("capture: ptrace (bpf is not built in, for want of %s)\n", missing);
	else
		puts("capture: bpf, ptrace");
	puts("License: MIT");
	if (verbose)
		confine_print();
	return EXIT_COMPLETE;
}

static bool is_number(const char *word)
{
	size_t digits = strspn(word, "0123456789");

	return digits && word[digits] == '\0';
}

/* Does the word name a process? `-p 12`, `-p12`, `--pid 12`, `--pid=12`, `12`. */
static bool names_process(const char *word)
{
	return is_number(word) || strncmp(word, "-p", 2) == 0 || strcmp(word, "--pid") == 0 ||
	       strncmp(word, "--pid=", 6) == 0;
}

static bool any_names_process(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (names_process(argv[i]))
			return true;
	return false;
}

/* The command word is the first one; `stacker [OPTIONS] PID` is `stacker onephase ...`. */
static const struct command *command_find(int *argc, char ***argv)
{
	const struct command *command = NULL;

	if (*argc == 0)
		return NULL;
	if (is_number((*argv)[0]) || ((*argv)[0][0] == '-' && any_names_process(*argc, *argv)))
		return command_named("onephase"); /* takes the number as its argument */
	command = command_named((*argv)[0]);
	if (command) {
		(*argc)--;
		(*argv)++;
	}
	return command;
}

static int run(struct arena *arena, int argc, char **argv)
{
	const struct command *command = command_find(&argc, &argv);
	struct options options;
	struct named named;
	struct err e = {0};

	if (!options_parse(&options, arena, command, argc, argv, &e))
		return usage_error(command, &e);
	if (options.version)
		return version_print(options.verbose);
	if (options.help) {
		help_print(command);
		return EXIT_COMPLETE;
	}
	if (!command && options.argument_count) {
		err_set(&e, ERR_USAGE, "unknown command '%s'", options.arguments[0]);
		return usage_error(NULL, &e);
	}
	if (!command) {
		err_set(&e, ERR_USAGE, "a command is missing");
		return usage_error(NULL, &e);
	}
	victim_volunteer();
	budget_begin(options.max_memory);
	if (!named_find(&named, arena, &options, &e))
		return fail(&e);
	options.named = &named;
	if (options.debuginfod)
		options.fetch = fetch_start(arena, &options);
	if (command->bit & FOR_NAMES)
		options.cache = cache_for(arena, &options);
	if (command->bit & FOR_LIVE && !options.no_realtime)
		urgency_begin();
	return command->run(arena, &options);
}

int main(int argc, char **argv)
{
	struct arena arena = {0};
	int status;

	standard_files_guard();
	stdout_pipe_guard();
	/* A limit on the size of files is a write error like any other. */
	signal(SIGXFSZ, SIG_IGN);
	mappings_guard();
	status = run(&arena, argc - 1, argv + 1);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		if (status != EXIT_NOTHING) /* else it was said */
			complain("writing stdout failed");
		status = EXIT_NOTHING;
	}
	arena_free(&arena);
	return status;
}
