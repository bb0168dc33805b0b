/*
 * cli/confine: the sandbox of a run: what the options name stays within reach, and what the
 * kernel does not enforce is said.
 */
#ifndef STACKER_CLI_CONFINE_H
#define STACKER_CLI_CONFINE_H

#include "cli/cli.h"

/* Enters the sandbox (cli/sandbox): to be called when no process is needed any more, and before
 * files of others are read. Reading stays possible also below what the options name and below
 * `root` (of the process that was captured; -1: none), writing in the cache and to what is
 * open. A part that fails although the kernel has it is complained about. */
void confine(const struct options *options, int root);

/* For --verbose: what is not enforced. NULL: everything is, or nobody wants to know. */
const char *confine_note(struct arena *arena);

/* For --version --verbose: enters it, and prints by what each aim is enforced. */
void confine_print(void);

#endif
