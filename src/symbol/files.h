/*
 * symbol/files: the files that know a module's names and lines: found first, read when they are
 * asked.
 *
 * The module's own file, its separate debug file, and what these bring with them: symbol
 * tables, .gnu_debugdata, Go's table, and the companions of split and supplementary debug
 * information.
 *
 * Which files there are, and what was wrong with them, is known to the end. What is read from
 * them has a stage of its own, from a question to symbol_files_close: the contents that were
 * decompressed, and all that points into them, go together.
 */
#ifndef STACKER_SYMBOL_FILES_H
#define STACKER_SYMBOL_FILES_H

#include "dwarf/dwarf.h"
#include "elf/debugfile.h"
#include "elf/gopclntab.h"
#include "symbol/symbol.h"
#include "symbol/symtab.h"

/* What is open. All of it lives in the arena. */
struct symbol_stage {
	struct arena arena;
	uint64_t decompressed; /* bytes of the arena that base/budget counts */
	struct elf *dwarf_elf; /* the file `dwarf` reads: the module's own or the debug file */
	struct dwarf *dwarf;   /* or NULL */
	struct points_file *points; /* of dwarf_elf; or NULL */
	uint64_t dwarf_shift; /* ea in dwarf_elf minus ea in the module: not 0 after prelink */
	struct dwarf_companions companions;
	VEC(struct bytes) companion_files; /* mapped */
	struct gopclntab *go;              /* or NULL */
	struct symtab_sources tables;
	struct symtab *symtab; /* for the addresses of the first question; then for all */
	bool symtab_is_for_all;
};

struct symbol_files {
	struct module *module;
	struct debugfiles places;
	bool qualifies;            /* names get their namespaces and classes */
	const struct store *store; /* NULL: nothing is kept from one run to the next */
	struct elf *debug;         /* separate debug file; or NULL */
	bool unproven;       /* a companion was asked for that no build-id ties to the module */
	bool read;           /* they were asked at least once: */
	bool informed;       /* there is debug information of some kind */
	const char *problem; /* of debug information; or NULL */
	struct err embedded_problem;

	bool opened;
	bool lent;                 /* answers point into what is open: it must stay for ever */
	struct symbol_stage stage; /* valid when opened */
};

/* Finds the files of a module that has its own; cheap: headers only. */
void symbol_files_find(struct symbol_files *files, struct module *module, struct arena *arena,
		       const struct symbol_options *options);

/* Asks debug information for addresses of the module (ascending, each once), as dwarf_lookup
 * does, and makes symtab ready for them. Opens the files first, unless they are; `files`
 * must stay where it is. */
void symbol_files_ask(struct symbol_files *files, struct dwarf_answer *unique, size_t count);

/* Ends the stage, if there is one. They can be asked again. */
void symbol_files_close(struct symbol_files *files);

/* The first thing that was wrong with them; or NULL. */
const char *symbol_files_problem(const struct symbol_files *files);

#endif
