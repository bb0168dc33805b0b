/*
 * bench/lookup_bench: names, lines and inline chains of the addresses on stdin, of one file.
 *
 *     lookup_bench FILE <ADDRESSES
 *
 * As `stacker addr2line`, but without its sandbox, in which no profiler can write down what it saw.
 */
#include <stdio.h>
#include <stdlib.h>

#include "symbol/symbol.h"

int main(int argc, char **argv)
{
	struct symbol_options options = {.demangle = true};
	struct symbolizer *symbolizer;
	struct arena arena = {0};
	struct module module;
	VEC(struct symbol_answer) answers = {0};
	struct err e = {0};
	char line[64];
	size_t frames = 0;

	if (argc != 2 || !module_open_file(&module, &arena, argv[1], &e)) {
		fprintf(stderr, "lookup_bench FILE: %s\n", e.text);
		return 1;
	}
	while (fgets(line, sizeof line, stdin))
		*vec_push(&arena, &answers) =
			(struct symbol_answer){.ea = strtoull(line, NULL, 16)};
	symbolizer = symbolizer_new(&arena, &options);
	symbolize(symbolizer, &module, answers.at, answers.count);
	symbolizer_done(symbolizer, &module);
	for (size_t i = 0; i < answers.count; i++)
		frames += answers.at[i].frame_count;
	printf("%zu addresses, %zu levels\n", answers.count, frames);
	arena_free(&arena);
	return 0;
}
