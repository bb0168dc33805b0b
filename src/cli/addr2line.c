/*
 * stacker addr2line: what binutils' addr2line prints, byte for byte, for the same options.
 *
 * Addresses from stdin are answered as they come, so that a program can ask line by line, but what
 * can be read without waiting is answered as one batch: unit by unit instead of line by line.
 *
 * One difference is on purpose: binutils adds " (discriminator N)" to some lines, which is nothing
 * that a reader of file and line can use; it is left out.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "symbol/symbol.h"

/* Of text in one batch: some ten thousand addresses. */
#define BATCH_MAX ((size_t)256 << 10)

/* One file and how it is asked. */
struct question {
	const struct options *options;
	struct module module;
	struct symbolizer *symbolizer;
};

/* ---- Printing ---- */

static const char *file_shown(const struct options *options, const char *file)
{
	const char *slash = options->basenames ? strrchr(file, '/') : NULL;

	return slash ? slash + 1 : file;
}

static void print_level(const struct options *options, const struct symbol_frame *frame)
{
	if (options->functions)
		printf("%s%s", frame->function && *frame->function ? frame->function : "??",
		       options->pretty ? " at " : "\n");
	printf("%s:", frame->file ? file_shown(options, frame->file) : "??");
	if (frame->line)
		printf("%u\n", frame->line);
	else
		puts("?");
}

static void print_unknown(const struct options *options)
{
	if (options->functions)
		fputs(options->pretty ? "?? " : "??\n", stdout);
	puts("??:0");
}

static void print_answer(const struct options *options, const struct symbol_answer *answer)
{
	size_t levels = options->inlines ? answer->frame_count : 1;

	if (options->addresses)
		printf("0x%016llx%s", (unsigned long long)answer->ea,
		       options->pretty ? ": " : "\n");
	if (answer->frame_count == 0) {
		print_unknown(options);
		return;
	}
	for (size_t i = 0; i < levels; i++) {
		if (i && options->pretty)
			fputs(" (inlined by) ", stdout);
		print_level(options, &answer->frames[i]);
	}
}

static void answer_all(struct question *q, struct symbol_answer *answers, size_t count)
{
	symbolize(q->symbolizer, &q->module, answers, count);
	for (size_t i = 0; i < count; i++)
		print_answer(q->options, &answers[i]);
	fflush(stdout);
}

/* ---- Asking ---- */

/* As binutils reads it: base 16, with or without 0x; what is no number is 0. */
static uint64_t address_of(const char *text)
{
	return strtoull(text, NULL, 16);
}

static void answer_arguments(struct question *q, const struct options *options)
{
	struct arena scratch = { 0 };
	struct symbol_answer *answers = arena_array(&scratch, struct symbol_answer,
						    options->argument_count);

	for (size_t i = 0; i < options->argument_count; i++)
		answers[i].ea = address_of(options->arguments[i]);
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
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

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
	struct arena scratch = { 0 };
	VEC(struct symbol_answer) answers = { 0 };
	char *end = text + len;

	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *stop = newline ? newline : end;

		*stop = '\0';
		*vec_push(&scratch,
			  &answers) = (struct symbol_answer){ .ea = address_of(text) };
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

int addr2line_run(struct arena *arena, const struct options *options)
{
	const struct symbol_options how = {
		.demangle = options->demangle,
		.names = SYMBOL_NAMES_DEBUG,
		.debug_directories = options->debug_directories.at,
	};
	struct question q = { .options = options };
	struct err e = { 0 };

	if (!module_open_file(&q.module, arena,
			      options->executable ? options->executable : "a.out", &e))
		return fail(&e);
	q.symbolizer = symbolizer_new(arena, &how);
	if (options->argument_count)
		answer_arguments(&q, options);
	else if (!answer_input(&q, arena, &e))
		return fail(&e);
	if (ferror(stdout)) {
		err_set(&e, ERR_SYSTEM, "writing: %s", strerror(errno));
		return fail(&e);
	}
	return EXIT_COMPLETE;
}
