/*
 * The options of all commands as one table, and the small machine that reads a command line by
 * it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum option_kind { FLAG, TEXT, LIST, NUMBER, STYLE };

struct option_row {
	const char *name; /* long, without the dashes */
	char letter;      /* 0: none */
	enum option_kind kind;
	const char *value; /* how help calls its value; NULL for flags */
	size_t field;      /* offset in struct options */
	unsigned commands;
	const char *help; /* NULL: not shown, another spelling of an option that is */
};

#define FIELD(name) offsetof(struct options, name)

/* clang-format off */
static const struct option_row rows[] = {
	{"pid", 'p', NUMBER, "PID", FIELD(pid), FOR_LIVE, "the process"},
	{"tid", 't', LIST, "TID", FIELD(tids), FOR_LIVE, "only this thread (may be repeated)"},
	{"input", 'i', TEXT, "FILE", FIELD(input), FOR_SYMBOLIZE, "the capture file (- is stdin)"},
	{"output", 'o', TEXT, "FILE", FIELD(output), FOR_CAPTURE | FOR_REPORT, "write here (- is stdout)"},
	{"executable", 'e', TEXT, "EXE", FIELD(executable), FOR_SYMBOLIZE, "the program that was captured"},
	{"exe", 'e', TEXT, "FILE", FIELD(executable), FOR_ADDR2LINE, "the file the addresses belong to"},
	{"format", 0, TEXT, "text|json", FIELD(format), FOR_REPORT, "form of the report (default text)"},
	{"debug-dir", 0, LIST, "DIR", FIELD(debug_directories), FOR_CAPTURE | FOR_REPORT | FOR_ADDR2LINE, "look for debug files here first (may be repeated)"},
	{"debuginfod", 0, FLAG, NULL, FIELD(debuginfod), FOR_REPORT | FOR_ADDR2LINE, "fetch debug files that are missing (runs debuginfod-find)"},
	{"debuginfod-timeout", 0, NUMBER, "S", FIELD(debuginfod_timeout_s), FOR_REPORT | FOR_ADDR2LINE, "for all of it together (default 60)"},
	{"no-cache", 0, FLAG, NULL, FIELD(no_cache), FOR_NAMES, "neither use nor keep answers of other runs"},
	{"clear", 0, FLAG, NULL, FIELD(clear), FOR_CACHE, "remove all of it"},
	{"sysroot", 0, TEXT, "DIR", FIELD(sysroot), FOR_REPORT, "put before every recorded path"},
	{"any-build-id", 0, FLAG, NULL, FIELD(any_build_id), FOR_SYMBOLIZE, "use files even when their build-id differs"},
	{"timeout", 0, NUMBER, "MS", FIELD(timeout_ms), FOR_LIVE, "give up on what does not answer (default 1000)"},
	{"stack-limit", 0, NUMBER, "BYTES", FIELD(stack_limit), FOR_LIVE, "of one thread's stack to copy (default 16777216)"},
	{"stack-total", 0, NUMBER, "BYTES", FIELD(stack_total), FOR_LIVE, "of all stacks together (default 268435456)"},
	{"max-frames", 0, NUMBER, "N", FIELD(max_frames), FOR_LIVE, "end a stack after N frames, not counting inlined ones (default: no limit)"},
	{"max-memory", 0, NUMBER, "BYTES", FIELD(max_memory), FOR_CAPTURE | FOR_REPORT | FOR_ADDR2LINE, "hold at most BYTES of what files decide (default 402653184)"},
	{"method", 0, TEXT, "auto|bpf|ptrace", FIELD(method), FOR_LIVE, "how threads are read (default auto: bpf where it can be had)"},
	{"never-stop", 0, FLAG, NULL, FIELD(never_stop), FOR_LIVE, "leave out threads rather than stop them"},
	{"no-realtime", 0, FLAG, NULL, FIELD(no_realtime), FOR_LIVE, "keep normal priority"},
	{"rolling", 0, FLAG, NULL, FIELD(rolling), FOR_LIVE, "hold one thread after the other, no common instant"},
	{"with-stacks", 0, FLAG, NULL, FIELD(with_stacks), FOR_CAPTURE, "write the stacks' bytes too"},
	{"no-registers", 0, FLAG, NULL, FIELD(no_registers), FOR_REPORT, "leave registers out of the report"},
	{"no-maps", 0, FLAG, NULL, FIELD(no_maps), FOR_REPORT, "leave the memory maps out of the report"},
	{"no-demangle", 0, FLAG, NULL, FIELD(no_demangle), FOR_REPORT, "names as the linker knows them"},
	{"quiet", 'q', FLAG, NULL, FIELD(quiet), FOR_CAPTURE | FOR_REPORT, "no progress and no hints"},
	{"verbose", 'v', FLAG, NULL, FIELD(verbose), FOR_REPORT | FOR_NONE, "how frames were found, and what is missing"},
	{"addresses", 'a', FLAG, NULL, FIELD(addresses), FOR_ADDR2LINE, "show addresses"},
	{"functions", 'f', FLAG, NULL, FIELD(functions), FOR_ADDR2LINE, "show function names"},
	{"inlines", 'i', FLAG, NULL, FIELD(inlines), FOR_ADDR2LINE, "show inlined callers too"},
	{"demangle", 'C', STYLE, NULL, FIELD(demangle), FOR_ADDR2LINE, "demangle function names (=STYLE: auto, gnu-v3, rust, dlang, none)"},
	{"pretty-print", 'p', FLAG, NULL, FIELD(pretty), FOR_ADDR2LINE, "one line for each location"},
	{"basenames", 's', FLAG, NULL, FIELD(basenames), FOR_ADDR2LINE, "file names without directories"},
	{"section", 'j', TEXT, "NAME", FIELD(section), FOR_ADDR2LINE, "addresses are offsets in this section"},
	{"target", 'b', TEXT, "FORMAT", FIELD(target), FOR_ADDR2LINE, "for binutils' sake: only elf64-* and default are known"},
	{"recurse-limit", 'R', FLAG, NULL, FIELD(limit_asked), FOR_ADDR2LINE, "for binutils' sake: demangling always has a limit"},
	{"no-recurse-limit", 'r', FLAG, NULL, FIELD(limit_asked), FOR_ADDR2LINE, NULL},
	{"help", 'h', FLAG, NULL, FIELD(help), FOR_ALL, "this text"},
	{"version", 'V', FLAG, NULL, FIELD(version), FOR_ALL, "version and what is built in"},
	{"help", 'H', FLAG, NULL, FIELD(help), FOR_ADDR2LINE, NULL},
	{"version", 'v', FLAG, NULL, FIELD(version), FOR_ADDR2LINE, NULL},
};
/* clang-format on */

