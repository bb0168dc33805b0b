/*
 * process/leases: files whose opening would be felt.
 *
 * Who holds a lease for writing (fcntl(2), F_SETLEASE) gets a signal when the file is opened, whose
 * default action ends him, and the opening waits for him. /proc/locks (proc(5)) tells.
 */
#ifndef STACKER_PROCESS_LEASES_H
#define STACKER_PROCESS_LEASES_H

#include "snapshot/snapshot.h"

struct leases {
	struct lease {
		uint32_t major, minor;
		uint64_t inode;
	} * at;
	size_t count, capacity;
};

/* Of the text of /proc/locks. */
void leases_parse(struct leases *out, struct arena *arena, const char *text);
/* Of this machine now; none where it does not say. */
void leases_read(struct leases *out, struct arena *arena);

bool leases_have(const struct leases *leases, const struct map *map);

#endif
