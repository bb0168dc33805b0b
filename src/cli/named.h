/*
 * cli/named: what the command line names is opened before anything else is done.
 *
 * Later it could not be: the sandbox is not let near other processes (/proc/PID/exe,
 * /proc/PID/root), and a process may have ended by then.
 */
#ifndef STACKER_CLI_NAMED_H
#define STACKER_CLI_NAMED_H

#include "base/named.h"
#include "cli/cli.h"
#include "elf/debugfile.h"

struct named {
	struct named_file executable; /* --executable; `name` is NULL where it was not given */
	int sysroot;                  /* --sysroot, -1: not given */
	/* --debug-dir, and where the executable really is; the end has no name */
	struct debug_named places[LIST_MAX + 2];
};

/* False: --executable or --sysroot cannot be used. A --debug-dir that cannot is complained
 * about. All of it stays open to the end. */
bool named_find(struct named *out, struct arena *arena, const struct options *options,
		struct err *e);

#endif
