#include "cli/fetch_command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/trust.h"
#include "elf/debugfile.h"

/* The first in PATH, made absolute: whoever could rename a directory on the way is to be seen. */
static const char *command_find(struct arena *arena)
{
	const char *path = getenv("PATH");

	for (path = path ? path : "/usr/local/bin:/bin:/usr/bin";;) {
		size_t len = strcspn(path, ":");
		char *own = len && path[0] == '/' ? NULL : getcwd(NULL, 0);
		const char *found =
			arena_printf(arena, "%s%s%.*s/" FETCH_COMMAND, own ? own : "",
				     own ? "/" : "", (int)len, path);

		free(own);
		if (access(found, X_OK) == 0)
			return found;
		if (!path[len])
			return NULL;
		path += len + 1;
	}
}

/* The directory that it keeps its files in; it also looks for an older one in HOME. */
static const char *places_lack(struct arena *arena)
{
	const char *cache = debuginfod_cache(arena), *home = getenv("HOME");
	const char *given = getenv("DEBUGINFOD_CACHE_PATH");
	const char *lacks = cache ? trust_lacks(arena, cache, TRUST_PLACE) : NULL;

	if (lacks || (given && *given) || !home || !*home)
		return lacks;
	return trust_lacks(arena, arena_printf(arena, "%s/.debuginfod_client_cache", home),
			   TRUST_PLACE);
}

const char *fetch_command(struct arena *arena, const char **why)
{
	const char *found = command_find(arena), *lacks;

	*why = "it is not installed";
	if (!found)
		return NULL;
	lacks = trust_lacks(arena, found, TRUST_WRITERS);
	if (lacks) {
		*why = arena_printf(arena, "%s is not run: %s", found, lacks);
		return NULL;
	}
	lacks = places_lack(arena);
	if (!lacks)
		return found;
	*why = arena_printf(arena, "it is not run: %s (set DEBUGINFOD_CACHE_PATH)", lacks);
	return NULL;
}