#define ROW_COUNT (sizeof rows / sizeof rows[0])

static const struct option_row *row_by_letter(char letter, unsigned command)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if ((rows[i].commands & command) && rows[i].letter == letter)
			return &rows[i];
	return NULL;
}

/* The exact name, or the only one that begins so; `*other` is a second one that does. */
static const struct option_row *row_by_name(const char *name, size_t len, unsigned command,
					    const struct option_row **other)
{
	const struct option_row *found = NULL;

	*other = NULL;
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (!(rows[i].commands & command) || strncmp(rows[i].name, name, len) != 0)
			continue;
		if (rows[i].name[len] == '\0') {
			*other = NULL;
			return &rows[i];
		}
		*other = found;
		found = found ? found : &rows[i];
		if (*other)
			*other = &rows[i];
	}
	return found;
}

static bool number_store(struct options *options, const struct option_row *row,
			 const char *value, struct err *e)
{
	char *end, *field = (char *)options + row->field;
	bool narrow = row->field == FIELD(pid);
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (errno || *end || *value < '0' || *value > '9' || number == 0 ||
	    (narrow && number > INT32_MAX))
		return err_set(e, ERR_USAGE, "--%s wants a positive number, not '%s'",
			       row->name, value);
	/* Only one process is looked at: nobody shall take the other for it. */
	if (narrow && options->pid && options->pid != number)
		return err_set(e, ERR_USAGE, "--%s is given twice: %u and %llu", row->name,
			       options->pid, number);
	if (narrow)
		options->pid = (uint32_t)number;
	else
		*(uint64_t *)(void *)field = number;
	return true;
}

/* How names are mangled shows in themselves: the styles that are known mean the same. */
static bool style_store(bool *demangle, const struct option_row *row, const char *value,
			struct err *e)
{
	static const char *const known[] = {"auto", "gnu-v3", "rust", "dlang"};

	*demangle = true;
	for (size_t i = 0; value && i < sizeof known / sizeof known[0]; i++)
		if (strcmp(value, known[i]) == 0)
			return true;
	if (value && strcmp(value, "none") != 0)
		return err_set(e, ERR_USAGE,
			       "--%s=%s is not known: use auto, gnu-v3, rust, dlang or none",
			       row->name, value);
	*demangle = !value;
	return true;
}

static bool takes_word(const struct option_row *row)
{
	return row->kind != FLAG && row->kind != STYLE;
}

static bool value_store(struct options *options, const struct option_row *row,
			const char *value, struct err *e)
{
	char *field = (char *)options + row->field;
	struct text_list *list = (struct text_list *)(void *)field;

	switch (row->kind) {
	case FLAG:
		*(bool *)(void *)field = true;
		return true;
	case TEXT:
		*(const char **)(void *)field = value;
		return true;
	case NUMBER:
		return number_store(options, row, value, e);
	case STYLE:
		return style_store((bool *)(void *)field, row, value, e);
	case LIST:
		if (list->count == LIST_MAX)
			return err_set(e, ERR_USAGE, "--%s is given more than %d times",
				       row->name, LIST_MAX);
		list->at[list->count++] = value;
		return true;
	}
	return false;
}

