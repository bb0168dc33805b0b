/*
 * elf/search_table: .eh_frame_hdr, the sorted table of functions that the linker makes of
 * .eh_frame. Stripped files keep it, so it also says where the code that a symbol names ends.
 *
 * Format: Linux Standard Base core specification, "Exception Header". The table may be missing or
 * its encoding omitted; an encoding without a fixed size cannot be searched.
 */
#ifndef STACKER_ELF_SEARCH_TABLE_H
#define STACKER_ELF_SEARCH_TABLE_H

#include "elf/elf.h"
#include "elf/pointer.h"

struct search_table {
	bool has_eh_frame; /* eh_frame_ea is known */
	uint64_t eh_frame_ea;
	bool usable;   /* the fields below are valid */
	bool complete; /* all that its count says are there */
	bool checked;  /* the owner's: it was compared with the section */
	uint8_t encoding;
	struct pointer_bases bases;
	struct bytes header;  /* bytes.at is at bases.section */
	size_t first, stride; /* offset of the first pair in it; bytes of a pair */
	uint64_t count;
};

/* From the file's PT_GNU_EH_FRAME, else its section .eh_frame_hdr. */
struct search_table search_table_open(struct elf *elf);

/* The last function that starts at or before ea (it may end before ea), and the address of its FDE.
 * False when there is none. */
bool search_table_find(const struct search_table *table, uint64_t ea, uint64_t *function,
		       uint64_t *fde_ea);

/* Where the first function behind ea begins; UINT64_MAX when there is none, or the table is not
 * complete. */
uint64_t search_table_next(const struct search_table *table, uint64_t ea);

/* One pair, index < count. */
void search_table_pair(const struct search_table *table, uint64_t index, uint64_t *function,
		       uint64_t *fde_ea);

/* Whether the functions are in ascending order. */
bool search_table_sorted(const struct search_table *table);

#endif
