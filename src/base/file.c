#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/inside.h"
#include "base/mapping.h"

void fd_close_scoped(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

void standard_files_guard(void)
{
	int fd;

	do
		fd = open("/", O_PATH);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void open_files_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens for reading what a handle (O_PATH) stands for, if it is a regular file: a device or a
 * FIFO is never opened, as that already does something. */
static int handle_open(int handle, struct stat *st)
{
	char self[40];

	if (handle < 0 || fstat(handle, st) != 0)
		return -1;
	if (!S_ISREG(st->st_mode)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
	return open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int file_open_at(int dir, const char *path, bool nofollow, struct stat *st)
{
	SCOPED_FD int handle =
		openat(dir, path, O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0));
	int fd = handle_open(handle, st);
	struct stat again;

	if (fd >= 0 || handle < 0 || errno != ENOENT)
		return fd;
	/* No /proc here. What was looked at need not be what is there now. */
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0 || (fstat(fd, &again) == 0 && again.st_ino == st->st_ino &&
		       again.st_dev == st->st_dev))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

int file_open_inside(int root, const char *path, bool nofollow, struct stat *st)
{
	SCOPED_FD int handle = inside_open(root, path, nofollow);

	return handle_open(handle, st);
}

bool file_look_inside(int root, const char *path, struct stat *st)
{
	SCOPED_FD int handle = inside_open(root, path, false);

	return handle >= 0 && fstat(handle, st) == 0;
}

const char *file_handle_name(struct arena *arena, int handle)
{
	char self[40], name[PATH_MAX];
	ssize_t len;

	snprintf(self, sizeof self, "/proc/self/fd/%d", handle);
	len = readlink(self, name, sizeof name);
	return len > 0 && (size_t)len < sizeof name ? arena_copy(arena, name, (size_t)len)
						    : NULL;
}

const char *file_real_inside(struct arena *arena, int root, const char *path)
{
	SCOPED_FD int handle = inside_open(root, path, false);
	const char *top = file_handle_name(arena, root);
	const char *full = handle >= 0 ? file_handle_name(arena, handle) : NULL;
	size_t len = top ? strlen(top) : 0;

	if (len == 0 || !full || strncmp(top, full, len) != 0)
		return NULL;
	if (top[len - 1] == '/') /* the root of a mount namespace */
		len--;
	return full[len] == '/' ? full + len : NULL;
}

static int open_failed(const char *path, struct err *e)
{
	if (errno == EINVAL)
		err_set(e, ERR_UNSUPPORTED, "%s: not a regular file", path);
	else
		err_set(e, err_kind_of(errno), "%s: %s", path, strerror(errno));
	return -1;
}

int file_open(const char *path, struct err *e)
{
	struct stat st;
	int fd = file_open_at(AT_FDCWD, path, false, &st);

	return fd < 0 ? open_failed(path, e) : fd;
}

int file_open_below(int dir, const char *path, const char *name, struct err *e)
{
	struct stat st;
	int fd = file_open_at(dir, path, false, &st);

	return fd < 0 ? open_failed(name, e) : fd;
}

int file_open_rooted(int root, const char *path, struct err *e)
{
	struct stat st;
	int fd = file_open_inside(root, path, false, &st);

	return fd < 0 ? open_failed(path, e) : fd;
}

bool file_map_fd(int fd, const char *name, struct bytes *out, struct err *e)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) != 0)
		return err_set(e, ERR_SYSTEM, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_UNSUPPORTED, "%s: not a regular file", name);
	*out = (struct bytes){NULL, 0};
	if (st.st_size == 0)
		return true;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return err_set(e, ERR_SYSTEM, "%s: mmap: %s", name, strerror(errno));
	*out = (struct bytes){at, (size_t)st.st_size};
	mapping_add(*out, name, &st);
	return true;
}

bool file_map(const char *path, struct bytes *out, struct err *e)
{
	SCOPED_FD int fd = file_open(path, e);

	return fd >= 0 && file_map_fd(fd, path, out, e);
}

bool file_map_inside(int root, const char *path, struct bytes *out, struct err *e)
{
	SCOPED_FD int fd = file_open_rooted(root, path, e);

	return fd >= 0 && file_map_fd(fd, path, out, e);
}

void file_unmap(struct bytes bytes)
{
	if (!bytes.len)
		return;
	mapping_forget(bytes);
	munmap((void *)(uintptr_t)bytes.at, bytes.len);
}

bool file_read_fd(struct arena *arena, int fd, const char *path, size_t limit,
		  struct bytes *out, struct err *e)
{
	struct stat st;
	size_t capacity = 4096, len = 0;
	char *text;

	/* One buffer for a file that says its size; /proc says 0. */
	if (fstat(fd, &st) == 0 && st.st_size > 0 && (size_t)st.st_size <= limit)
		capacity = (size_t)st.st_size + 1;
	text = arena_alloc(arena, capacity + 1, 1);
	for (;;) {
		ssize_t got = read(fd, text + len, capacity - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(e, err_kind_of(errno), "%s: %s", path, strerror(errno));
		if (got == 0)
			break;
		len += (size_t)got;
		if (len > limit)
			return err_set(e, ERR_LIMIT, "%s: larger than %zu bytes", path, limit);
		if (len == capacity) {
			char *grown = arena_alloc(arena, capacity * 2 + 1, 1);

			memcpy(grown, text, len);
			arena_drop(arena, text, capacity + 1);
			text = grown;
			capacity *= 2;
		}
	}
	text[len] = '\0';
	*out = (struct bytes){(const uint8_t *)text, len};
	return true;
}

bool file_read_all(struct arena *arena, int at, const char *path, size_t limit,
		   struct bytes *out, struct err *e)
{
	SCOPED_FD int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_set(e, err_kind_of(errno), "%s: %s", path, strerror(errno));
	return file_read_fd(arena, fd, path, limit, out, e);
}

bool file_write_whole(int fd, struct bytes contents)
{
	while (contents.len) {
		ssize_t put = write(fd, contents.at, contents.len);

		if (put < 0 && errno != EINTR)
			return false;
		contents = bytes_from(contents, put > 0 ? (uint64_t)put : 0);
	}
	return true;
}