/* What is still to be read. */
struct words {
	char **at;
	int left;
};

static const char *word_next(struct words *words)
{
	if (words->left <= 0)
		return NULL;
	words->left--;
	return *words->at++;
}

static bool long_read(struct options *options, const char *word, unsigned command,
		      struct words *words, struct err *e)
{
	size_t len = strcspn(word, "=");
	const struct option_row *other, *row = row_by_name(word, len, command, &other);
	const char *value = word[len] == '=' ? word + len + 1 : NULL;

	if (!row)
		return err_set(e, ERR_USAGE, "unknown option '--%.*s'", (int)len, word);
	if (other)
		return err_set(e, ERR_USAGE, "'--%.*s' may be --%s or --%s", (int)len, word,
			       row->name, other->name);
	if (row->kind == FLAG && value)
		return err_set(e, ERR_USAGE, "--%s takes no value", row->name);
	if (takes_word(row) && !value)
		value = word_next(words);
	if (takes_word(row) && !value)
		return err_set(e, ERR_USAGE, "--%s wants a value: %s", row->name, row->value);
	return value_store(options, row, value, e);
}

/* Letters may be joined (-afi); the value of one that takes one may follow at once (-p123). */
static bool letters_read(struct options *options, const char *word, unsigned command,
			 struct words *words, struct err *e)
{
	for (; *word; word++) {
		const struct option_row *row = row_by_letter(*word, command);
		const char *value = NULL;

		if (!row)
			return err_set(e, ERR_USAGE, "unknown option '-%c'", *word);
		if (takes_word(row)) {
			value = word[1] ? word + 1 : word_next(words);
			if (!value)
				return err_set(e, ERR_USAGE, "-%c wants a value: %s", *word,
					       row->value);
		}
		if (!value_store(options, row, value, e))
			return false;
		if (takes_word(row))
			return true;
	}
	return true;
}

bool options_parse(struct options *out, struct arena *arena, const struct command *command,
		   int argc, char **argv, struct err *e)
{
	unsigned bit = command ? command->bit : FOR_NONE;
	struct words words = {argv, argc};
	VEC(const char *) arguments = {0};
	bool only_arguments = false;
	const char *word;

	*out = (struct options){.format = "text", .method = "auto"};
	while ((word = word_next(&words))) {
		if (only_arguments || word[0] != '-' || word[1] == '\0') {
			*vec_push(arena, &arguments) = word;
		} else if (strcmp(word, "--") == 0) {
			only_arguments = true;
		} else if (word[1] == '-') {
			if (!long_read(out, word + 2, bit, &words, e))
				return false;
		} else if (!letters_read(out, word + 1, bit, &words, e)) {
			return false;
		}
	}
	out->arguments = arguments.at;
	out->argument_count = arguments.count;
	if (strcmp(out->format, "text") != 0 && strcmp(out->format, "json") != 0)
		return err_set(e, ERR_USAGE, "--format is text or json, not '%s'", out->format);
	if (out->debuginfod_timeout_s && !out->debuginfod)
		return err_set(e, ERR_USAGE, "--debuginfod-timeout: only with --debuginfod");
	return true;
}

static int row_width(const struct option_row *row)
{
	return (int)(strlen(row->name) + (row->value ? strlen(row->value) + 1 : 0));
}

static void row_print(const struct option_row *row, int width)
{
	printf("  %c%c%c --%s%s%s%*s  %s\n", row->letter ? '-' : ' ',
	       row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
	       row->value ? " " : "", row->value ? row->value : "", width - row_width(row), "",
	       row->help);
}

static bool is_shown(const struct option_row *row, unsigned command)
{
	return row->help && (row->commands & command);
}

static void rows_print(unsigned command)
{
	int width = 0;

	for (size_t i = 0; i < ROW_COUNT; i++)
		if (is_shown(&rows[i], command) && row_width(&rows[i]) > width)
			width = row_width(&rows[i]);
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (is_shown(&rows[i], command))
			row_print(&rows[i], width);
}

void help_print(const struct command *command)
{
	if (command) {
		printf("Usage: stacker %s %s\n%s\n\nOptions:\n", command->name, command->usage,
		       command->summary);
		rows_print(command->bit);
		return;
	}
	puts("Usage: stacker COMMAND [OPTIONS]\n"
	     "       stacker [OPTIONS] PID\n"
	     "Shows what every thread of a Linux process is doing, and leaves it as it was.\n\n"
	     "Commands:");
	for (size_t i = 0; (command = command_at(i)); i++)
		printf("  %-10s %s\n", command->name, command->summary);
	puts("\n'stacker COMMAND --help' tells the options of a command.\n"
	     "Exit status: 0 complete, 1 nothing could be done, 2 usage, 3 partial.");
}
