/*
 * Which files may be read and written: Landlock (the kernel's userspace-api/landlock.rst).
 *
 * Its rules only allow, each a directory with all below it. "Everything but /proc" has to be
 * said as a list, then: a directory that has something excluded below it is not allowed itself,
 * but each of its entries is, and so on. What is excluded are the kernel's own file systems,
 * wherever they are mounted, and some directories of a root.
 *
 * To name a directory on a file server is already to ask the server, which may not answer.
 * Those of the list are left to a process that is given up when it takes too long.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/sandbox_mounts.h"
#include "cli/sandbox_parts.h"

/* What each version of the interface added; older headers lack the names. */
static const struct version_rights {
	int since;
	uint64_t files, network, scoped;
} version_rights[] = {
	{1, LANDLOCK_ACCESS_FS_MAKE_SYM * 2 - 1, 0, 0}, /* all up to this one */
	{2, 1 << 13, 0, 0},                             /* REFER: into another directory */
	{3, 1 << 14, 0, 0},                             /* TRUNCATE */
	{4, 0, 3, 0},                                   /* BIND_TCP, CONNECT_TCP */
	{5, 1 << 15, 0, 0},                             /* IOCTL_DEV */
	{6, 0, 0, 3}, /* ABSTRACT_UNIX_SOCKET, SIGNAL: of processes that are not in it too */
};

/* struct landlock_ruleset_attr of version 6. A kernel takes a longer one than its own when the
 * rest is zero. */
struct ruleset {
	uint64_t files, network, scoped;
};

#define READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITING                                                           \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_REG)

/* clang-format off */
/* Not read of any root. In containers /dev and /sys are not always such file systems. */
static const char *const excluded_names[] = {"proc", "sys", "dev", "run"};
/* But these are: build trees and disks of users; what there may be to decompress. */
static const char *const included_paths[] = {
	"/dev/shm", "/run/media", "/run/user", "/run/host", "/proc/meminfo",
};
/* clang-format on */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* Entries that are allowed one by one. Where there are more, the directory is, as a whole. */
#define ENTRIES_MAX 4096
#define REMOTE_MS 300

struct listing {
	struct arena arena;
	int rules;
	struct exceptions exceptions;
	VEC(const char *) remote;
	size_t entries_left;
	bool asks_remote; /* the process for those */
};

/* ---- Rules ---- */

