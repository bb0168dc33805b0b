/*
 * dwarf/line: line number programs (DWARF 5, 6.2; versions 2 to 5).
 *
 * A program is run once for all addresses of a unit, and no table is built: a row holds from its
 * address to that of the next row, so as each row comes, the addresses that lie between the row
 * before and this one get the row before.
 */
#ifndef STACKER_DWARF_LINE_H
#define STACKER_DWARF_LINE_H

#include "dwarf/hits.h"
#include "dwarf/unit.h"

struct line_file {
	struct form_value name; /* a string in any of its forms */
	uint64_t directory;
	const char *path; /* joined; NULL until asked for */
};

struct line_table {
	struct sections *sections;
	struct unit *unit; /* whose strings and directory these are; NULL: .debug_line alone */
	struct encoding encoding; /* its own version and sizes */
	uint8_t instruction_size, operations_max, line_range, opcode_base;
	int8_t line_base;
	struct bytes operand_counts; /* of the standard opcodes, from 1 */
	struct reader program;
	VEC(struct form_value) directories;
	VEC(struct line_file) files;
	struct arena *scratch;
};

/* Reads the header at `off` of .debug_line. False when it is damaged or of an unknown version;
 * *end then still is where the next one begins, if that is known, else 0. */
bool line_table_read(struct line_table *table, struct unit *unit, struct sections *sections,
		     uint64_t off, struct arena *scratch, uint64_t *end);

/* The table of a unit (for a split unit: of its skeleton). False when there is none. */
bool line_table_of(struct line_table *table, struct unit *unit, struct arena *scratch);

/* Runs the program and gives each hit without a row the one that holds its address. */
void line_table_run(struct line_table *table, struct hits *hits);

/* The path of a file by its index (which counts from 0 in version 5, from 1 before): its name,
 * after its directory and the compilation directory as far as these are relative. In `arena`, made
 * once. NULL when there is no such file. */
const char *line_table_path(struct line_table *table, uint64_t index, struct arena *arena);

#endif
