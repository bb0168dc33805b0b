/*
 * dwarf/dwarf: the debugging information of one ELF file: address -> inline chain, file, line.
 *
 * Formats: DWARF 2 to 5 (32- and 64-bit), with the GNU extensions in use (split DWARF, dwz).
 * Work is proportional to what is asked: units are found by .debug_aranges or unit ranges; a unit
 * that is hit gets one pass over its DIE tree and one run of its line program.
 */
#ifndef STACKER_DWARF_DWARF_H
#define STACKER_DWARF_DWARF_H

#include "elf/elf.h"

/* One level of the inline chain at an address; [0] is the innermost. */
struct dwarf_frame {
	const char *linkage_name; /* DW_AT_linkage_name of the function, or NULL */
	const char *name;         /* DW_AT_name, or NULL (then only file and line are known) */
	const char *qualified;    /* the name with its namespaces and classes, where there is no
				   * linkage name; NULL: not asked for, or none to add */
	uint16_t language; /* DW_LANG_* of the unit, for demangling and for qualified names */
	const char *file;  /* joined with include and compilation directory; or NULL */
	uint32_t line, column; /* 0: not known */
	uint64_t function_ea;  /* low_pc of the function or inlined block; 0: not known */
	bool inlined;          /* this level was inlined into the next one */
};

struct dwarf_answer {
	uint64_t ea; /* asked */
	struct dwarf_frame *frames;
	size_t frame_count; /* 0: nothing is known about this address */
};

struct dwarf;
struct points;

/* Where companions of a file are: a .dwo, a .dwp, a dwz file. `open` maps and opens the ELF file
 * at a path, checks what it was asked to check (build-id when not empty), and returns NULL when
 * there is none to be had. */
struct dwarf_companions {
	void *context;
	/* Skeleton's dwo_name and comp_dir (may be NULL), DW_AT_dwo_id. */
	struct elf *(*open_dwo)(void *context, const char *name, const char *directory,
				uint64_t id);
	/* The package FILE.dwp beside the file, or NULL. */
	struct elf *(*open_dwp)(void *context);
	/* The file of .gnu_debugaltlink or .debug_sup with its build-id. */
	struct elf *(*open_alternate)(void *context, const char *name, struct bytes build_id);
};

/* Prepares the debugging information in `elf` (which may be a separate debug file). Returns NULL
 * when there is none (no .debug_info and no .debug_line). Damaged information is not an error:
 * what cannot be read answers nothing, and dwarf_problem() says the first thing that was wrong. */
struct dwarf *dwarf_open(struct arena *arena, struct elf *elf,
			 const struct dwarf_companions *companions);

/* To be used, or learned, for the file's compressed sections (dwarf/points); before the first lookup. They
 * must live as long. */
void dwarf_use_points(struct dwarf *dwarf, struct points *points);

/* Frames without a linkage name are to get `qualified` too (C++); before the first lookup. */
void dwarf_qualify_names(struct dwarf *dwarf);

/* Answers all addresses; `answers[].ea` is set by the caller, in ascending order, duplicates
 * allowed. Everything returned lives in the arena, or in the contents of the ELF files it was read
 * from. Uses several threads where many units are hit; companions are opened by the caller's. */
void dwarf_lookup(struct dwarf *dwarf, struct dwarf_answer *answers, size_t count);

/* One line about the first damage or missing companion met, or NULL. */
const char *dwarf_problem(const struct dwarf *dwarf);

#endif
