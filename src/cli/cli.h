/*
 * cli/cli: commands and options as tables.
 *
 * A command is thin: options in, one call into the pipeline, a printer. Commands return the
 * exit status. Only this room prints diagnostics.
 */
#ifndef STACKER_CLI_CLI_H
#define STACKER_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum exit_status {
	EXIT_COMPLETE = 0,
	EXIT_NOTHING = 1, /* nothing could be done */
	EXIT_USAGE = 2,
	/* A thread, a part of a stack or a module was left out; the report says which. */
	EXIT_PARTIAL = 3,
};

#define LIST_MAX 64 /* --debug-dir and --tid may be given this often */

struct text_list {
	const char *at[LIST_MAX + 1]; /* NULL-terminated */
	size_t count;
};

/* Everything any command can be told. */
struct options {
	uint32_t pid;
	struct text_list tids;
	const char *input, *output, *executable, *sysroot;
	struct text_list debug_directories;
	const char *format; /* "text" or "json" */
	const char *method; /* "auto", "bpf" or "ptrace" */
	uint64_t timeout_ms, stack_limit, stack_total, max_frames, max_memory;
	bool no_registers, no_maps, quiet, verbose, no_demangle, no_realtime, rolling,
		never_stop, with_stacks;
	bool any_build_id, debuginfod, help, version;
	uint64_t debuginfod_timeout_s;
	const struct named *named;       /* what is named, opened (cli/named): set by main */
	const struct debug_fetch *fetch; /* with --debuginfod: set by main */
	bool no_cache, clear;
	const struct store *cache; /* where one can be had: set by main; or NULL */
	/* addr2line */
	bool addresses, functions, inlines, demangle, pretty, basenames, limit_asked;
	const char *section; /* addresses are offsets in it; NULL: they are addresses */
	const char *target;  /* of binutils: the format of the file */
	const char *const *arguments; /* what is not an option */
	size_t argument_count;
};

/* Which commands take an option: one bit each. */
enum command_bit {
	FOR_CAPTURE = 1,
	FOR_SYMBOLIZE = 2,
	FOR_ONEPHASE = 4,
	FOR_ADDR2LINE = 8,
	FOR_NONE = 16, /* before or without a command */
	FOR_CACHE = 32,
	FOR_REPORT = FOR_SYMBOLIZE | FOR_ONEPHASE,
	FOR_NAMES = FOR_REPORT | FOR_ADDR2LINE,
	FOR_LIVE = FOR_CAPTURE | FOR_ONEPHASE,
};

/* Any command, and none. */
#define FOR_ALL (~0U)

struct command {
	const char *name;
	unsigned bit;
	const char *usage;   /* after "stacker NAME" */
	const char *summary; /* one line */
	int (*run)(struct arena *arena, const struct options *options);
};

int capture_run(struct arena *arena, const struct options *options);
int symbolize_run(struct arena *arena, const struct options *options);
int onephase_run(struct arena *arena, const struct options *options);
int addr2line_run(struct arena *arena, const struct options *options);
int cache_run(struct arena *arena, const struct options *options);

/* The cache for a command that makes names; NULL: none, with --verbose the reason is said. To
 * be called before the sandbox is entered: its directory is made where it is missing. */
const struct store *cache_for(struct arena *arena, const struct options *options);

/* All commands in the order of --help: `index` counts from 0; NULL: there is no such one. */
const struct command *command_at(size_t index);
/* The command of that name, or NULL. */
const struct command *command_named(const char *name);

/* Reads the arguments of one command (NULL: none yet) by the table. ERR_USAGE with what is
 * wrong. */
bool options_parse(struct options *out, struct arena *arena, const struct command *command,
		   int argc, char **argv, struct err *e);

/* Help for one command, or for all with NULL, on stdout. */
void help_print(const struct command *command);

/* "stacker: TEXT" on stderr; control characters are made harmless. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Names the mapped files that became shorter while they were read: what was made of them may
 * lack something. False: none. */
bool complain_about_cut_files(void);
/* Says the error and returns the exit status that fits its kind. */
int fail(const struct err *e);

/* A line of progress on stderr, NULL wipes it. Only where a person watches and nothing else is on
 * the screen: stderr is a terminal, so is stdout if the report goes there, and no --quiet. */
void progress(const struct options *options, const char *text);

#endif
