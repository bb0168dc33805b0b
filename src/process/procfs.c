#include "process/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#define TEXT_MAX ((size_t)1 << 20)
/* include/linux/sched.h; stable since 2.6.27, shown in stat's flags. */
#define PF_KTHREAD 0x00200000

void process_close(struct process *process)
{
	fd_close_scoped(&process->status);
	fd_close_scoped(&process->task);
	fd_close_scoped(&process->root);
	fd_close_scoped(&process->dir);
	process->dir = process->root = process->task = process->status = -1;
}

/* Reads a small /proc file into a buffer without allocating; returns the length, 0 with errno. */
static size_t read_small(int dir, const char *name, char *text, size_t size)
{
	SCOPED_FD int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;

	text[got > 0 ? got : 0] = '\0';
	if (got == 0)
		errno = ESRCH;
	return got > 0 ? (size_t)got : 0;
}

/* The value after "KEY:" at the beginning of a line, or NULL. */
static const char *status_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	}
	return NULL;
}

static uint32_t status_number(const char *text, const char *key)
{
	const char *value = status_value(text, key);

	return value ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

static uint32_t last_number_of_line(const char *value, uint32_t otherwise)
{
	char *end;

	while (value && *value && *value != '\n') {
		unsigned long number = strtoul(value, &end, 10);

		if (end == value)
			break;
		otherwise = (uint32_t)number;
		value = end + strspn(end, " \t");
	}
	return otherwise;
}

/* By errno; it may have been there a moment ago. */
static bool not_opened(uint32_t pid, struct err *e, bool was_there)
{
	if (errno == EMFILE || errno == ENFILE)
		return err_set(
			e, ERR_SYSTEM,
			"process %u: too many open files here: raise the limit (ulimit -n)",
			pid);
	if (was_there)
		return err_set(e, ERR_NOT_FOUND, "process %u is gone", pid);
	return err_set(e, ERR_NOT_FOUND, "no process with pid %u", pid);
}

static bool is_kernel_thread(const struct process *process)
{
	char text[1024], *after;
	unsigned flags = 0;

	if (!read_small(process->dir, "stat", text, sizeof text))
		return false;
	after = strrchr(text, ')'); /* the name may hold anything */
	/* state ppid pgrp session tty tpgid flags */
	return after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       (flags & PF_KTHREAD);
}

/* The letters of proc(5). */
static bool is_state_of_ended(char state)
{
	return state == 'Z' || state == 'X';
}

bool process_has_ended(const struct process_status *status)
{
	return is_state_of_ended(status->state) && status->threads <= 1;
}

bool process_status(const struct process *process, struct process_status *out, struct err *e)
{
	char text[8192];
	const char *value;

	*out = (struct process_status){0};
	if (!read_small(process->dir, "status", text, sizeof text))
		return not_opened(process->pid, e, true);
	value = status_value(text, "Name");
	if (value)
		snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(value, "\n"), value);
	value = status_value(text, "State");
	out->state = value ? *value : '?';
	out->tgid = status_number(text, "Tgid");
	out->parent = status_number(text, "PPid");
	out->tracer = status_number(text, "TracerPid");
	out->threads = status_number(text, "Threads");
	value = status_value(text, "Uid");
	if (value) /* real, effective, saved, file system: the effective one decides */
		sscanf(value, "%*u %u", &out->uid);
	out->namespace_pid = last_number_of_line(status_value(text, "NStgid"), process->pid);
	out->kernel_thread = is_kernel_thread(process);
	return true;
}

/* A file of one thread, as read_small. */
static size_t task_read(const struct process *process, uint32_t tid, const char *file,
			char *text, size_t size)
{
	char name[32];

	snprintf(name, sizeof name, "%u/%s", tid, file);
	return read_small(process->task, name, text, size);
}

bool task_stat(const struct process *process, uint32_t tid, struct task_stat *out)
{
	char text[512], *open, *close;

	if (!task_read(process, tid, "stat", text, sizeof text))
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] == '\0')
		return false;
	snprintf(out->name, sizeof out->name, "%.*s", (int)(close - open - 1), open + 1);
	out->state = close[2];
	return true;
}

uint32_t task_tracer(const struct process *process, uint32_t tid)
{
	char text[8192];

	return task_read(process, tid, "status", text, sizeof text)
		       ? status_number(text, "TracerPid")
		       : 0;
}

bool task_has_ended(const struct process *process, uint32_t tid)
{
	struct task_stat stat;

	/* What cannot be read for another reason (too many open files) may well live. */
	if (!task_stat(process, tid, &stat))
		return errno == ENOENT || errno == ESRCH;
	return is_state_of_ended(stat.state);
}

/* "NUMBER ARGUMENT... SP PC", "-1 SP PC", or "running". */
bool task_call(const struct process *process, uint32_t tid, struct task_call *out)
{
	char text[512], *pc, *sp;

	if (!task_read(process, tid, "syscall", text, sizeof text))
		return false;
	pc = strrchr(text, ' ');
	if (!pc)
		return false;
	*pc++ = '\0';
	sp = strrchr(text, ' ');
	if (!sp)
		return false;
	*out = (struct task_call){strtoll(text, NULL, 10), strtoull(sp, NULL, 16),
				  strtoull(pc, NULL, 16)};
	return true;
}

