/*
 * cli/fetch_command: which program `debuginfod-find` is, and whether it may run here.
 */
#ifndef STACKER_CLI_FETCH_COMMAND_H
#define STACKER_CLI_FETCH_COMMAND_H

#include "base/arena.h"

#define FETCH_COMMAND "debuginfod-find"

/* Its path, the first of PATH; or NULL and why. What others could have put there does not run, and neither does
 * one that would keep its files where others lead it (base/trust). */
const char *fetch_command(struct arena *arena, const char **why);

#endif
