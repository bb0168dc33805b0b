/*
 * A line: "3: LEASE  ACTIVE    WRITE 1234 08:01:5678 0 EOF": kind, state, what it is for, process,
 * device in hexadecimal, inode.
 */
#include "process/leases.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define LOCKS_MAX ((size_t)16 << 20)

void leases_parse(struct leases *out, struct arena *arena, const char *text)
{
	*out = (struct leases){.count = 0};
	for (const char *line = text; line; line = strchr(line, '\n')) {
		struct lease lease;

		line += *line == '\n';
		if (sscanf(line, "%*u: LEASE %*s WRITE %*u %" SCNx32 ":%" SCNx32 ":%" SCNu64,
			   &lease.major, &lease.minor, &lease.inode) == 3)
			*vec_push(arena, out) = lease;
	}
}

void leases_read(struct leases *out, struct arena *arena)
{
	struct bytes text;

	*out = (struct leases){.count = 0};
	if (file_read_all(arena, AT_FDCWD, "/proc/locks", LOCKS_MAX, &text, NULL))
		leases_parse(out, arena, (const char *)text.at);
}

bool leases_have(const struct leases *leases, const struct map *map)
{
	for (size_t i = 0; i < leases->count; i++)
		if (leases->at[i].inode == map->inode &&
		    leases->at[i].major == map->device_major &&
		    leases->at[i].minor == map->device_minor)
			return true;
	return false;
}
