/*
 * dwarf/context: what all parts of this room share: memory, companions, the work limit, the map of
 * code, and the first problem met.
 */
#ifndef STACKER_DWARF_CONTEXT_H
#define STACKER_DWARF_CONTEXT_H

#include "dwarf/dwarf.h"
#include "dwarf/sections.h"

struct code_span {
	uint64_t start, end;
};

struct walk;

struct dwarf {
	struct arena *arena;  /* answers, and what is kept from one lookup to the next */
	struct arena scratch; /* one unit, then reset */
	struct dwarf_companions companions;
	struct sections main;     /* of the file itself */
	struct sections *package; /* FILE.dwp, NULL: none */
	bool package_tried;
	VEC(struct sections *) split_files; /* .dwo files, so that each is opened once */
	struct code_span *code;             /* executable sections by address, disjoint */
	size_t code_count;
	struct walk *walk; /* of function.c, kept because it is large */
	uint64_t work_left, work_given;
	bool qualifies;           /* dwarf_qualify_names */
	uint64_t scope_work_left; /* the part of work_left that scopes may take */
	const char *problem;
};

/* Records the first problem; later ones are dropped. */
void dwarf_note(struct dwarf *dwarf, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Hostile input can make many small things point at one large thing, so that reading it takes
 * their product. Everything that may be read more than once is paid for here, in bytes or
 * entries; false when a lookup has used up WORK_PER_BYTE times the size of the sections, or its
 * share of the run's (base/budget). */
bool dwarf_work(struct dwarf *dwarf, uint64_t amount);

/* Sets the part of the work that may be spent on mere scopes (dwarf/scope): addresses come
 * first. */
void dwarf_scope_work_begin(struct dwarf *dwarf);

/* Sets the limit anew; called once for each lookup of `asked` addresses. */
void dwarf_work_begin(struct dwarf *dwarf, size_t asked);
/* And at its end: what was done counts for the run. */
void dwarf_work_end(struct dwarf *dwarf);

/* Linkers leave the description of discarded functions in place and write something in place of
 * their address: 0, 1, -1, -2, or an offset from these. What all have in common is that no code is
 * there: a range or a sequence of lines that does not begin in code is dead. */
bool dwarf_is_code(const struct dwarf *dwarf, uint64_t ea);

/* Fills dwarf->code from the section headers; without any, everything but the known tombstones is
 * taken for code. */
void dwarf_code_map(struct dwarf *dwarf);

#endif
