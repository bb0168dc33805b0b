/*
 * dwarf/answer: from what is found out about the addresses of one unit to finished frames.
 */
#ifndef STACKER_DWARF_ANSWER_H
#define STACKER_DWARF_ANSWER_H

#include "dwarf/context.h"
#include "dwarf/hits.h"
#include "dwarf/line.h"

/* How much is known of an address: where several units claim it, more is better, and of two that
 * know as much the first in the file is believed. */
enum knowledge { KNOWN_NOTHING, KNOWN_LINE, KNOWN_FUNCTION };

struct found {
	struct dwarf_frame *frames;
	size_t count;
	enum knowledge knowledge;
	uint64_t unit_off; /* of its function; 0: a line is all that is known */
};

/* One lookup, or one worker's part of it. */
struct lookup {
	struct dwarf *dwarf;
	struct arena arena;  /* until the lookup ends */
	struct hits asked;   /* each address once */
	struct found *found; /* of asked.at[i] */
};

/* Answers the hits, whose `asked` is an index into lookup->found. `vague`: the unit does not say
 * what its code is, so only its lines can tell. */
void unit_answer(struct lookup *lookup, struct unit *unit, struct hits *hits, bool vague);

/* Turns what one hit knows into frames, if that is better than what was found before. `table` may
 * be NULL. */
void hit_answer(struct lookup *lookup, const struct hit *hit, struct line_table *table);

/* Takes over an answer of another worker, if it is the better one. */
void found_merge(struct found *found, const struct found *other);

#endif
