/*
 * symbol/names: the strings of answers: each distinct one kept once, and demangled once.
 *
 * They come from debug sections and symbol tables, which go when a module is done
 * (symbol/files). What is given out is memory of the table's own.
 */
#ifndef STACKER_SYMBOL_NAMES_H
#define STACKER_SYMBOL_NAMES_H

#include "base/arena.h"

struct name {
	const char *text;
	const char *plain; /* demangled; NULL: not asked for yet */
	uint64_t hash;     /* of text */
};

/* Frames share names, most of them with a frame just before: those that were seen last are
 * known by where they are. */
#define NAMES_SEEN 1024
struct name_seen {
	const char *at;
	uint32_t name; /* index + 1 */
};

/* All zeros but the arena is an empty one. */
struct names {
	struct arena *arena;
	VEC(struct name) all;
	uint32_t *slots;        /* an open-addressing table of index + 1; 0: free */
	size_t slot_count;      /* 0 or a power of two, at least twice the number of names */
	struct name_seen *seen; /* NAMES_SEEN places; NULL: none yet */
	size_t kept;            /* bytes */
	bool borrowed; /* some text was too long, or too much: what was given out is where it was */
};

/* This text in memory that lives as long as the table's arena; NULL stays NULL. What `text`
 * points to must stay as it is until names_forget; where `borrowed` is set meanwhile, for
 * ever. */
const char *names_kept(struct names *names, const char *text);
/* demangle(text), likewise. */
const char *names_demangled(struct names *names, const char *text);

/* What was given so far may go, and other text come to its place. */
void names_forget(struct names *names);

#endif
