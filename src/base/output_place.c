/*
 * Putting the finished file in its place, by a process that is set apart when the output is opened.
 */
#include "base/output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

bool output_name_make(char *out, size_t size)
{
	uint64_t chance;

	if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
		return false;
	snprintf(out, size, ".new-%016llx", (unsigned long long)chance);
	return true;
}

void output_self_path(char *out, size_t size, int fd)
{
	snprintf(out, size, "/proc/self/fd/%d", fd);
}

bool output_commit_failed(const struct output *out, int number, struct err *e)
{
	return err_set(e, ERR_SYSTEM, "writing %s: %s", out->path, strerror(number));
}

/* Never onto what is there. */
static bool name_give(const struct output *out, int fd, const char *name)
{
	char self[40];

	output_self_path(self, sizeof self, fd);
	return linkat(AT_FDCWD, self, out->to.dir, name, AT_SYMLINK_FOLLOW) == 0;
}

static bool rename_onto(struct output *out, unsigned flags)
{
	int dir = out->to.dir;

	return syscall(SYS_renameat2, dir, out->temporary, dir, out->to.name, flags) == 0;
}

/* Where something is there: a rename replaces it, whatever it became meanwhile, and follows
 * nothing. Signals wait. */
static bool replace(struct output *out, int fd)
{
	if (!out->temporary[0]) {
		if (!output_name_make(out->temporary, sizeof out->temporary))
			return false;
		if (!name_give(out, fd, out->temporary)) {
			out->temporary[0] = '\0';
			return false;
		}
	}
	if (!rename_onto(out, 0))
		return false;
	out->temporary[0] = '\0';
	return true;
}

/* EEXIST: something is there now. */
static bool appear(struct output *out, int fd)
{
	if (!out->temporary[0])
		return name_give(out, fd, out->to.name);
	if (!rename_onto(out, RENAME_NOREPLACE) && (errno != EINVAL || !rename_onto(out, 0)))
		return false;
	out->temporary[0] = '\0';
	return true;
}

/* Once more when something appeared in between. */
static bool put_in_place(struct output *out, int fd, struct err *e)
{
	bool exists;

	for (int round = 0; round < 2; round++) {
		if (!destination_still_good(&out->to, out->path, &exists, e))
			return false;
		if (exists ? replace(out, fd) : appear(out, fd))
			return true;
		if (errno != EEXIST)
			break;
	}
	return output_commit_failed(out, errno, e);
}

static bool place(void *context, struct err *e)
{
	struct output *out = context;
	bool ok = put_in_place(out, fileno(out->stream), e);

	output_name_remove(out);
	return ok;
}

static void give_up(void *context)
{
	output_name_remove(context);
}

void output_name_remove(struct output *out)
{
	if (out->temporary[0])
		unlinkat(out->to.dir, out->temporary, 0);
	out->temporary[0] = '\0';
}

bool output_set_apart(struct output *out, struct err *e)
{
	struct placer_task task = {place, give_up, out};

	return placer_start(&out->placer, &task) ||
	       err_set(e, ERR_SYSTEM, "%s: no process can be made for it: %s", out->path,
		       strerror(errno));
}
