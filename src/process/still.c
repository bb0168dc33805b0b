/*
 * The copy.
 */
#include "process/still.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "process/step.h"

/* Older headers lack it. */
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static bool is_fickle(int fd)
{
	struct statfs fs;
	struct stat st;

	return fstatfs(fd, &fs) == 0 && (uint32_t)fs.f_type == FUSE_SUPER_MAGIC &&
	       fstat(fd, &st) == 0 && st.st_size <= STILL_MAX;
}

static bool bytes_copy(int from, int to)
{
	static char bytes[64 << 10];
	ssize_t got;
	off_t off = 0;

	while ((got = pread(from, bytes, sizeof bytes, off)) > 0) {
		if (pwrite(to, bytes, (size_t)got, off) != got)
			return false;
		off += got;
		step_again();
	}
	return got == 0;
}

int still_file(int fd)
{
	int copy, number;

	if (fd < 0 || !is_fickle(fd))
		return fd;
	copy = memfd_create("stacker", MFD_CLOEXEC);
	if (copy < 0)
		return fd; /* Linux before 3.17, or too many files */
	if (!bytes_copy(fd, copy)) {
		number = errno;
		close(copy);
		copy = -1;
		errno = number;
	}
	close(fd);
	return copy;
}
