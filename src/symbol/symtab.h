/*
 * symbol/symtab: address -> function by the symbol tables alone.
 *
 * THE RANKING RULE. Which symbol names an address?
 *
 *   Never: undefined and absolute symbols, sections, files, data (STT_OBJECT, STT_TLS), mapping
 *   symbols (`$x`, `$d`), assembler-local labels (`.L`), labels outside executable sections.
 *
 *   1. A function (STT_FUNC with a size) that covers the address. Of several, the one that begins
 *      last (the innermost).
 *   2. Anything else that covers it: a label or function without a size, a label with one, an
 *      IFUNC resolver. Of several, the one that begins last. So the resolver of an STT_GNU_IFUNC
 *      is named by it only where no function of its own name is there, and an implementation never
 *      is: its address is another one.
 *      A symbol of size 0 reaches to the next symbol, to the next function that .eh_frame_hdr
 *      knows to begin, or to the end of its section, whichever comes first. So the hand-written
 *      `_start` of some C libraries has a name, and unknown code behind an exported label has not.
 *   3. Nothing: an address behind the end of a sized function and before the next one has no name.
 *
 *   Of several that begin at the same address: global (and unique) before weak before local; then
 *   the larger one; then the one with fewer leading underscores (`read` before `__read`, and any
 *   before glibc's internal `__GI_read`); then the last in the best table. A name ends before '@': versions are not part of it.
 *
 * So of glibc's aliases the exported ones win over `__GI_` names (local), as users of other tools
 * know them: gdb shows `__GI___libc_read` there, llvm-symbolizer whichever the table names last.
 */
#ifndef STACKER_SYMBOL_SYMTAB_H
#define STACKER_SYMBOL_SYMTAB_H

#include "elf/elf.h"

struct symtab;

struct symtab_symbol {
	const char *name;  /* mangled; in the arena only when a version had to be cut off */
	uint64_t ea, size; /* size 0: not known */
	const char
		*file; /* STT_FILE: source file without directory, as binutils tells; or NULL */
	bool is_function; /* found by rule 1 */
};

/* Where symbols come from. Any may be NULL. Strings are not copied: the files must outlive it. */
struct symtab_sources {
	struct elf *module;   /* .symtab, .dynsym, .eh_frame_hdr */
	struct elf *embedded; /* of .gnu_debugdata: .symtab */
	struct elf *debug;    /* separate debug file: .symtab */
};

/* What a table will be asked for, in ascending order; NULL: anything. */
struct symtab_asked {
	const uint64_t *at;
	size_t count;
};

/* O(n log n) in the number n of function symbols; O(n log k) for k addresses that will be asked for.
 * Never NULL; may be empty. */
struct symtab *symtab_new(struct arena *arena, const struct symtab_sources *sources,
			  const struct symtab_asked *asked);

/* The symbol that names `ea`. O(log n). */
bool symtab_find(struct symtab *symtab, uint64_t ea, struct symtab_symbol *out);

/* What binutils would name `ea` by: the symbol that begins last at or before it and not before
 * `lowest` (the start of the section), however far it reaches; of several at one address one that
 * covers `ea`, functions first, then the smallest, then the first in the table. O(log n). */
bool symtab_nearest(struct symtab *symtab, uint64_t ea, uint64_t lowest,
		    struct symtab_symbol *out);

/* Is there a function or label of exactly this name (versions apart) at exactly this address? */
bool symtab_has(const struct symtab *symtab, uint64_t ea, const char *name);

/* Why a limit left a table out: names are lost. NULL: nothing was. */
const char *symtab_left_out(const struct symtab *t);

size_t symtab_count(const struct symtab *t);

#endif
