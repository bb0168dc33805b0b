/*
 * base/cgroup: how much memory the control groups that Stacker is in leave it.
 *
 * Which groups: /proc/self/cgroup (cgroups(7)); where they are seen: /proc/self/mountinfo
 * (proc_pid_mountinfo(5)). Version 2 has memory.max and memory.high, version 1 memory.limit_in_bytes;
 * every group above limits as well. What the page cache holds does not count as used: it goes
 * when memory is needed.
 */
#ifndef STACKER_BASE_CGROUP_H
#define STACKER_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum cgroup_version { CGROUP_1 = 1, CGROUP_2 = 2 };

/* Where a group's files are: `mount` + `path`, and those of the groups above it along `path`. */
struct cgroup_place {
	const char *mount; /* "/sys/fs/cgroup" */
	const char *path;  /* "/a/b", or "" for what is mounted there itself */
};

/* The group that limits memory by this version's rules, by the texts of the two files. False: there is
 * none, or it is mounted nowhere. */
bool cgroup_place(struct arena *arena, const char *groups, const char *mounts,
		  enum cgroup_version version, struct cgroup_place *out);

/* What the group and all above it leave; UINT64_MAX: no limit that can be read. */
uint64_t cgroup_left(struct arena *arena, const struct cgroup_place *place,
		     enum cgroup_version version);

/* Of this process, by both versions. */
uint64_t cgroup_memory_left(struct arena *arena);

#endif
