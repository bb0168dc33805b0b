#include "base/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"

#define LINKS_MAX 40 /* as the kernel */
#define PART (O_PATH | O_NOFOLLOW | O_CLOEXEC)
#define PLACE (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* ---- Own descriptors ---- */

static int number_of(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits < 8 && !text[digits] ? atoi(text) : -1;
}

int descriptor_named(const char *path)
{
	static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	static const char *const places[] = {"/dev/fd/", "/proc/self/fd/",
					     "/proc/thread-self/fd/"};

	for (int i = 0; i < 3; i++) {
		size_t len = strlen(places[i]);

		if (strcmp(path, standard[i]) == 0)
			return i;
		if (strncmp(path, places[i], len) == 0)
			return number_of(path + len);
	}
	return -1;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whatever led there. */
static bool is_own_table(int dir)
{
	struct stat st, own;

	return fstat(dir, &st) == 0 &&
	       ((stat("/proc/self/fd", &own) == 0 && is_same(&st, &own)) ||
		(stat("/proc/thread-self/fd", &own) == 0 && is_same(&st, &own)));
}

/* ---- Rules ---- */

static bool is_trusted(uid_t owner)
{
	return owner == geteuid() || owner == 0;
}

static bool has_access_list(int handle)
{
	char path[48];

	snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
	return getxattr(path, "system.posix_acl_access", NULL, 0) > 0;
}

/* A group that has the number of the user is that user's own. */
static bool is_private(int dir, const struct stat *st)
{
	bool own_group = st->st_gid == 0 || st->st_gid == geteuid();

	/* With an access control list the group's bits are the mask of all that it names. */
	return is_trusted(st->st_uid) && !(st->st_mode & S_IWOTH) &&
	       (!(st->st_mode & S_IWGRP) || (own_group && !has_access_list(dir)));
}

/* The mount that a descriptor lies on; -1: not known. */
static long mount_of(int fd)
{
	char path[48], line[64];
	long mount = -1;
	FILE *info;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof line, info))
		if (sscanf(line, "mnt_id: %ld", &mount) == 1)
			break;
	if (info)
		fclose(info);
	return mount;
}

/* Other names, an access control list, a mount: what a new file would not have. */
static bool has_to_stay(const struct destination *d)
{
	return d->dir < 0 || d->st.st_nlink > 1 || has_access_list(d->handle) ||
	       mount_of(d->dir) != mount_of(d->handle);
}

static const char *what_is(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? "file" : S_ISFIFO(st->st_mode) ? "FIFO" : "device";
}

static bool may_be_written(const struct destination *d, const char *path, struct err *e)
{
	if (d->is_private || d->st.st_uid == geteuid())
		return true;
	return err_set(e, ERR_PERMISSION,
		       "%s: a %s of another user (uid %u) where others may write: remove it, "
		       "or choose another name",
		       path, what_is(&d->st), (unsigned)d->st.st_uid);
}

static bool judge(struct destination *d, const char *path, struct err *e)
{
	bool ours = d->st.st_uid == geteuid() || geteuid() == 0;

	if (S_ISSOCK(d->st.st_mode))
		return err_set(e, ERR_USAGE, "%s: is a socket", path);
	if (!may_be_written(d, path, e))
		return false;
	if (!S_ISREG(d->st.st_mode))
		d->kind = DESTINATION_STREAM;
	else if (d->is_private)
		d->kind = ours && !has_to_stay(d) ? DESTINATION_REPLACED : DESTINATION_FILLED;
	else /* ours; but its other names may be somebody's work */
		d->kind = d->dir >= 0 && mount_of(d->dir) == mount_of(d->handle)
				  ? DESTINATION_REPLACED
				  : DESTINATION_FILLED;
	return true;
}

/* ---- The way there ---- */

struct walk {
	struct arena *arena;
	const char *path;  /* as given, for messages */
	const char *rest;  /* what is not resolved yet */
	const char *after; /* of `rest`, behind `part` */
	char *part;
	int at; /* the directory in which `part` is */
	unsigned links;
	bool crossed; /* a link of /proc: to where other mounts may be */
};

static bool failed(const struct walk *w, int number, struct err *e)
{
	return err_set(e, err_kind_of(number), "%s: %s", w->path, strerror(number));
}

