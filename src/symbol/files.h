/*
 * symbol/files: the files that know a module's names and lines: found first, read when they are asked.
 *
 * The module's own file, its separate debug file, and what these bring with them: symbol tables,
 * .gnu_debugdata, Go's table, and the companions of split and supplementary debug information.
 */
#ifndef STACKER_SYMBOL_FILES_H
#define STACKER_SYMBOL_FILES_H

#include "dwarf/dwarf.h"
#include "elf/debugfile.h"
#include "elf/gopclntab.h"
#include "symbol/symbol.h"
#include "symbol/symtab.h"

struct symbol_files {
	struct module *module;
	struct debugfiles places;
	struct elf *debug;     /* separate debug file; or NULL */
	struct elf *dwarf_elf; /* the file `dwarf` reads: the module's own or `debug` */
	bool unproven; /* a companion was asked for that no build-id ties to the module */

	bool opened;          /* what follows is valid */
	struct dwarf *dwarf;  /* or NULL */
	uint64_t dwarf_shift; /* ea in dwarf_elf minus ea in the module: not 0 after prelink */
	struct dwarf_companions companions;
	struct gopclntab *go; /* or NULL */
	struct symtab_sources tables;
	struct symtab *symtab; /* for the addresses of the first question; then for all */
	bool symtab_is_for_all;
	struct err embedded_problem;
};

/* Finds the files of a module that has its own; cheap: headers only. */
void symbol_files_find(struct symbol_files *files, struct module *module, struct arena *arena,
		       const struct symbol_options *options);

/* Asks debug information for addresses of the module (ascending, each once), as dwarf_lookup does, and
 * makes symtab ready for them. Opens the files first, unless they are; `files` must stay where it is. */
void symbol_files_ask(struct symbol_files *files, struct dwarf_answer *unique, size_t count);

/* The first thing that was wrong with them; or NULL. */
const char *symbol_files_problem(const struct symbol_files *files);

#endif
