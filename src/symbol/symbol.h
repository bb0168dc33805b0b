/*
 * symbol/symbol: (module, address) -> function, inline chain, file and line.
 *
 * Sources, best first: DWARF of the module's file or its separate debug file (inlines, lines), the
 * symbol tables (.symtab, .dynsym, those of the separate debug file and of .gnu_debugdata; which
 * symbol names an address is symbol/symtab.h's ranking rule), and Go's own tables.
 * Works on sets of unique addresses, so that nothing is parsed twice; with a cache, not by the next
 * run either: what earlier ones found out about the same files is taken from there, and debug
 * information is opened for the rest only.
 *
 * WHICH NAME WINS where DWARF and the symbol table both know one?
 *   Inlined levels: DWARF, the only one that knows them; where C++ has no linkage name for one, the
 *   name with the namespaces and classes its entry stands in.
 *   The real function (the outermost level): the symbol table's, if a sized function covers the
 *   address (rule 1), as llvm-symbolizer does: it is the name the program is linked by, `foo` and
 *   `foo.cold` and `foo.constprop.0` are told apart, exported names win over internal ones, and a
 *   name does not change when a debug file is installed. But where DWARF has a mangled linkage
 *   name that the table also has at this very function, DWARF's: identical functions that the
 *   linker folded into one (ICF) keep the name that goes with the line.
 *   SYMBOL_NAMES_DEBUG (addr2line) turns this round, as binutils does: DWARF's name wherever it
 *   has one, unqualified; the table only for C++ and the like without a linkage name.
 */
#ifndef STACKER_SYMBOL_SYMBOL_H
#define STACKER_SYMBOL_SYMBOL_H

#include "module/module.h"

enum symbol_names { SYMBOL_NAMES_LINKER, SYMBOL_NAMES_DEBUG };

struct symbol_options {
	bool demangle;
	enum symbol_names names;
	const char *const *debug_directories; /* --debug-dir: first; NULL-terminated or NULL */
	const char *sysroot;                  /* put before /usr/lib/debug; or NULL */
	const struct debug_named *named;      /* elf/debugfile; or NULL */
	const int *sysroot_dir;               /* opened already; NULL: by its name */
	bool sysroot_is_process;              /* as in elf/debugfile */
	const struct debug_fetch *fetch; /* for debug files that are nowhere here; or NULL */
	const struct store *cache;       /* of answers (symbol/cache); NULL: none */
};

/* One level of the inline chain, innermost first; the last one is the real function. */
struct symbol_frame {
	const char *function; /* demangled as the options say; NULL: not known */
	uint64_t function_ea; /* where it begins; valid when has_function_ea */
	bool has_function_ea;
	const char *file;      /* NULL: not known */
	uint32_t line, column; /* 0: not known */
	bool inlined;
};

struct symbol_answer {
	uint64_t ea; /* asked: pc_lookup minus the load bias */
	struct symbol_frame *frames;
	size_t frame_count; /* 0: neither name nor line is known */
};

struct symbolizer;

struct symbolizer *symbolizer_new(struct arena *arena, const struct symbol_options *options);

/* Answers all addresses of one module (any order, duplicates allowed), in memory of the arena.
 * Missing or damaged information costs no more than what it would have said. */
void symbolize(struct symbolizer *symbolizer, struct module *module,
	       struct symbol_answer *answers, size_t count);

/* No more is asked of this module for the time being: what was read of its files, and above all
 * decompressed, is given back; until then it is held beside the arena. Answers and notes stay
 * as they are. Asked again all the same, it is read again. */
void symbolizer_done(struct symbolizer *symbolizer, const struct module *module);

/* Keeps the answers given so far for later runs. Nothing is kept about a module whose
 * information was damaged, refused or incomplete, nor of any when a file was cut while it was
 * read. */
void symbolizer_save(const struct symbolizer *symbolizer);

/* What a user should know about the module's information: "no debug information (build-id
 * ...)", "debug file X refused: other build-id", or NULL. After symbolize. */
const char *symbolizer_note(struct symbolizer *symbolizer, const struct module *module);

/* Why a debug file, or a companion of it, that was asked for with `fetch` did not come; NULL:
 * none was asked for, or all came. After symbolize. */
const char *symbolizer_not_fetched(const struct module *module);

/* The demangled form of a linkage name, or the name itself. C++ (Itanium), Rust legacy and v0,
 * D. Bounded in length and recursion. */
const char *demangle(struct arena *arena, const char *name);

#endif