/* getdents64 by hand: readdir allocates, and this runs also while the target is held. */
struct directory_entry {
	uint64_t inode;
	int64_t off;
	uint16_t size;
	uint8_t type;
	char name[];
};

size_t task_list(const struct process *process, uint32_t *tids, size_t max)
{
	static _Alignas(8) char buffer[64 << 10];
	size_t count = 0;
	long got;

	if (lseek(process->task, 0, SEEK_SET) < 0)
		return 0;
	while ((got = syscall(SYS_getdents64, process->task, buffer, sizeof buffer)) > 0) {
		for (long at = 0; at < got;) {
			const struct directory_entry *entry =
				(const struct directory_entry *)(const void *)(buffer + at);

			at += entry->size;
			if (entry->name[0] < '0' || entry->name[0] > '9')
				continue;
			if (count < max)
				tids[count] = (uint32_t)strtoul(entry->name, NULL, 10);
			count++;
		}
	}
	return count;
}

/* When the main thread is a zombie: the first thread that is not. */
static void living_find(struct process *process)
{
	struct process_status status;
	uint32_t tids[64];
	size_t count;
	char path[32];
	int dir;

	if (!process_status(process, &status, NULL) || status.state != 'Z' ||
	    status.threads < 2)
		return;
	count = task_list(process, tids, sizeof tids / sizeof tids[0]);
	if (count > sizeof tids / sizeof tids[0])
		count = sizeof tids / sizeof tids[0];
	for (size_t i = 0; i < count; i++) {
		if (task_has_ended(process, tids[i]))
			continue;
		snprintf(path, sizeof path, "/proc/%u", tids[i]);
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0)
			continue;
		close(process->dir);
		process->dir = dir;
		process->living = tids[i];
		return;
	}
}

bool process_open(struct process *process, uint32_t pid, struct err *e)
{
	char path[32];

	*process = (struct process){
		.pid = pid, .living = pid, .dir = -1, .root = -1, .task = -1, .status = -1};
	snprintf(path, sizeof path, "/proc/%u", pid);
	process->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process->dir < 0 && errno == ENOENT && access("/proc/self", F_OK) != 0)
		return err_set(e, ERR_SYSTEM,
			       "/proc is not mounted here: mount -t proc proc /proc");
	if (process->dir < 0)
		return not_opened(pid, e, false);
	process->task = openat(process->dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process->task < 0) {
		not_opened(pid, e, true);
		process_close(process);
		return false;
	}
	living_find(process);
	process->root = openat(process->dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	process->status = openat(process->dir, "status", O_RDONLY | O_CLOEXEC);
	return true;
}

bool process_status_of(uint32_t pid, struct process_status *out)
{
	struct process_status status;
	struct process process;
	bool known;

	if (!process_open(&process, pid, NULL))
		return false;
	known = process_status(&process, &status, NULL);
	process_close(&process);
	if (known)
		*out = status;
	return known;
}

static bool is_same(int a_at, const char *a, const char *b)
{
	struct stat sa, sb;

	return fstatat(a_at, a, &sa, AT_EMPTY_PATH) != 0 || stat(b, &sb) != 0 ||
	       (sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino);
}

/* Two roots may be one directory, and what is mounted below differ. */
int process_foreign_root(const struct process *process)
{
	if (process->root < 0 || (is_same(process->root, "", "/") &&
				  is_same(process->dir, "ns/mnt", "/proc/self/ns/mnt")))
		return -1;
	return fcntl(process->root, F_DUPFD_CLOEXEC, 0);
}

uint32_t task_count(const struct process *process)
{
	char text[8192];
	ssize_t got = pread(process->status, text, sizeof text - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return status_number(text, "Threads");
}

bool process_is_gone(uint32_t pid)
{
	struct process_status status;
	struct process process;
	bool ended;

	if (!process_open(&process, pid, NULL))
		return true;
	ended = !process_status(&process, &status, NULL) || process_has_ended(&status);
	process_close(&process);
	return ended;
}

const char *process_text(const struct process *process, struct arena *arena, uint32_t tid,
			 const char *name)
{
	char path[64];
	struct bytes text;
	size_t len;

	if (tid)
		snprintf(path, sizeof path, "task/%u/%s", tid, name);
	else
		snprintf(path, sizeof path, "%s", name);
	if (!file_read_all(arena, process->dir, path, TEXT_MAX, &text, NULL))
		return NULL;
	len = text.len;
	while (len && (text.at[len - 1] == '\n' || text.at[len - 1] == '\0'))
		len--;
	return len ? arena_copy(arena, text.at, len) : NULL;
}

const char *process_link(const struct process *process, struct arena *arena, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(process->dir, name, target, sizeof target);

	return len > 0 ? arena_copy(arena, target, (size_t)len) : NULL;
}
