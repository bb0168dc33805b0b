/*
 * stacker addr2line: what binutils' addr2line prints, byte for byte, for the same options.
 *
 * Addresses from stdin are answered as they come, so that a program can ask line by line, but
 * what can be read without waiting is answered as one batch: unit by unit instead of line by
 * line.
 *
 * One difference is on purpose: binutils adds " (discriminator N)" to some lines, which is
 * nothing that a reader of file and line can use; it is left out.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/sink.h"
#include "cli/cli.h"
#include "cli/confine.h"
#include "cli/named.h"
#include "elf/symbols.h"
#include "symbol/symbol.h"

/* Of text in one batch: some ten thousand addresses. */
#define BATCH_MAX ((size_t)256 << 10)

/* One file and how it is asked. */
struct question {
	const struct options *options;
	struct module module;
	struct symbolizer *symbolizer;
	bool is_watched;      /* stdout is a terminal: names are made harmless */
	uint64_t begin, size; /* --section: what offsets count from; else 0 and the largest */
};

/* ---- Printing ---- */

static const char *file_shown(const struct options *options, const char *file)
{
	const char *slash = options->basenames ? strrchr(file, '/') : NULL;

	return slash ? slash + 1 : file;
}

static void print_name(struct sink *out, const struct question *q, const char *name)
{
	if (q->is_watched)
		sink_foreign(out, name);
	else
		sink_text(out, name);
}

static void print_level(struct sink *out, const struct question *q,
			const struct symbol_frame *frame)
{
	const struct options *options = q->options;

	if (options->functions) {
		print_name(out, q,
			   frame->function && *frame->function ? frame->function : "??");
		sink_text(out, options->pretty ? " at " : "\n");
	}
	print_name(out, q, frame->file ? file_shown(options, frame->file) : "??");
	sink_char(out, ':');
	if (frame->line)
		sink_decimal(out, frame->line);
	else
		sink_char(out, '?');
	sink_char(out, '\n');
}

static void print_unknown(struct sink *out, const struct options *options)
{
	if (options->functions)
		sink_text(out, options->pretty ? "?? " : "??\n");
	sink_text(out, "??:0\n");
}

static void print_answer(struct sink *out, const struct question *q,
			 const struct symbol_answer *answer)
{
	const struct options *options = q->options;
	size_t levels = options->inlines ? answer->frame_count : 1;

	if (options->addresses) {
		sink_text(out, "0x");
		sink_hex(out, answer->ea - q->begin, 16);
		sink_text(out, options->pretty ? ": " : "\n");
	}
	if (answer->frame_count == 0 || answer->ea - q->begin >= q->size) {
		print_unknown(out, options);
		return;
	}
	for (size_t i = 0; i < levels; i++) {
		if (i && options->pretty)
			sink_text(out, " (inlined by) ");
		print_level(out, q, &answer->frames[i]);
	}
}

static void answer_all(struct question *q, struct symbol_answer *answers, size_t count)
{
	struct sink out;

	sink_init(&out, stdout);
	symbolize(q->symbolizer, &q->module, answers, count);
	for (size_t i = 0; i < count; i++)
		print_answer(&out, q, &answers[i]);
	sink_flush(&out);
	fflush(stdout);
}

/* ---- Asking ---- */

/* The first symbol of this name in the table, 0 when there is none. */
static uint64_t symbol_address(struct elf *elf, enum elf_symbols_which which, const char *name,
			       size_t len)
{
	struct elf_symbols symbols = elf_symbols(elf, which);
	struct elf_symbol symbol;

	while (elf_symbols_next(&symbols, &symbol))
		if (symbol.section != SHN_UNDEF && strncmp(symbol.name, name, len) == 0 &&
		    (symbol.name[len] == '\0' || symbol.name[len] == '@'))
			return symbol.ea;
	return 0;
}

/* "name" or "name+offset"; an offset alone is an address. */
static uint64_t symbolic_address(struct elf *elf, const char *text)
{
	size_t len = strcspn(text, "+ \t\r\n"), plus = len + strspn(text + len, " \t");
	uint64_t offset = text[plus] == '+' ? strtoull(text + plus + 1, NULL, 0) : 0;
	uint64_t at = len ? symbol_address(elf, ELF_SYMTAB, text, len) : 0;

	if (len && !at)
		at = symbol_address(elf, ELF_DYNSYM, text, len);
	return at || !len ? at + offset : 0;
}

/* As binutils (since 2.38) reads it: what begins with a digit, or with a letter from A to F and
 * has no '+', is a number in base 16, with or without 0x, and ends at the first other
 * character; anything else is a symbol. What is neither is 0. */
static uint64_t address_of(const struct question *q, const char *text)
{
	text += strspn(text, " \t\v\f\r\n");
	if (isdigit((unsigned char)*text) || !*text ||
	    (isxdigit((unsigned char)*text) && !strchr(text, '+')))
		return strtoull(text, NULL, 16) + q->begin;
	return symbolic_address(q->module.elf, text);
}

/* What is asked for and cannot be had. */
static bool options_check(const struct options *options, struct err *e)
{
	const char *target = options->target;

	for (size_t i = 0; i < options->argument_count; i++)
		if (options->arguments[i][0] == '@')
			return err_set(e, ERR_USAGE,
				       "%s: no options are read from files; addresses may come "
				       "from standard input",
				       options->arguments[i]);
	if (target && strcmp(target, "default") != 0 && strncmp(target, "elf64-", 6) != 0)
		return err_set(e, ERR_USAGE, "--target=%s: only 64-bit ELF files are read",
			       target);
	return true;
}

