/*
 * cli/fetch: debug files of debuginfod servers, by the external command `debuginfod-find`.
 *
 * Stacker itself speaks to no network, and once it is in its sandbox (cli/sandbox) it can start no
 * program. So a process is set apart before anything else is done. It reads build-ids from a pipe, runs
 * `debuginfod-find debuginfo BUILD-ID` for each, one at a time, and answers with the path that the
 * command prints; who asks checks that file like any other. It holds nothing of the traced process,
 * ends when Stacker does, and takes the command that runs with it.
 */
#ifndef STACKER_CLI_FETCH_H
#define STACKER_CLI_FETCH_H

#include "cli/cli.h"
#include "elf/debugfile.h"

/* Of the whole run, from the first file on (--debuginfod-timeout). */
#define FETCH_LIMIT_S 60

/* Sets the process apart. Never fails: what goes wrong is said with every answer. */
const struct debug_fetch *fetch_start(struct arena *arena, const struct options *options);

#endif
