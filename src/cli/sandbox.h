/*
 * cli/sandbox: from here on this program only reads files, computes and writes its output.
 *
 * Reading debug information is where hostile files meet the most code. Before it begins, the
 * kernel is asked to refuse whatever that work never needs, by three means:
 *   seccomp     a list of the system calls that remain, and of the arguments some may have: no
 *               other programs, sockets, other processes, executable memory; a file is opened
 *               for writing only when that makes it
 *   Landlock    (Linux 5.13) writing only below the directories named; reading all but /run and
 *               what the kernel shows of other processes and devices (/proc, /sys, /dev)
 *   privileges  root's are given up, but for reading files of all users
 * What the kernel does not have is left out, and can be said: this is a second wall, not the
 * first.
 */
#ifndef STACKER_CLI_SANDBOX_H
#define STACKER_CLI_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

enum sandbox_use {
	SANDBOX_READ,  /* a file, or a directory with all below it but kernel's file systems */
	SANDBOX_WRITE, /* a directory: in it and below files may be made, renamed, removed */
};

/* By a descriptor (O_PATH will do), which may be closed afterwards; -1: is left out. */
struct sandbox_place {
	int fd;
	enum sandbox_use use;
};

/* What was achieved. */
struct sandbox {
	bool calls;        /* seccomp */
	int landlock;      /* version of its interface; 0: the kernel has none, or it is off */
	bool landlock_on;  /* false with a version: it was refused */
	bool privileges;   /* there are none left to speak of */
	const char *fault; /* what the kernel has and nevertheless refused; NULL: nothing */
	int fault_errno;
};

/* One thing the sandbox is for. */
struct sandbox_aim {
	const char *name;
	bool by_seccomp;
	int by_landlock; /* from this version on; 0: never */
};
#define SANDBOX_AIMS 7
extern const struct sandbox_aim sandbox_aims[SANDBOX_AIMS];

/* For the calling thread and those it makes; there is no way back. What is open already stays
 * usable. Besides `places`, files are read below the root directory, as said above. */
void sandbox_enter(const struct sandbox_place *places, size_t count, struct sandbox *out);

/* "files read, files written (no Landlock)": what is not enforced; NULL: everything is. */
const char *sandbox_gaps(struct arena *arena, const struct sandbox *sandbox);

#endif