static bool walk_to(struct walk *w, int fd, struct err *e)
{
	if (fd < 0)
		return failed(w, errno, e);
	if (w->at >= 0)
		close(w->at);
	w->at = fd;
	return true;
}

static bool walk_begin(struct walk *w, const char *rest, struct err *e)
{
	w->rest = rest;
	if (rest[0] == '/')
		return walk_to(w, open("/", PLACE), e);
	return w->at >= 0 || walk_to(w, open(".", PLACE), e);
}

static void walk_next_part(struct walk *w)
{
	size_t len;

	w->rest += strspn(w->rest, "/");
	len = strcspn(w->rest, "/");
	w->part = arena_copy(w->arena, w->rest, len);
	w->after = w->rest + len;
}

static bool link_follow(struct walk *w, int link, const struct stat *st, struct err *e)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(link, "", target, sizeof target - 1);
	struct stat dir;

	if (len <= 0 || fstat(w->at, &dir) != 0)
		return failed(w, len < 0 ? errno : ENOENT, e);
	target[len] = '\0';
	if (!is_trusted(st->st_uid) || (st->st_nlink > 1 && !is_private(w->at, &dir)))
		return err_set(e, ERR_PERMISSION,
			       "%s: '%s' is a link of another user (uid %u), to %s: name the "
			       "place itself",
			       w->path, w->part, (unsigned)st->st_uid, target);
	if (++w->links > LINKS_MAX)
		return failed(w, ELOOP, e);
	return walk_begin(w, arena_printf(w->arena, "%s%s", target, w->after), e);
}

