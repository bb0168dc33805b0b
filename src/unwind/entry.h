/*
 * unwind/entry: the entries of a call frame section: CIEs (what many functions share) and FDEs
 * (one function's code range and program).
 *
 * Formats: DWARF 5 section 6.4.1 for .debug_frame (versions 1, 3 and 4, 32- and 64-bit); Linux
 * Standard Base core specification, "Exception Frames", for .eh_frame. The two differ in how an FDE
 * names its CIE, in the CIE's mark, and in how addresses are encoded; a `struct cfi_section` knows
 * which it is.
 */
#ifndef STACKER_UNWIND_ENTRY_H
#define STACKER_UNWIND_ENTRY_H

#include "elf/pointer.h"

struct cfi_section {
	struct bytes bytes;
	uint64_t ea;    /* of the first byte; 0 for .debug_frame, which is not loaded */
	bool is_eh;     /* .eh_frame, not .debug_frame */
	bool unbounded; /* where it ends is not known: its terminator ends it */
	struct pointer_bases bases; /* without has_function */
};

/* One entry, its length read and its kind known. */
struct entry {
	uint64_t off, next; /* of it and of the entry after it, in the section */
	bool is_cie;
	bool is_terminator; /* .eh_frame: a length of 0 ends the section */
	bool is_64bit;      /* offsets inside it are 8 bytes */
	uint64_t cie_off;   /* FDE: where its CIE is said to be */
	struct reader body; /* after the CIE mark; offsets count from the section's start */
};

struct cie {
	uint64_t off;
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_reg;
	bool has_augmentation_data; /* 'z' */
	bool signal_frame;          /* 'S' */
	uint8_t pointer_encoding;   /* 'R': of addresses in FDEs and of DW_CFA_set_loc */
	uint8_t lsda_encoding;      /* 'L' */
	uint8_t segment_size;
	struct reader program;
};

struct fde {
	const struct cie *cie;
	uint64_t ea, size; /* the code it covers; size 0: none */
	struct reader program;
};

/* The entry at `off`, which is below the section's size. */
bool entry_read(const struct cfi_section *section, uint64_t off, struct entry *out,
		struct err *e);

/* The CIE at `off`. */
bool cie_read(const struct cfi_section *section, uint64_t off, struct cie *out, struct err *e);

/* Reads the FDE that `entry` is. `cie` (the one at entry->cie_off) must outlive it. */
bool fde_read(const struct cfi_section *section, const struct entry *entry,
	      const struct cie *cie, struct fde *out, struct err *e);

#endif
