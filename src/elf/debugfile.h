/*
 * elf/debugfile: where the rest of a file is: its separate debug file and the companions of
 * that.
 *
 * Paths under SYSROOT are resolved inside it, symbolic links too. Every file is checked before
 * it is given out, and a candidate that fails the check is remembered (`refused`) and the next
 * place tried: separate debug file  the build-id decides where the module has one; by
 * .gnu_debuglink the CRC32 of the whole file must be right too dwz file             the
 * build-id written in .gnu_debugaltlink (or .debug_sup) .dwo                 the dwo_id in its
 * unit header (DWARF 5; earlier ones keep it in a DIE) .dwp                 the architecture
 * only: units are found in it by their dwo_id
 *
 * Places, in this order; DIR is each --debug-dir, then SYSROOT/usr/lib/debug, then
 * /usr/lib/debug: 1. DIR/.build-id/ab/cdef.debug 2. the name in .gnu_debuglink: beside the
 * file, in .debug/ beside it, under SYSROOT likewise, DIR + the file's directory, and flat in
 * DIR 3. FILE.debug beside the file, DIR + the file's path, with and without .debug, and flat
 * in DIR: only when the build-id proves it 4. the cache that debuginfod's own client keeps: no
 * network is used 5. where `fetch` puts it, when there is one. Of the last two what others than the
 * effective user and root could have put there is refused (base/trust).
 */
#ifndef STACKER_ELF_DEBUGFILE_H
#define STACKER_ELF_DEBUGFILE_H

#include <stdbool.h>

#include "elf/elf.h"

/* Longer ones are not build-ids (SHA-1 has 20 bytes, the longest in use 32). */
#define BUILD_ID_MAX 64

/* Fetches debug files from elsewhere (--debuginfod). */
struct debug_fetch {
	/* The path of the file, or NULL and why. */
	const char *(*file)(void *context, struct bytes build_id, const char **why);
	void *context;
};

/* What the command line named, opened before it is out of reach. */
struct debug_named {
	const char *name; /* as it was given */
	int dir; /* a directory: paths that begin with `name` are looked up in it; or -1 */
	const char *real; /* a file: where it really is; or NULL */
};

struct debugfiles {
	struct arena *arena;             /* for names and messages */
	struct arena *opened;            /* for the files that are found; NULL: `arena` too */
	const char *const *directories;  /* --debug-dir, NULL-terminated; or NULL */
	const struct debug_named *named; /* the end has no name; or NULL */
	const char *sysroot;             /* or NULL */
	const int *sysroot_dir;          /* opened already; NULL: by its name */
	bool sysroot_is_process; /* names in its files (.dwo, dwz) are looked up there only */
	const struct debug_fetch *fetch; /* or NULL */
	const char *refused;     /* "debug file X refused: WHY" of the first one, or NULL */
	const char *not_fetched; /* why, of the first one; or NULL */
};

/* Where debuginfod's client keeps what it fetched, by the environment; NULL: nowhere. */
const char *debuginfod_cache(struct arena *arena);

/* The separate debug file of `elf`, or NULL. `path` is the file's name where it was running,
 * for SYSROOT and DIR; elf->name is where it was read. */
struct elf *debugfile_find(struct debugfiles *files, struct elf *elf, const char *path);

/* The dwz file of `from` (a module or its debug file): `name` is absolute or relative to the
 * real directory of `from`. NULL: none. */
struct elf *debugfile_find_alternate(struct debugfiles *files, const struct elf *from,
				     const char *name, struct bytes build_id);

/* A .dwo by the skeleton's DW_AT_dwo_name and DW_AT_comp_dir (or NULL): as named, beside `elf`,
 * and in every --debug-dir. */
struct elf *debugfile_find_dwo(struct debugfiles *files, const struct elf *elf,
			       const char *name, const char *directory, uint64_t id);

/* FILE.dwp beside `elf` (for X.debug also X.dwp), or in a --debug-dir. */
struct elf *debugfile_find_dwp(struct debugfiles *files, const struct elf *elf);

/* The little ELF file with further function symbols in .gnu_debugdata (Fedora's minidebuginfo),
 * or NULL; `e` tells damage from absence (ERR_NONE). */
struct elf *debugfile_embedded(struct elf *elf, struct err *e);

#endif
