/*
 * The sandbox of a run: from options to places, from what came of it to words.
 */
#include "cli/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/store.h"
#include "cli/named.h"
#include "cli/sandbox.h"

/* What came of it, for who asks later: a program is confined once. */
static struct {
	struct sandbox sandbox;
	bool entered, verbose;
} state;

/* --debug-dir, and some more. */
#define PLACES_MAX (LIST_MAX + 16)

struct places {
	struct sandbox_place at[PLACES_MAX];
	size_t count;
};

/* `path` may be NULL. */
static void place_add(struct places *places, const char *path, enum sandbox_use use)
{
	int fd = path && *path ? open(path, O_PATH | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (places->count < PLACES_MAX)
		places->at[places->count++] = (struct sandbox_place){fd, use};
	else
		close(fd);
}

/* One that stays open for its owner; -1: none. */
static void descriptor_add(struct places *places, int fd, enum sandbox_use use)
{
	if (fd >= 0 && places->count < PLACES_MAX)
		places->at[places->count++] =
			(struct sandbox_place){fcntl(fd, F_DUPFD_CLOEXEC, 0), use};
}

/* The directory in which a file lies: debug files may lie beside it. */
static void place_add_above(struct places *places, const char *path, enum sandbox_use use)
{
	char directory[PATH_MAX];
	size_t len = path ? strlen(path) : sizeof directory;

	if (len >= sizeof directory)
		return;
	memcpy(directory, path, len + 1);
	place_add(places, dirname(directory), use);
}

static void named_add(struct places *places, const struct options *options)
{
	for (const struct debug_named *at = options->named->places; at->name; at++)
		descriptor_add(places, at->dir, SANDBOX_READ);
	descriptor_add(places, options->named->sysroot, SANDBOX_READ);
	place_add_above(places, options->named->executable.real, SANDBOX_READ);
	place_add(places, getenv("DEBUGINFOD_CACHE_PATH"), SANDBOX_READ);
	place_add(places, getenv("XDG_CACHE_HOME"), SANDBOX_READ);
}

void confine(const struct options *options, int root)
{
	struct places places = {.count = 0};
	const struct sandbox *sandbox = &state.sandbox;

	named_add(&places, options);
	if (options->cache)
		place_add(&places, options->cache->path, SANDBOX_WRITE);
	descriptor_add(&places, root, SANDBOX_READ);
	sandbox_enter(places.at, places.count, &state.sandbox);
	for (size_t i = 0; i < places.count; i++)
		close(places.at[i].fd);
	state.entered = true;
	state.verbose = options->verbose;
	if (sandbox->fault)
		complain("the sandbox is incomplete: %s: %s", sandbox->fault,
			 strerror(sandbox->fault_errno));
}

const char *confine_note(struct arena *arena)
{
	const char *gaps =
		state.entered && state.verbose ? sandbox_gaps(arena, &state.sandbox) : NULL;

	return gaps ? arena_printf(arena, "the sandbox does not enforce: %s", gaps) : NULL;
}

static void aim_print(const struct sandbox *sandbox, const struct sandbox_aim *aim)
{
	bool seccomp = aim->by_seccomp && sandbox->calls;
	bool landlock = aim->by_landlock && sandbox->landlock_on &&
			sandbox->landlock >= aim->by_landlock;

	printf("  %-28s%s%s%s\n", aim->name, seccomp ? "seccomp" : "",
	       seccomp && landlock ? ", " : "",
	       landlock  ? "Landlock"
	       : seccomp ? ""
			 : "not enforced");
}

void confine_print(void)
{
	struct utsname uts = {0};
	struct sandbox sandbox;

	uname(&uts);
	sandbox_enter(NULL, 0, &sandbox);
	printf("sandbox on this kernel (%s, Landlock version %d):\n", uts.release,
	       sandbox.landlock);
	for (size_t i = 0; i < SANDBOX_AIMS; i++)
		aim_print(&sandbox, &sandbox_aims[i]);
	printf("  %-28s%s\n", "root's privileges",
	       sandbox.privileges ? "given up" : "not given up");
	if (sandbox.fault)
		printf("  failed: %s: %s\n", sandbox.fault, strerror(sandbox.fault_errno));
}
