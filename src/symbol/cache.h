/*
 * symbol/cache: answers of earlier runs, so that the same build is not read again.
 *
 * One file in the store (base/store) for a module's build-id, the debug file that was found for it, the
 * options that change names, and this very build of Stacker: all of it is the key, written in the
 * file. A file on disk is known by its stamp (base/mapping), not by its build-id alone: stripped and
 * whole files share one, and anybody can write any build-id into a file of his own. So answers about
 * another's file never reach ours, and a debug file that came, went or was replaced makes another key.
 *
 * What it saves is reading debug information; it must cost little where that costs little. So
 * answers are kept only where they took longer than the cache takes (CACHE_WORTH_NS).
 */
#ifndef STACKER_SYMBOL_CACHE_H
#define STACKER_SYMBOL_CACHE_H

#include "base/store.h"
#include "elf/elf.h"
#include "symbol/symbol.h"

/* Processor time that new answers must have taken to be kept: opening, checking, writing and later
 * reading a small file cost about a tenth of it together ... */
#define CACHE_WORTH_NS UINT64_C(2000000)
/* ... and a large one so much more for each byte. */
#define CACHE_WORTH_BYTE_NS UINT64_C(2)

/* A file that changed so short ago may change once more with the same time: the kernel's clock for
 * them ticks every 1 to 10 ms. */
#define CACHE_SETTLED_NS UINT64_C(100000000)

/* Whom answers are about, and what decides about them. */
struct cache_subject {
	const struct elf *module;
	const struct elf *debug; /* the separate debug file that is used; or NULL */
	const struct symbol_options *options;
};

struct symbol_cache;

/* The answers kept for it, perhaps none; NULL where none may be: no build-id, not a file, changed just now. */
struct symbol_cache *symbol_cache_open(struct arena *arena, const struct store *store,
				       const struct cache_subject *subject);

/* The answer for out->ea; false: not kept. */
bool symbol_cache_find(const struct symbol_cache *cache, struct symbol_answer *out);

/* Was there debug information of any kind? True when no answers are kept. */
bool symbol_cache_informed(const struct symbol_cache *cache);

/* A new answer, which must live as long as the cache. */
void symbol_cache_add(struct symbol_cache *cache, const struct symbol_answer *answer);
/* How long new answers took. */
void symbol_cache_spent(struct symbol_cache *cache, uint64_t ns);

/* Keeps the new answers, with those that are there already, if they are worth it. */
void symbol_cache_save(const struct symbol_cache *cache, bool informed);

#endif
