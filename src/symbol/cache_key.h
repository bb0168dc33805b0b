/*
 * symbol/cache_key: what a file of the cache must have in its key: who wrote it, and about which file.
 */
#ifndef STACKER_SYMBOL_CACHE_KEY_H
#define STACKER_SYMBOL_CACHE_KEY_H

#include "base/store.h"
#include "elf/elf.h"

/* A line that names this very build of Stacker. */
const char *cache_key_own(struct arena *arena);

/* The stamp of a mapped file; "none" for NULL. NULL for what is not a file on disk, or changed just now by
 * the store's clock. */
const char *cache_key_stamp(struct arena *arena, const struct store *store,
			    const struct elf *elf);

#endif