static void rule_add(const struct listing *all, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr beneath = {.allowed_access = access, .parent_fd = fd};

	syscall(SYS_landlock_add_rule, all->rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

static void directory_allow(struct listing *all, int fd, const char *path);

static void entry_allow(struct listing *all, int dir, const char *directory,
			const struct dirent *entry)
{
	const char *path =
		arena_printf(&all->arena, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory,
			     entry->d_name);
	bool is_directory = entry->d_type == DT_DIR;
	enum verdict verdict = verdict_of(&all->exceptions, path, all->asks_remote);
	struct stat st;

	if (verdict == ASK_LATER)
		*vec_push(&all->arena, &all->remote) = path;
	if (verdict == EXCLUDE || verdict == ASK_LATER ||
	    (!is_directory && entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN))
		return;
	SCOPED_FD int fd = openat(dir, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (entry->d_type == DT_UNKNOWN) {
		if (fstat(fd, &st) != 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
			return;
		is_directory = S_ISDIR(st.st_mode);
	}
	if (is_directory)
		directory_allow(all, fd, path);
	else
		rule_add(all, fd, LANDLOCK_ACCESS_FS_READ_FILE);
}

static void entries_allow(struct listing *all, int fd, const char *path)
{
	int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = readable >= 0 ? fdopendir(readable) : NULL;
	struct dirent *entry;

	if (!dir) { /* one that may be passed and not listed */
		rule_add(all, fd, READING);
		return;
	}
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (all->entries_left == 0) {
			rule_add(all, fd, READING);
			break;
		}
		all->entries_left--;
		entry_allow(all, fd, path, entry);
	}
	closedir(dir);
}

static void directory_allow(struct listing *all, int fd, const char *path)
{
	if (verdict_of(&all->exceptions, path, all->asks_remote) == GO_INSIDE)
		entries_allow(all, fd, path);
	else
		rule_add(all, fd, READING);
}

/* ---- Places ---- */

/* By its name in this process's view. One of another mount namespace has the name that it has
 * there, which is "/" for the root of a container. */
static const char *place_path(struct listing *all, int fd)
{
	const char *path = file_handle_name(&all->arena, fd);

	return path ? path : "";
}

static bool is_proc(int dir, const char *name)
{
	SCOPED_FD int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Another root has its own /proc, which this process's mount points need not show. */
static void root_exclude(struct listing *all, int fd, const char *path)
{
	if (strcmp(path, "/") == 0)
		path = "";
	else if (!is_proc(fd, "proc"))
		return;
	for (size_t i = 0; i < COUNT(excluded_names); i++)
		*vec_push(&all->arena, &all->exceptions) = (struct exception){
			arena_printf(&all->arena, "%s/%s", path, excluded_names[i]), true};
}

static void read_allow(struct listing *all, int fd)
{
	const char *path = place_path(all, fd);
	struct stat st;

	if (fstat(fd, &st) != 0 || is_proc(fd, "."))
		return;
	if (!S_ISDIR(st.st_mode)) {
		rule_add(all, fd, LANDLOCK_ACCESS_FS_READ_FILE);
		return;
	}
	root_exclude(all, fd, path);
	directory_allow(all, fd, path);
}

static void path_allow(struct listing *all, const char *path, uint64_t access)
{
	SCOPED_FD int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0)
		rule_add(all, fd, access);
}

static void own_root_allow(struct listing *all)
{
	SCOPED_FD int root = open("/", O_PATH | O_CLOEXEC);
	struct stat st;

	if (root < 0)
		return;
	root_exclude(all, root, "/");
	entries_allow(all, root, "/");
	for (size_t i = 0; i < COUNT(included_paths); i++)
		if (stat(included_paths[i], &st) == 0)
			path_allow(all, included_paths[i],
				   S_ISDIR(st.st_mode) ? READING
						       : LANDLOCK_ACCESS_FS_READ_FILE);
}

/* ---- Places on file servers ---- */

__attribute__((noreturn)) static void remote_ask(struct listing *all)
{
	all->asks_remote = true;
	for (size_t i = 0; i < all->remote.count; i++) {
		SCOPED_FD int fd = open(all->remote.at[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (fd >= 0)
			directory_allow(all, fd, all->remote.at[i]);
	}
	_exit(0);
}

static void remote_allow(struct listing *all)
{
	struct pollfd ended = {.events = POLLIN};
	int ends[2];
	pid_t pid;

	if (all->remote.count == 0 || pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid = fork();
	if (pid == 0)
		remote_ask(all);
	close(ends[1]);
	ended.fd = ends[0];
	if (pid > 0) {
		poll(&ended, 1, REMOTE_MS);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, WNOHANG);
	}
	close(ends[0]);
}

/* ---- All ---- */

static struct ruleset ruleset_of(int version)
{
	struct ruleset set = {0, 0, 0};

	for (size_t i = 0; i < COUNT(version_rights); i++) {
		const struct version_rights *row = &version_rights[i];

		if (version < row->since)
			break;
		set.files |= row->files;
		set.network |= row->network;
		set.scoped |= row->scoped;
	}
	return set;
}

static void places_allow(struct listing *all, const struct sandbox_place *places, size_t count)
{
	mounts_read(&all->arena, &all->exceptions);
	own_root_allow(all);
	for (size_t i = 0; i < count; i++) {
		if (places[i].fd < 0)
			continue;
		if (places[i].use == SANDBOX_WRITE)
			rule_add(all, places[i].fd, WRITING | READING);
		else
			read_allow(all, places[i].fd);
	}
	remote_allow(all);
}

int sandbox_files_restrict(const struct sandbox_place *places, size_t count, int *version)
{
	struct listing all = {.entries_left = ENTRIES_MAX};
	struct ruleset set;
	int error = 0;

	/* Whatever the reason: not here. */
	*version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0,
				LANDLOCK_CREATE_RULESET_VERSION);
	if (*version <= 0) {
		*version = 0;
		return ENOSYS;
	}
	set = ruleset_of(*version);
	SCOPED_FD int rules = (int)syscall(SYS_landlock_create_ruleset, &set, sizeof set, 0);
	if (rules < 0)
		return errno;
	all.rules = rules;
	places_allow(&all, places, count);
	if (syscall(SYS_landlock_restrict_self, rules, 0) != 0)
		error = errno;
	arena_free(&all.arena);
	return error;
}
