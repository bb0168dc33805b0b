/*
 * snapshot/module_source: what a live process gave of one module, as it was read.
 *
 * Whoever reads it is as powerful as root and judges nothing: whether a file is the one that is
 * mapped is found out later, by who has given up all rights (module/module).
 */
#ifndef STACKER_SNAPSHOT_MODULE_SOURCE_H
#define STACKER_SNAPSHOT_MODULE_SOURCE_H

#include <stdbool.h>

#include "base/bytes.h"

/* Beside its file, which is a descriptor or -1. */
struct module_source {
	const char *why; /* there is no file */
	/* The file was found by its name, and is not known to be the one that is mapped: only its
	 * build-id can prove that. */
	bool is_unproven;
	struct bytes first_page; /* of its image in memory: headers and, nearly always, the
				  * build-id; empty: not to be had */
};

#endif
