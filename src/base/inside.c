/*
 * Paths inside another root: the kernel's own way, and the same by hand.
 *
 * By hand each component is opened for itself, without following, and links are put in by their
 * text. The directories that were passed stay open until the end: `..` goes back to what was
 * passed, not to what the kernel calls the parent by then, so nobody who moves directories
 * meanwhile leads the walk out of the root.
 */
#include "base/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP (O_PATH | O_NOFOLLOW | O_CLOEXEC)
#define LINKS_MAX 40   /* as the kernel */
#define PASSED_MAX 256 /* descriptors at one time; no tree in use is that deep */

struct walk {
	int passed[PASSED_MAX]; /* from the root on, which is the caller's */
	size_t count;
	char rest[PATH_MAX]; /* what is still to go */
	unsigned links;
	bool nofollow;
};

static int failed(int number)
{
	errno = number;
	return -1;
}

static void back_to(struct walk *walk, size_t count)
{
	while (walk->count > count)
		close(walk->passed[--walk->count]);
}

/* Puts `text` before what is still to go; false: too long. */
static bool rest_prepend(struct walk *walk, const char *text, size_t len)
{
	size_t left = strlen(walk->rest);

	if (len + left >= sizeof walk->rest)
		return false;
	memmove(walk->rest + len, walk->rest, left + 1);
	memcpy(walk->rest, text, len);
	return true;
}

/* Takes the first component of what is still to go; "" at the end. */
static bool component_take(struct walk *walk, char name[NAME_MAX + 1])
{
	char *at = walk->rest + strspn(walk->rest, "/");
	size_t len = strcspn(at, "/");

	if (len > NAME_MAX)
		return false;
	memcpy(name, at, len);
	name[len] = '\0';
	memmove(walk->rest, at + len, strlen(at + len) + 1);
	return true;
}

/* 0, or -1 with errno. */
static int link_follow(struct walk *walk, int link)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(link, "", target, sizeof target);

	if (len < 0)
		return -1;
	if (len == 0)
		return failed(ENOENT);
	if (++walk->links > LINKS_MAX)
		return failed(ELOOP);
	if ((size_t)len == sizeof target || !rest_prepend(walk, target, (size_t)len))
		return failed(ENAMETOOLONG);
	if (target[0] == '/')
		back_to(walk, 1);
	return 0;
}

/* `fd` is what the component is; it is the walk's from now on. */
static int enter(struct walk *walk, int fd)
{
	struct stat st;
	int result = 0;

	if (fstat(fd, &st) != 0) {
		result = failed(errno);
	} else if (S_ISLNK(st.st_mode) && (walk->rest[0] || !walk->nofollow)) {
		result = link_follow(walk, fd);
		close(fd);
		return result;
	} else if (walk->rest[0] && !S_ISDIR(st.st_mode)) {
		result = failed(ENOTDIR);
	} else if (walk->count == PASSED_MAX) {
		result = failed(ENAMETOOLONG);
	}
	if (result == 0)
		walk->passed[walk->count++] = fd;
	else
		close(fd);
	return result;
}

/* 1: there is more to go; 0: it is there; -1 with errno. */
static int step(struct walk *walk)
{
	char name[NAME_MAX + 1];
	int fd;

	if (!component_take(walk, name))
		return failed(ENAMETOOLONG);
	if (!name[0])
		return 0;
	if (strcmp(name, ".") == 0)
		return 1;
	if (strcmp(name, "..") == 0) {
		back_to(walk, walk->count > 1 ? walk->count - 1 : 1);
		return 1;
	}
	fd = openat(walk->passed[walk->count - 1], name, STEP);
	return fd >= 0 && enter(walk, fd) == 0 ? 1 : -1;
}

int inside_walk(int root, const char *path, bool nofollow)
{
	struct walk walk = {.passed = {root}, .count = 1, .nofollow = nofollow};
	int went = 1, found = -1, number;

	if (!*path)
		return failed(ENOENT);
	if (!rest_prepend(&walk, path, strlen(path)))
		return failed(ENAMETOOLONG);
	while (went == 1)
		went = step(&walk);
	if (went == 0)
		found = fcntl(walk.passed[walk.count - 1], F_DUPFD_CLOEXEC, 0);
	number = errno;
	back_to(&walk, 1);
	errno = number;
	return found;
}

int inside_open(int root, const char *path, bool nofollow)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0)),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int found = (int)syscall(SYS_openat2, root, path, &how, sizeof how);

	/* EPERM: the filter of a container, or our own sandbox. EAGAIN: something was renamed
	 * on the way, anywhere on the machine. */
	if (found < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
		return inside_walk(root, path, nofollow);
	return found;
}
