/*
 * symbol/symbol: (module, address) -> function, inline chain, file and line.
 *
 * Sources, best first: DWARF of the module's file or its separate debug file (inlines, lines), the
 * symbol tables (.symtab, .dynsym, those of the separate debug file and of .gnu_debugdata).
 * Works on sets of unique addresses, so that nothing is parsed twice.
 */
#ifndef STACKER_SYMBOL_SYMBOL_H
#define STACKER_SYMBOL_SYMBOL_H

#include "module/module.h"

struct symbol_options {
	bool demangle;
	const char *const *debug_directories; /* --debug-dir, searched first; NULL-terminated or NULL */
	const char *sysroot;                  /* put before /usr/lib/debug; or NULL */
};

/* One level of the inline chain, innermost first; the last one is the real function. */
struct symbol_frame {
	const char *function;  /* demangled as the options say; NULL: not known */
	uint64_t function_ea;  /* where it begins; valid when has_function_ea */
	bool has_function_ea;
	const char *file;      /* NULL: not known */
	uint32_t line, column; /* 0: not known */
	bool inlined;
};

struct symbol_answer {
	uint64_t ea;           /* asked: pc_for_lookup minus the load bias */
	struct symbol_frame *frames;
	size_t frame_count;    /* 0: neither name nor line is known */
};

struct symbolizer;

struct symbolizer *symbolizer_new(struct arena *arena, const struct symbol_options *options);

/* Answers all addresses of one module (any order, duplicates allowed). */
void symbolize(struct symbolizer *symbolizer, struct module *module,
	       struct symbol_answer *answers, size_t count);

/* What a user should know about the module's information: "no debug information (build-id ...)",
 * "debug file X refused: other build-id", or NULL. After symbolize. */
const char *symbolizer_note(struct symbolizer *symbolizer, const struct module *module);

/* The demangled form of a linkage name, or the name itself. C++ (Itanium), Rust legacy and v0, D.
 * Bounded in length and recursion. */
const char *demangle(struct arena *arena, const char *name);

#endif
