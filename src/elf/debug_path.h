/*
 * elf/debug_path: the names of places where debug files may be, and opening them inside
 * SYSROOT.
 *
 * Apart from the search (elf/debugfile), so that nothing else opens a path: one that begins
 * with SYSROOT is resolved inside it, whatever links are in it.
 */
#ifndef STACKER_ELF_DEBUG_PATH_H
#define STACKER_ELF_DEBUG_PATH_H

#include "elf/debugfile.h"

/* A descriptor, or -1 and `e` as of file_open. */
int debug_path_open(const struct debugfiles *files, const char *path, struct err *e);

const char *debug_path_join(struct debugfiles *files, const char *directory, const char *name);
const char *debug_path_last(const char *path);
const char *debug_path_directory(struct debugfiles *files, const char *path);

/* The name with all symbolic links resolved, or as it is when there is no such file here. */
const char *debug_path_real(struct debugfiles *files, const char *path);
/* The name as it is below DIR: of a path under SYSROOT what follows it. */
const char *debug_path_below(const struct debugfiles *files, const char *path);
bool debug_path_is_inside(const struct debugfiles *files, const char *path);
/* NULL without SYSROOT, or for a relative path. */
const char *debug_path_under_sysroot(struct debugfiles *files, const char *path);

/* DIR of elf/debugfile.h, by number; NULL behind the last one. The first are those the user
 * gave. */
const char *debug_directory(struct debugfiles *files, size_t i);
size_t debug_directories_given(const struct debugfiles *files);

#endif
