/*
 * elf/symbols: walking .symtab and .dynsym (gABI "Symbol Table").
 *
 * .dynsym is found by its section header, or, in a file whose section headers are stripped, by
 * PT_DYNAMIC (DT_SYMTAB, DT_STRTAB; counted by DT_HASH or DT_GNU_HASH).
 */
#ifndef STACKER_ELF_SYMBOLS_H
#define STACKER_ELF_SYMBOLS_H

#include "elf/elf.h"

enum elf_symbols_which { ELF_SYMTAB, ELF_DYNSYM };

struct elf_symbol {
	const char *name;  /* "" when out of bounds */
	uint32_t name_off; /* st_name */
	uint64_t ea, size;
	uint8_t type, bind, visibility; /* STT_*, STB_*, STV_* */
	uint16_t section;               /* SHN_* or section index */
};

struct elf_symbols {
	struct reader entries;
	struct bytes strings; /* as bytes_strings gives them */
	const char
		*left_out; /* why a limit left the table out (in the file's arena); or NULL */
};

/* A walk over one table; an absent table gives a walk that is over at once. */
struct elf_symbols elf_symbols(struct elf *elf, enum elf_symbols_which which);
/* The next symbol; false at the end. The null symbol is skipped. */
bool elf_symbols_next(struct elf_symbols *symbols, struct elf_symbol *out);

/* The same without its name (NULL): no string is looked at, which is what most of the time would
 * go to where few names are wanted. */
bool elf_symbols_next_unnamed(struct elf_symbols *symbols, struct elf_symbol *out);
/* The name at st_name of a walk's strings; "" when out of bounds. */
const char *elf_symbols_name(struct bytes strings, uint32_t name_off);

#endif
