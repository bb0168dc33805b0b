/*
 * rows FILE [DEBUG_FILE]: every row of every FDE, one line each, for tests/oracle/compare_rows.py.
 *
 *	fde SOURCE 0xSTART 0xEND
 *	0xSTART CFA [REG=RULE ...]
 *
 * Rows are in the words of tests/unit/row_text.h; empty ones are left out. With `-l`, each row is looked
 * up by its first address, as unwinding does it, instead of being run through in order. Built of this
 * file, tests/unit/row_text.c and libstacker.a, with -Itests/unit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "row_text.h"
#include "unwind/cfi.h"

static void print_row(const struct row *row)
{
	printf("0x%" PRIx64 " ", row->start);
	row_print(stdout, row);
	putchar('\n');
}

/* The same row found by its address, as a walk does it. */
static bool look_up(struct module *module, struct arena *arena, struct row *row)
{
	return cfi_row_at(module, arena, row->start, row, NULL) == CFI_ROW;
}

static void print_fde(struct module *module, struct arena *arena, const struct cfi_walk *walk,
		      bool by_address)
{
	static struct program program;
	struct err e = {.kind = ERR_NONE};
	struct row row;
	bool over = false;

	if (!program_begin(&program, walk->section, &walk->fde, &e)) {
		printf("bad %s\n", e.text);
		return;
	}
	while (program_next(&program, &row, &over, &e)) {
		uint64_t start = row.start;

		if (row.start >= row.end)
			continue;
		if (by_address && !look_up(module, arena, &row))
			printf("lost 0x%" PRIx64 "\n", start);
		row.start = start;
		print_row(&row);
	}
	if (!over)
		printf("bad %s\n", e.text);
}

static bool open_elf(struct elf *elf, struct arena *arena, const char *path)
{
	struct err e;
	struct bytes bytes;

	if (file_map(path, &bytes, &e) && elf_open(elf, arena, bytes, path, &e))
		return true;
	fprintf(stderr, "%s\n", e.text);
	return false;
}

int main(int argc, char **argv)
{
	bool by_address = argc > 1 && strcmp(argv[1], "-l") == 0;
	char **paths = argv + 1 + by_address;
	struct arena arena = {0};
	struct elf elf, debug;
	struct module module = {.name = "file", .elf = &elf};
	struct cfi_walk walk;

	if (!paths[0] || !open_elf(&elf, &arena, paths[0]))
		return 1;
	if (paths[1] && (!open_elf(&debug, &arena, paths[1]) ||
			 !cfi_add_debug_file(&module, &arena, &debug, NULL)))
		return 1;
	for (size_t source = 0; cfi_walk_begin(&walk, &module, &arena, source); source++) {
		while (cfi_walk_next(&walk)) {
			printf("fde %zu 0x%" PRIx64 " 0x%" PRIx64 "\n", source, walk.fde.ea,
			       walk.fde.ea + walk.fde.size);
			print_fde(&module, &arena, &walk, by_address);
		}
	}
	return 0;
}