/* Object files and kernel modules: without their relocations every unit seems to begin at 0. */
static bool relocations_check(const struct elf *elf, struct err *e)
{
	for (size_t i = 0; elf->type == ET_REL && i < elf->section_count; i++)
		if (elf->sections[i].type == SHT_RELA &&
		    strstr(elf->sections[i].name, ".debug_"))
			return err_set(e, ERR_UNSUPPORTED,
				       "%s: not linked, and relocations of debug information "
				       "are not applied: use the linked file",
				       elf->name);
	return true;
}

static bool section_find(struct question *q, struct err *e)
{
	const char *name = q->options->section;
	const struct elf *elf = q->module.elf;
	const struct elf_section *section = name ? elf_section(elf, name) : NULL;

	q->size = UINT64_MAX;
	if (!name)
		return true;
	if (!section)
		return err_set(e, ERR_NOT_FOUND, "%s: has no section %s", elf->name, name);
	q->begin = section->ea;
	q->size = section->size;
	return true;
}

static void answer_arguments(struct question *q, const struct options *options)
{
	struct arena scratch = {0};
	struct symbol_answer *answers =
		arena_array(&scratch, struct symbol_answer, options->argument_count);

	for (size_t i = 0; i < options->argument_count; i++)
		answers[i].ea = address_of(q, options->arguments[i]);
	answer_all(q, answers, options->argument_count);
	arena_free(&scratch);
}

/* Text that was read and not answered yet. */
struct input {
	char text[BATCH_MAX + 1];
	size_t len;
	bool ended;
};

static bool more_is_ready(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&in, 1, 0) == 1;
}

/* Reads until a line is complete, then as much as is there. */
static bool input_fill(struct input *in, struct err *e)
{
	while (!in->ended && in->len < BATCH_MAX &&
	       (!memchr(in->text, '\n', in->len) || more_is_ready())) {
		ssize_t got = read(STDIN_FILENO, in->text + in->len, BATCH_MAX - in->len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(e, ERR_SYSTEM, "reading addresses: %s", strerror(errno));
		in->len += (size_t)got;
		in->ended = got == 0;
	}
	return true;
}

/* The end of the last complete line; at the end of the input, or where one line fills the whole
 * batch, the end of the text. */
static size_t complete_length(const struct input *in)
{
	const char *last = memrchr(in->text, '\n', in->len);

	if (in->ended || !last)
		return in->len;
	return (size_t)(last + 1 - in->text);
}

static void answer_lines(struct question *q, char *text, size_t len)
{
	struct arena scratch = {0};
	VEC(struct symbol_answer) answers = {0};
	char *end = text + len;

	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *stop = newline ? newline : end;

		*stop = '\0';
		*vec_push(&scratch, &answers) =
			(struct symbol_answer){.ea = address_of(q, text)};
		text = stop + 1;
	}
	answer_all(q, answers.at, answers.count);
	arena_free(&scratch);
}

static bool answer_input(struct question *q, struct arena *arena, struct err *e)
{
	struct input *in = arena_new(arena, struct input);

	while (!in->ended) {
		size_t len;
		char kept;

		if (!input_fill(in, e))
			return false;
		len = complete_length(in);
		kept = in->text[len]; /* answer_lines puts a NUL there when no newline ends it */
		answer_lines(q, in->text, len);
		in->text[len] = kept;
		memmove(in->text, in->text + len, in->len - len);
		in->len -= len;
	}
	return true;
}

/* What --debuginfod was given for and did not bring. */
static void fetch_complain(const struct question *q)
{
	const char *why = symbolizer_not_fetched(&q->module);

	if (why)
		complain("%s: %s", q->module.path, why);
}

int addr2line_run(struct arena *arena, const struct options *options)
{
	const struct symbol_options how = {
		.demangle = options->demangle,
		.names = SYMBOL_NAMES_DEBUG,
		.debug_directories = options->debug_directories.at,
		.named = options->named->places,
		.fetch = options->fetch,
		.cache = options->cache,
	};
	struct named_file file = options->named->executable;
	struct question q = {.options = options, .is_watched = isatty(STDOUT_FILENO)};
	struct err e = {0};

	if (!options_check(options, &e))
		return fail(&e);
	if (!options->executable && !named_file_open(&file, arena, "a.out", &e))
		return fail(&e);
	stdout_pipe_may_end_us();
	confine(options, -1);
	if (!module_open_named(&q.module, arena, &file, &e) ||
	    !relocations_check(q.module.elf, &e) || !section_find(&q, &e))
		return fail(&e);
	q.symbolizer = symbolizer_new(arena, &how);
	if (options->argument_count)
		answer_arguments(&q, options);
	else if (!answer_input(&q, arena, &e))
		return fail(&e);
	symbolizer_done(q.symbolizer, &q.module);
	fetch_complain(&q);
	if (ferror(stdout)) {
		err_set(&e, ERR_SYSTEM, "writing: %s", strerror(errno));
		return fail(&e);
	}
	symbolizer_save(q.symbolizer);
	return complain_about_cut_files() ? EXIT_PARTIAL : EXIT_COMPLETE;
}
