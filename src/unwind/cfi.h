/*
 * unwind/cfi: the call frame information of one module: which FDE covers an address, and its row.
 *
 * Sources, in this order: .eh_frame of the module's file, .debug_frame of the same file,
 * .debug_frame of its separate debug file when somebody adds one. .eh_frame is searched by the sorted
 * table of .eh_frame_hdr (LSB core specification, "Exception Header"); where that is missing, omitted,
 * in another encoding than one of fixed size, or found wrong, by an index that is made once by
 * a scan of the section. .debug_frame has no table and is always indexed.
 *
 * Section headers are not needed: PT_GNU_EH_FRAME leads to .eh_frame_hdr, and that to .eh_frame.
 */
#ifndef STACKER_UNWIND_CFI_H
#define STACKER_UNWIND_CFI_H

#include "module/module.h"
#include "unwind/program.h"

enum cfi_answer {
	CFI_NONE, /* no FDE covers the address */
	CFI_ROW,
	CFI_BAD, /* one does, and it is damaged */
};

/* The row that holds at `ea` in the module. State is kept in module->cfi and `arena`. CFI_BAD says
 * why in `e`. */
enum cfi_answer cfi_row_at(struct module *module, struct arena *arena, uint64_t ea,
			   struct row *out, struct err *e);

/* How separate debug files are found. */
struct cfi_debug_files {
	/* That of a module which has its file, or NULL. NULL itself: there are none. */
	struct elf *(*find)(void *context, struct module *module);
	void *context;
};

/* Looks for the module's debug file, the first time that this is asked. True when there is one now that
 * has further call frame information. */
bool cfi_look_for_debug_file(struct module *module, struct arena *arena,
			     const struct cfi_debug_files *files);

/* Adds the separate debug file of a module, which must outlive it; its addresses are those of the
 * module. Nothing is parsed before it is needed. False when it has no usable .debug_frame. Must
 * come before the module's rows are asked for, as negative answers are cached by the unwinder. */
bool cfi_add_debug_file(struct module *module, struct arena *arena, struct elf *debug,
			struct err *e);

/* For tests and tools: every FDE of a source, in file order; `source` counts from 0. */
struct cfi_walk {
	const struct cfi_section *section;
	uint64_t off;       /* of the entry to look at next */
	uint64_t entry_off; /* of the FDE that stands */
	struct cie cie;
	bool has_cie;
	struct fde fde; /* the one that stands; points to `cie` */
};

/* False when the module has no such source. */
bool cfi_walk_begin(struct cfi_walk *walk, struct module *module, struct arena *arena,
		    size_t source);
/* Moves to the next good FDE; false at the end. Damaged ones are passed over. */
bool cfi_walk_next(struct cfi_walk *walk);

#endif
