/*
 * symbol/points_file: the points of a debug file's compressed sections (dwarf/points), kept from one run
 * to the next in the store.
 *
 * One file in the store for the file that has the debug information, known by its stamp as in symbol/cache,
 * and for this very build of Stacker. Only where much is compressed: elsewhere all of it is decompressed as
 * quickly. It is written while the run learns, and appears at the end, if the run had no problem.
 */
#ifndef STACKER_SYMBOL_POINTS_FILE_H
#define STACKER_SYMBOL_POINTS_FILE_H

#include "base/store.h"
#include "dwarf/points.h"

struct points_file;

/* NULL: none are kept for this file. */
struct points_file *points_file_open(struct arena *arena, const struct store *store,
				     const struct elf *elf);

struct points *points_file_points(struct points_file *file);

/* `good`: what was learned of the file is true as far as is known. */
void points_file_close(struct points_file *file, bool good);

#endif
