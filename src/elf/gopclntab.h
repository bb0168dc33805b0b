/*
 * elf/gopclntab: functions, files, lines and frame sizes of Go programs by .gopclntab.
 *
 * The Go runtime needs this table to run, so `go build -ldflags="-s -w"` and strip leave it. All
 * four layouts are read, told apart by their magic numbers (runtime/symtab.go, debug/gosym):
 *   0xfffffffb  Go 1.2    everything relative to the table's start, functions by 64-bit address
 *   0xfffffffa  Go 1.16   a table each for names, units, files, values and functions
 *   0xfffffff0  Go 1.18   functions by 32-bit distance from the start of the text
 *   0xfffffff1  Go 1.20   the same; newer linkers leave the start of the text 0: it is .text's
 * Inlined calls are not told: the frame is the real function, with file and line of the innermost.
 */
#ifndef STACKER_ELF_GOPCLNTAB_H
#define STACKER_ELF_GOPCLNTAB_H

#include "elf/elf.h"

struct gopclntab;

struct go_place {
	const char *function; /* never NULL */
	uint64_t function_ea;
	const char *file; /* NULL: not known */
	uint32_t line;    /* 0: not known */
};

struct go_frame {
	const char *function; /* never NULL */
	uint64_t function_ea;
	/* Bytes on the stack at this address: on x86_64 those below the return address, on aarch64 all. */
	uint64_t size;
};

/* NULL when the file has no such table or a damaged header. */
struct gopclntab *gopclntab_open(struct arena *arena, struct elf *elf);

/* False when `ea` is not Go code. O(log n) in functions, and the lines of one function. */
bool gopclntab_find(const struct gopclntab *table, uint64_t ea, struct go_place *out);

/* The frame of the function at `ea`; false also for code that is not Go's (linked in by cgo). */
bool gopclntab_frame(const struct gopclntab *table, uint64_t ea, struct go_frame *out);

#endif
