/*
 * dwarf/fetch: compressed sections, decompressed side by side: .debug_info as far as it is needed
 * (dwarf/sparse) by a thread of its own, the others by the caller's. Nothing to do where
 * .debug_info is not compressed.
 */
#ifndef STACKER_DWARF_FETCH_H
#define STACKER_DWARF_FETCH_H

#include <pthread.h>

#include "dwarf/claims.h"

/* A run under way. */
struct fetch {
	struct sections *sections;
	bool started;
	bool good;
	struct err why;
	pthread_t thread;
};

/* The units that claim addresses, and if there are addresses that none claims, the roots of all. When it returns
 * the other sections are there, and units can be asked for: who does waits until they are. */
void fetch_claimed(struct fetch *fetch, struct claims *claims);

/* Waits for the end. False: the section is damaged (which is noted), and what was read of it must be forgotten. */
bool fetch_end(struct fetch *fetch);

/* The roots of all units, for claims_by_units. */
void fetch_roots(struct sections *sections);

#endif