static bool is_kernels(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* The files of a process that is not dumpable are root's, whoever runs it: its users count. */
static bool is_process_trusted(int dir)
{
	static const char *const places[] = {"status", "../status", "../../status"};
	unsigned users[4];
	char line[128];
	bool known = false, trusted = true;

	for (size_t i = 0; i < 3 && !known; i++) {
		int fd = openat(dir, places[i], O_RDONLY | O_CLOEXEC);
		FILE *status = fd >= 0 ? fdopen(fd, "r") : NULL;

		while (status && !known && fgets(line, sizeof line, status))
			known = sscanf(line, "Uid: %u %u %u %u", &users[0], &users[1],
				       &users[2], &users[3]) == 4;
		if (status)
			fclose(status);
		else if (fd >= 0)
			close(fd);
	}
	for (size_t i = 0; known && i < 4; i++)
		trusted = trusted && is_trusted(users[i]);
	return known && trusted;
}

/* Is the mount one of our own namespace? Elsewhere its user may have put any file of the machine
 * under any name. */
static bool is_mounted_here(int fd)
{
	long mount = mount_of(fd), one;
	FILE *mounts = mount >= 0 ? fopen("/proc/self/mountinfo", "re") : NULL;
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (mounts && !found && getline(&line, &room, mounts) > 0)
		found = sscanf(line, "%ld", &one) == 1 && one == mount;
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

static bool foreign_mount(const struct walk *w, struct err *e)
{
	return err_set(e, ERR_PERMISSION,
		       "%s: lies in another mount namespace (a container's), where names may "
		       "lead anywhere: write elsewhere, and copy it there",
		       w->path);
}

/* A link of /proc leads to the thing itself, wherever it is; its text may be no path. */
static bool magic_end(struct walk *w, struct destination *out, struct err *e)
{
	struct stat dir;

	out->descriptor = is_own_table(w->at) ? number_of(w->part) : -1;
	if (out->descriptor >= 0) {
		out->kind = DESTINATION_DESCRIPTOR;
		return true;
	}
	if (fstat(w->at, &dir) != 0)
		return failed(w, errno, e);
	if (!is_trusted(dir.st_uid) || !is_process_trusted(w->at))
		return err_set(e, ERR_PERMISSION,
			       "%s: is what a process of another user (uid %u) has open: name "
			       "the file itself",
			       w->path, (unsigned)dir.st_uid);
	out->handle = openat(w->at, w->part, O_PATH | O_CLOEXEC);
	if (out->handle < 0 || fstat(out->handle, &out->st) != 0)
		return failed(w, errno, e);
	if (S_ISDIR(out->st.st_mode))
		return err_set(e, ERR_USAGE, "%s: is a directory", w->path);
	if (S_ISREG(out->st.st_mode) && !is_mounted_here(out->handle))
		return foreign_mount(w, e);
	out->is_private = true;
	return judge(out, w->path, e);
}

static bool end_at(struct walk *w, struct destination *out, struct err *e)
{
	struct stat dir;

	if (fstat(w->at, &dir) != 0)
		return failed(w, errno, e);
	out->dir = w->at;
	w->at = -1;
	out->name = w->part;
	out->is_private = is_private(out->dir, &dir);
	if (w->crossed &&
	    !(is_mounted_here(out->dir) && (out->handle < 0 || is_mounted_here(out->handle))))
		return foreign_mount(w, e);
	return out->handle < 0 || judge(out, w->path, e);
}

/* One part further. `ended` says that `out` is filled. */
static bool walk_on(struct walk *w, struct destination *out, bool *ended, struct err *e)
{
	SCOPED_FD int fd = openat(w->at, w->part, PART);
	bool last = w->after[0] == '\0';
	struct stat st;

	*ended = last;
	if (fd < 0 && errno == ENOENT && last)
		return end_at(w, out, e);
	if (fd < 0 || fstat(fd, &st) != 0)
		return failed(w, errno, e);
	if (S_ISLNK(st.st_mode) && is_kernels(fd)) {
		w->crossed = true;
		if (last)
			return magic_end(w, out, e);
		w->rest = w->after;
		return walk_to(w, openat(w->at, w->part, PLACE), e);
	}
	if (S_ISLNK(st.st_mode)) {
		*ended = false;
		if (w->crossed && !is_mounted_here(w->at)) /* it is meant for another root */
			return foreign_mount(w, e);
		return link_follow(w, fd, &st, e);
	}
	if (S_ISDIR(st.st_mode) == last)
		return last ? err_set(e, ERR_USAGE, "%s: is a directory", w->path)
			    : failed(w, ENOTDIR, e);
	out->st = st;
	out->handle = last ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	w->rest = w->after;
	return last ? end_at(w, out, e) : walk_to(w, fcntl(fd, F_DUPFD_CLOEXEC, 0), e);
}

bool destination_find(struct destination *out, struct arena *arena, const char *path,
		      struct err *e)
{
	struct walk w = {.arena = arena, .path = path, .at = -1};
	bool ended = false, ok;

	*out = (struct destination){.kind = DESTINATION_NEW, .dir = -1, .handle = -1};
	out->descriptor = descriptor_named(path);
	if (out->descriptor >= 0) {
		out->kind = DESTINATION_DESCRIPTOR;
		return true;
	}
	ok = walk_begin(&w, path, e);
	while (ok && !ended) {
		walk_next_part(&w);
		ok = w.part[0] ? walk_on(&w, out, &ended, e)
			       : err_set(e, ERR_USAGE, "%s: is a directory", path);
	}
	if (w.at >= 0)
		close(w.at);
	if (!ok)
		destination_close(out);
	return ok;
}

bool destination_still_good(const struct destination *destination, const char *path,
			    bool *exists, struct err *e)
{
	SCOPED_FD int fd = openat(destination->dir, destination->name, PART);
	struct destination now = *destination;

	*exists = fd >= 0;
	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0 || fstat(fd, &now.st) != 0)
		return err_set(e, ERR_SYSTEM, "%s: %s", path, strerror(errno));
	if (!S_ISREG(now.st.st_mode))
		return err_set(e, ERR_SYSTEM, "%s: is no regular file any more", path);
	return may_be_written(&now, path, e);
}

int destination_open(const struct destination *d, int flags)
{
	char self[40];
	struct stat now;
	int fd;

	snprintf(self, sizeof self, "/proc/self/fd/%d", d->handle);
	fd = open(self, flags | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0 || errno != ENOENT || d->dir < 0)
		return fd;
	/* No /proc here. */
	fd = openat(d->dir, d->name, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0 || (fstat(fd, &now) == 0 && is_same(&now, &d->st)))
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

void destination_close(struct destination *destination)
{
	if (destination->dir >= 0)
		close(destination->dir);
	if (destination->handle >= 0)
		close(destination->handle);
	destination->dir = destination->handle = -1;
}
