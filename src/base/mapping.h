/*
 * base/mapping: mapped files that may become shorter while they are read.
 *
 * Reading a mapped page that its file no longer has, or that cannot be read from its disk, is a
 * SIGBUS: whoever may write a file could end Stacker. With the guard on, the rest of that
 * mapping becomes zeros instead, which readers take for what they are: damage. The mapping is
 * noted as cut.
 */
#ifndef STACKER_BASE_MAPPING_H
#define STACKER_BASE_MAPPING_H

#include <sys/stat.h>

#include "base/bytes.h"

/* Which file it was, and which contents: another file, or one that was written to since,
 * differs in some of these. Nobody but the kernel sets dev, ino and ctime. */
struct mapping_stamp {
	uint64_t dev, ino, size;
	uint64_t mtime_ns, ctime_ns; /* since 1970; what does not fit wraps */
};

/* From now on a SIGBUS in a known mapping is mended; any other does what it always did. */
void mappings_guard(void);

/* Makes a mapping known. `name` is kept: it must stay as long as the mapping. `st` is of the
 * file. */
void mapping_add(struct bytes mapping, const char *name, const struct stat *st);
/* Before it is unmapped. */
void mapping_forget(struct bytes mapping);

/* False for bytes that are no mapping of a file. */
bool mapping_stamp(struct bytes mapping, struct mapping_stamp *out);

/* At most so many of the bytes can be other than zeros: a sparse file may state any size. Judged by
 * what it takes on its disk, generously, since file systems compress. All, of what is no mapping. */
uint64_t mapping_weight(struct bytes mapping);

/* What was read of it is not needed any more: its pages go, and come again if they are. `part` is in a
 * mapping; of anything else nothing goes. */
void mapping_release(struct bytes part);

/* Of a mapping that is known. */
bool mapping_is_cut(struct bytes mapping);

/* The names of the mappings that were cut, one per call, starting at *after = 0; NULL: no more. */
const char *mapping_next_cut(size_t *after);

#endif
