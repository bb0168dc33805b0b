/*
 * symbol/function_starts: where functions begin, by the binary search table in .eh_frame_hdr.
 *
 * Stripped files keep this table, so it can say that the code at an address is not the function
 * that a symbol of unknown size names. Format: LSB Core 10.6.2; only the form that linkers write
 * is read (counts udata4, table datarel|sdata4); any other gives no starts.
 */
#ifndef STACKER_SYMBOL_FUNCTION_STARTS_H
#define STACKER_SYMBOL_FUNCTION_STARTS_H

#include "elf/elf.h"

struct function_starts {
	struct bytes table; /* pairs of int32: start, FDE; relative to base; sorted by start */
	uint64_t base;      /* ea of .eh_frame_hdr */
	size_t count;
};

struct function_starts function_starts(const struct elf *elf);

/* The lowest start above `ea`; UINT64_MAX when there is none. O(log n). */
uint64_t function_start_above(const struct function_starts *starts, uint64_t ea);

#endif
