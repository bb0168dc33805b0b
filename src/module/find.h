/*
 * module/find: which file on this machine is the module of a capture?
 *
 * --executable for the program itself (the module of its build-id; where there is none, the one
 * that the kernel calls the executable), else the recorded path under --sysroot, else the
 * recorded path. Never a file of another architecture, and never one whose build-id differs
 * from the recorded one, unless the user insists.
 */
#ifndef STACKER_MODULE_FIND_H
#define STACKER_MODULE_FIND_H

#include "module/module.h"

/* Opens `data` as the module's ELF; fills elf, file_path, and build_id where it was unknown. */
bool module_elf_open(struct module *module, struct arena *arena, struct bytes data,
		     const char *file_path, struct err *e);

/* Both of these for a mapped file; one that does not open or fit is unmapped and leaves
 * nothing in the module. */
bool module_elf_take(struct module *module, struct arena *arena, struct bytes data,
		     const char *file_path, const struct arch *arch, bool any_build_id,
		     struct err *e);

/* Is the opened ELF of this architecture and, unless any_build_id, of the recorded build-id?
 * ERR_MISMATCH with both values. A module without a recorded build-id takes any. */
bool module_elf_fits(const struct module *module, const struct arch *arch, bool any_build_id,
		     struct err *e);

/* Finds and opens the module's file; without one the reason stays in module->why. False only
 * when an explicitly given --executable cannot be used. */
bool module_find_file(struct module *module, struct arena *arena, const struct arch *arch,
		      const struct module_search *search, struct err *e);

#endif
