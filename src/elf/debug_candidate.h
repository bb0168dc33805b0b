/*
 * elf/debug_candidate: whether a file that is where a debug file may be is the one that is
 * wanted.
 *
 * Apart from the search (elf/debugfile): what is looked for where, and whether it is that, are
 * two questions, and nothing that fails the second may be given out.
 */
#ifndef STACKER_ELF_DEBUG_CANDIDATE_H
#define STACKER_ELF_DEBUG_CANDIDATE_H

#include "elf/debugfile.h"

/* What a candidate must be. */
struct debug_want {
	const struct elf *like; /* same architecture, and not this file itself */
	struct bytes build_id;  /* empty: does not matter */
	bool has_crc;
	uint32_t crc;
	bool has_dwo_id;
	uint64_t dwo_id;
};

/* Opens the file at `path` if it is what is wanted; else NULL, and it is remembered in
 * `refused`. A file that is not there is no news. */
struct elf *debug_candidate(struct debugfiles *files, const char *path,
			    const struct debug_want *want);

/* Remembers it as refused; NULL. */
struct elf *debug_candidate_refuse(struct debugfiles *files, const char *path, const char *why);

#endif
