/*
 * stacker cache: where answers of earlier runs are kept (symbol/cache), and how to be rid of them.
 */
#include <stdio.h>

#include "base/store.h"
#include "base/text.h"
#include "cli/cli.h"

const struct store *cache_for(struct arena *arena, const struct options *options)
{
	struct store *store = arena_new(arena, struct store);
	struct err e = {0};

	if (options->no_cache)
		return NULL;
	if (store_open(store, arena, true, &e))
		return store;
	if (options->verbose)
		complain("no cache: %s", e.text);
	return NULL;
}

static void print(const char *path, const char *what, const struct store_size *size)
{
	char harmless[2048];

	printf("%s: %s%llu file%s, %llu bytes\n",
	       text_for_message(harmless, sizeof harmless, path), what,
	       (unsigned long long)size->files, size->files == 1 ? "" : "s",
	       (unsigned long long)size->bytes);
}

int cache_run(struct arena *arena, const struct options *options)
{
	struct store_size size = {0, 0};
	struct store store;
	struct err e = {0};

	if (options->argument_count) {
		err_set(&e, ERR_USAGE, "what is '%s'? see stacker cache --help",
			options->arguments[0]);
		return fail(&e);
	}
	/* One that was not made yet is an empty one. */
	if (!store_open(&store, arena, false, &e) && !(store.path && e.kind == ERR_NOT_FOUND))
		return fail(&e);
	if (store.dir >= 0)
		size = options->clear ? store_clear(&store) : store_measure(&store);
	print(store.path, options->clear ? "removed " : "", &size);
	return EXIT_COMPLETE;
}
