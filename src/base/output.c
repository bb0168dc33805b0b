/*
 * Opening an output of each kind, and finishing it.
 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output_place.h"

#define MODE_NEW 0600
#define MODE_KEPT 0777

/* ---- Signals ---- */

/* Held back while a file is there that the process set apart (base/placer) does not know yet; from
 * then on it sees to that file however this one ends. No handler is ever set: what waits in the
 * kernel for a dead file system ends by a signal only if the signal ends the program. */
static void signals_hold(sigset_t *before)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
		sigaddset(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

/* ---- New files ---- */

/* -1: the file system has none, or no name could be given to it, which goes by /proc. */
static int nameless_make(int dir)
{
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, MODE_NEW);
	char self[40];

	if (fd < 0)
		return -1;
	output_self_path(self, sizeof self, fd);
	if (access(self, F_OK) == 0)
		return fd;
	close(fd);
	return -1;
}

static int temporary_make(struct output *out)
{
	int fd = -1;

	if (output_name_make(out->temporary, sizeof out->temporary))
		fd = openat(out->to.dir, out->temporary,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE_NEW);
	if (fd < 0)
		out->temporary[0] = '\0';
	return fd;
}

/* What the old file has and the new one can have; not where others could have put the old
 * one. */
static bool attributes_keep(int fd, const struct destination *to)
{
	if (to->kind != DESTINATION_REPLACED || !to->is_private)
		return true;
	return fchown(fd, to->st.st_uid, to->st.st_gid) == 0 &&
	       fchmod(fd, to->st.st_mode & MODE_KEPT) == 0;
}

/* -1 with errno; EPERM also when the old file's owner cannot be given to it. */
static int file_make(struct output *out)
{
	int fd = nameless_make(out->to.dir), number;

	if (fd < 0)
		fd = temporary_make(out);
	if (fd < 0 || attributes_keep(fd, &out->to))
		return fd;
	number = errno;
	output_name_remove(out);
	close(fd);
	errno = number;
	return -1;
}

/* ---- Opening ---- */

static bool open_failed(const char *path, struct err *e)
{
	return err_set(e, err_kind_of(errno), "%s: %s", path, strerror(errno));
}

static bool stream_of(struct output *out, int fd, struct err *e)
{
	if (fd < 0)
		return open_failed(out->path, e);
	out->stream = fdopen(fd, "w");
	if (out->stream)
		return true;
	open_failed(out->path, e);
	close(fd);
	return false;
}

static bool open_descriptor(struct output *out, struct err *e)
{
	int fd = out->to.descriptor, flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return open_failed(out->path, e);
	if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH))
		return err_set(e, ERR_USAGE, "%s: is open for reading only", out->path);
	if (fd != STDOUT_FILENO)
		return stream_of(out, fcntl(fd, F_DUPFD_CLOEXEC, 0), e);
	out->stream = stdout;
	return true;
}

static bool open_filled(struct output *out, struct err *e)
{
	out->filled = destination_open(&out->to, O_WRONLY);
	if (out->filled < 0)
		return open_failed(out->path, e);
	return stream_of(out, memfd_create("output", MFD_CLOEXEC), e);
}

static bool open_file(struct output *out, struct err *e)
{
	sigset_t before;
	int fd, number;
	bool ok;

	signals_hold(&before);
	fd = file_make(out);
	number = errno;
	out->makes_file = fd >= 0;
	ok = fd >= 0 && stream_of(out, fd, e) && output_set_apart(out, e);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (fd >= 0)
		return ok;
	if (out->to.kind == DESTINATION_REPLACED &&
	    (number == EACCES || number == EPERM || number == EROFS))
		return open_filled(out, e);
	return err_set(e, err_kind_of(number), "%s: a new file cannot be made there: %s",
		       out->path, strerror(number));
}

static bool open_found(struct output *out, struct err *e)
{
	switch (out->to.kind) {
	case DESTINATION_DESCRIPTOR:
		return open_descriptor(out, e);
	case DESTINATION_STREAM:
		return stream_of(out, destination_open(&out->to, O_WRONLY), e);
	case DESTINATION_FILLED:
		return open_filled(out, e);
	default:
		return open_file(out, e);
	}
}

bool output_open(struct output *out, struct arena *arena, const char *path, struct err *e)
{
	*out = (struct output){.path = path, .filled = -1, .placer = {-1, -1, 0}};
	out->to = (struct destination){.dir = -1, .handle = -1};
	if (strcmp(path, "-") == 0) {
		out->stream = stdout;
		return true;
	}
	if (!*path)
		return err_set(e, ERR_USAGE, "the name of the output is empty");
	if (!destination_find(&out->to, arena, path, e))
		return false;
	if (open_found(out, e))
		return true;
	output_abandon(out);
	return false;
}

bool output_is_stdout(const struct output *out)
{
	struct stat here, there;

	if (out->stream == stdout)
		return true;
	return out->to.kind == DESTINATION_DESCRIPTOR && out->to.descriptor > 0 &&
	       fstat(out->to.descriptor, &there) == 0 && fstat(STDOUT_FILENO, &here) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* ---- The end ---- */

/* Room is asked for first, so that a full disk leaves the old contents. */
static bool fill(int to, int from)
{
	static uint8_t block[64 << 10];
	struct stat st;
	off_t off = 0;
	ssize_t got;

	if (fstat(from, &st) != 0)
		return false;
	if (st.st_size > 0 && fallocate(to, FALLOC_FL_KEEP_SIZE, 0, st.st_size) != 0 &&
	    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		return false;
	while ((got = pread(from, block, sizeof block, off)) > 0) {
		if (!file_write_whole(to, (struct bytes){block, (size_t)got}))
			return false;
		off += got;
	}
	return got == 0 && ftruncate(to, off) == 0;
}

static bool stream_close(struct output *out)
{
	FILE *stream = out->stream;

	out->stream = NULL;
	return !stream || stream == stdout || fclose(stream) == 0;
}

static bool finish(struct output *out, struct err *e)
{
	int fd = fileno(out->stream);
	bool ok;

	if (fflush(out->stream) != 0 || ferror(out->stream))
		return output_commit_failed(out, errno, e);
	if (out->filled >= 0)
		return fill(out->filled, fd) || output_commit_failed(out, errno, e);
	if (!out->makes_file)
		return true;
	/* Network file systems may say only now that the disk is full. */
	if (out->temporary[0] && !stream_close(out))
		return output_commit_failed(out, errno, e);
	ok = placer_ask(&out->placer, e);
	out->temporary[0] = '\0';
	return ok;
}

static bool close_all(struct output *out)
{
	bool ok = stream_close(out);

	if (out->filled >= 0)
		ok = close(out->filled) == 0 && ok;
	destination_close(&out->to);
	out->filled = -1;
	return ok;
}

bool output_commit(struct output *out, struct err *e)
{
	if (out->stream == stdout) {
		bool ok = fflush(stdout) == 0 && !ferror(stdout);
		int number = errno;

		close_all(out);
		return ok || err_set(e, ERR_SYSTEM, "writing stdout: %s", strerror(number));
	}
	if (!finish(out, e)) {
		output_abandon(out);
		return false;
	}
	return close_all(out) || output_commit_failed(out, errno, e);
}

void output_abandon(struct output *out)
{
	placer_end(&out->placer);
	output_name_remove(out);
	close_all(out);
}
