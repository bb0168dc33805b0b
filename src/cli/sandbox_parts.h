/*
 * cli/sandbox_parts: what the sandbox is made of. Each returns 0 or an errno; ENOSYS: the
 * kernel has no such thing.
 */
#ifndef STACKER_CLI_SANDBOX_PARTS_H
#define STACKER_CLI_SANDBOX_PARTS_H

#include "cli/sandbox.h"

/* seccomp. `openat2`: its flags lie in memory, where a filter cannot see them, so it remains
 * only where Landlock looks at what they do. */
int sandbox_calls_restrict(bool openat2);

/* Landlock. The version is there also when it cannot be entered. */
int sandbox_files_restrict(const struct sandbox_place *places, size_t count, int *version);

/* Of version 3 on Landlock covers all that opening a file can do to it. */
#define SANDBOX_COVERS_OPENING 3

#endif
