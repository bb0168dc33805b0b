/*
 * What remains possible in the sandbox, and what does not: a table of system calls, each made
 * in a child of its own. Runs on this machine's kernel and, by scripts/test-arm64, on an older
 * one of arm64.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "cli/sandbox.h"

static char place[64];

static char *in_place(const char *name)
{
	static char paths[16][128];
	static unsigned next;
	char *path = paths[next++ % 16];

	snprintf(path, sizeof paths[0], "%s/%s", place, name);
	return path;
}

static void enter(struct sandbox *sandbox)
{
	struct sandbox_place yes = {open(in_place("yes"), O_PATH), SANDBOX_WRITE};

	sandbox_enter(&yes, 1, sandbox);
	close(yes.fd);
}

/* What this kernel has: a child tries. */
static struct sandbox sandbox_here(void)
{
	struct sandbox *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct sandbox got;
	pid_t child = fork();

	if (child == 0) {
		enter(shared);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	got = *shared;
	munmap(shared, sizeof *shared);
	return got;
}

/* By its name; -1: this architecture has no such call, -2: none has. */
static long call_number(const char *name)
{
	bool known = false;

	for (int64_t i = 0; i < ARCH_SYSCALLS_MAX; i++) {
		const char *here = arch_syscall_name(arch_host(), i);
		const char *x86 = arch_syscall_name(&arch_x86_64, i);

		if (here && strcmp(here, name) == 0)
			return (long)i;
		known = known || (x86 && strcmp(x86, name) == 0);
	}
	return known ? -1 : -2;
}

/* Who must be there for a row to hold. */
#define SECCOMP 0, INT_MAX
#define LANDLOCK(version) version, INT_MAX
#define NO_LANDLOCK_FROM(version) 0, version - 1

#define ARGS_MAX 6
#define P(pointer) ((long)(uintptr_t)(pointer))

struct row {
	const char *what, *call;
	long args[ARGS_MAX];
	int want;     /* errno; 0: it succeeds */
	int from, to; /* versions of Landlock */
};

/* Opened before the sandbox is entered. */
static struct {
	int pipe[2], kept, yes, no, socket;
	pid_t victim;
	char proc[12][64];
} outside;

static const char *of_victim(const char *name)
{
	static unsigned next;
	char *path = outside.proc[next++ % 12];

	snprintf(path, sizeof outside.proc[0], "/proc/%d/%s", (int)outside.victim, name);
	return path;
}

static int row_result(const struct row *row, long number)
{
	const long *a = row->args;
	struct sandbox sandbox;
	int status;
	pid_t child = fork();

	if (child == 0) {
		enter(&sandbox);
		_exit(syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) == -1 ? errno : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status))
		fail_msg("%s: ended by signal %d", row->what, WTERMSIG(status));
	return WEXITSTATUS(status);
}

static size_t rows_check(const struct row *rows, size_t count)
{
	struct sandbox here = sandbox_here();
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		long number = call_number(row->call);
		int got;

		if (number == -2)
			fail_msg("%s: no such call: %s", row->what, row->call);
		if (number == -1 || !here.calls || here.landlock < row->from ||
		    here.landlock > row->to)
			continue;
		got = row_result(row, number);
		if (got == row->want)
			continue;
		print_error("%s (%s): %s, wanted: %s\n", row->what, row->call, strerror(got),
			    strerror(row->want));
		wrong++;
	}
	return wrong;
}

#define CHECK(rows) assert_int_equal(rows_check(rows, sizeof rows / sizeof rows[0]), 0)
#define NEW_FILE (O_WRONLY | O_CREAT | O_EXCL)

static struct open_how how_read = {.flags = O_RDONLY};
static struct open_how how_cut = {.flags = O_RDONLY | O_TRUNC};
static struct open_how how_write = {.flags = O_WRONLY};
static struct open_how how_make = {.flags = NEW_FILE, .mode = 0600};

/* clang-format off */
static void test_remains(void **state)
{
	const struct row rows[] = {
		{"read a file", "openat", {AT_FDCWD, P(in_place("no/kept")), O_RDONLY}, 0, SECCOMP},
		{"look for a path", "openat", {AT_FDCWD, P(in_place("no")), O_PATH}, 0, SECCOMP},
		{"list the system", "openat", {AT_FDCWD, P("/etc"), O_RDONLY | O_DIRECTORY}, 0, SECCOMP},
		{"list", "openat", {AT_FDCWD, P("/usr"), O_RDONLY | O_DIRECTORY}, 0, SECCOMP},
		{"shared memory", "openat", {AT_FDCWD, P("/tmp"), O_RDONLY | O_DIRECTORY}, 0, SECCOMP},
		{"memory there is", "openat", {AT_FDCWD, P("/proc/meminfo"), O_RDONLY}, 0, SECCOMP},
		{"open again", "openat", {AT_FDCWD, P("/proc/self/fd/0"), O_PATH}, 0, SECCOMP},
		{"openat2", "openat2", {AT_FDCWD, P(in_place("no/kept")), P(&how_read), sizeof how_read}, 0, LANDLOCK(3)},
		{"openat2", "openat2", {AT_FDCWD, P(in_place("no/kept")), P(&how_read), sizeof how_read}, ENOSYS, NO_LANDLOCK_FROM(3)},
		{"make a file", "openat", {outside.yes, P("made"), NEW_FILE, 0600}, 0, SECCOMP},
		{"make a program", "openat", {outside.yes, P("program"), NEW_FILE, 06777}, 0, SECCOMP},
		{"it is none", "faccessat", {outside.yes, P("program"), X_OK}, EACCES, SECCOMP},
		{"rename", "renameat", {outside.yes, P("moved"), outside.yes, P("b")}, 0, SECCOMP},
		{"remove", "unlinkat", {outside.yes, P("removed"), 0}, 0, SECCOMP},
		{"a signal for itself", "rt_sigprocmask", {SIG_BLOCK, 0, 0, _NSIG / 8}, 0, SECCOMP},
		{"memory", "mmap", {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}, 0, SECCOMP},
		{"is it a terminal?", "ioctl", {outside.pipe[0], TCGETS, P(place)}, ENOTTY, SECCOMP},
		{"flags of a file", "fcntl", {outside.pipe[0], F_GETFL}, 0, SECCOMP},
		{"close on exec", "fcntl", {outside.pipe[0], F_SETFD, FD_CLOEXEC}, 0, SECCOMP},
		{"another descriptor", "fcntl", {outside.pipe[0], F_DUPFD_CLOEXEC, 0}, 0, SECCOMP},
	};

	(void)state;
	CHECK(rows);
}

static void test_files(void **state)
{
	const struct row rows[] = {
		{"cut", "open", {P(in_place("no/kept")), O_RDONLY | O_TRUNC}, EPERM, SECCOMP},
		{"cut", "openat", {AT_FDCWD, P(in_place("no/kept")), O_RDONLY | O_TRUNC}, EPERM, SECCOMP},
		{"cut", "openat", {outside.yes, P("a"), O_RDONLY | O_TRUNC}, EPERM, SECCOMP},
		{"cut", "openat2", {AT_FDCWD, P(in_place("no/kept")), P(&how_cut), sizeof how_cut}, EACCES, LANDLOCK(3)},
		{"cut", "openat2", {AT_FDCWD, P(in_place("no/kept")), P(&how_cut), sizeof how_cut}, ENOSYS, NO_LANDLOCK_FROM(3)},
		{"cut in its place", "openat2", {outside.yes, P("a"), P(&how_cut), sizeof how_cut}, EACCES, LANDLOCK(3)},
		{"cut", "creat", {P(in_place("no/kept")), 0600}, EPERM, SECCOMP},
		{"cut", "truncate", {P(in_place("no/kept")), 0}, EPERM, SECCOMP},
		{"cut what is open for reading", "ftruncate", {outside.kept, 0}, EINVAL, SECCOMP},
		{"write to a file", "openat", {AT_FDCWD, P(in_place("no/kept")), O_WRONLY}, EPERM, SECCOMP},
		{"write to a file", "openat", {AT_FDCWD, P(in_place("no/kept")), O_RDWR}, EPERM, SECCOMP},
		{"write to a file", "openat", {AT_FDCWD, P(in_place("no/kept")), O_WRONLY | O_CREAT}, EPERM, SECCOMP},
		{"write to a file", "openat2", {AT_FDCWD, P(in_place("no/kept")), P(&how_write), sizeof how_write}, EACCES, LANDLOCK(3)},
		{"make a file elsewhere", "openat", {outside.no, P("new"), NEW_FILE, 0600}, EACCES, LANDLOCK(1)},
		{"make a file elsewhere", "openat2", {outside.no, P("new"), P(&how_make), sizeof how_make}, EACCES, LANDLOCK(3)},
		{"a file without a name", "openat", {outside.yes, P("."), O_TMPFILE | O_WRONLY, 0600}, EPERM, SECCOMP},
		{"remove elsewhere", "unlinkat", {outside.no, P("kept"), 0}, EACCES, LANDLOCK(1)},
		{"remove elsewhere", "unlink", {P(in_place("no/kept"))}, EACCES, LANDLOCK(1)},
		{"remove a directory", "unlinkat", {outside.no, P("empty"), AT_REMOVEDIR}, EACCES, LANDLOCK(1)},
		{"take out", "renameat", {outside.yes, P("a"), outside.no, P("a")}, EACCES, LANDLOCK(2)},
		{"take in", "renameat", {outside.no, P("kept"), outside.yes, P("kept")}, EACCES, LANDLOCK(2)},
		{"replace elsewhere", "renameat2", {outside.no, P("kept"), outside.no, P("other"), 0}, EACCES, LANDLOCK(1)},
		{"link", "linkat", {outside.no, P("kept"), outside.yes, P("link"), 0}, EPERM, SECCOMP},
		{"link", "link", {P(in_place("no/kept")), P(in_place("yes/link"))}, EPERM, SECCOMP},
		{"symbolic link", "symlinkat", {P("/etc"), outside.yes, P("link")}, EPERM, SECCOMP},
		{"directory", "mkdirat", {outside.yes, P("directory"), 0700}, EPERM, SECCOMP},
		{"directory", "mkdir", {P(in_place("yes/directory")), 0700}, EPERM, SECCOMP},
		{"FIFO", "mknodat", {outside.yes, P("fifo"), S_IFIFO | 0600, 0}, EPERM, SECCOMP},
		{"mode", "fchmod", {outside.kept, 04777}, EPERM, SECCOMP},
		{"mode", "fchmodat", {outside.yes, P("a"), 04777}, EPERM, SECCOMP},
		{"owner", "fchown", {outside.kept, 1, 1}, EPERM, SECCOMP},
		{"owner", "fchownat", {outside.yes, P("a"), 1, 1, 0}, EPERM, SECCOMP},
		{"times", "utimensat", {outside.yes, P("a"), 0, 0}, EPERM, SECCOMP},
		{"attribute", "fsetxattr", {outside.kept, P("user.x"), P("x"), 1, 0}, EPERM, SECCOMP},
		{"by handle", "open_by_handle_at", {outside.no, P(place), O_RDONLY}, EPERM, SECCOMP},
		{"into a pipe", "splice", {outside.kept, 0, outside.pipe[1], 0, 1, 0}, EPERM, SECCOMP},
		{"another root", "chroot", {P(place)}, EPERM, SECCOMP},
		{"another directory", "chdir", {P(place)}, EPERM, SECCOMP},
		{"mount", "mount", {P("none"), P(place), P("tmpfs"), 0, 0}, EPERM, SECCOMP},
		{"unmount", "umount2", {P(place), 0}, EPERM, SECCOMP},
		{"watch", "inotify_init1", {0}, EPERM, SECCOMP},
		{"watch", "fanotify_init", {0, 0}, EPERM, SECCOMP},
	};

	(void)state;
	CHECK(rows);
}

static void test_kernel_files(void **state)
{
	const struct row rows[] = {
		{"memory of another", "openat", {AT_FDCWD, P(of_victim("mem")), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"memory of another", "openat", {AT_FDCWD, P(of_victim("mem")), O_RDWR}, EPERM, SECCOMP},
		{"environment of another", "openat", {AT_FDCWD, P(of_victim("environ")), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"maps of another", "openat", {AT_FDCWD, P(of_victim("maps")), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"auxv of another", "openat", {AT_FDCWD, P(of_victim("auxv")), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"arguments of another", "openat", {AT_FDCWD, P(of_victim("cmdline")), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"maps of another", "openat2", {AT_FDCWD, P(of_victim("maps")), P(&how_read), sizeof how_read}, EACCES, LANDLOCK(3)},
		{"root of another", "openat", {AT_FDCWD, P(of_victim("root/etc")), O_RDONLY | O_DIRECTORY}, EACCES, LANDLOCK(1)},
		{"program of another", "openat", {AT_FDCWD, P(of_victim("exe")), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"descriptors of another", "openat", {AT_FDCWD, P(of_victim("fd")), O_RDONLY | O_DIRECTORY}, EACCES, LANDLOCK(1)},
		{"where a link of another leads", "readlinkat", {AT_FDCWD, P(of_victim("exe")), P(place), 1}, EACCES, LANDLOCK(1)},
		{"processes", "openat", {AT_FDCWD, P("/proc"), O_RDONLY | O_DIRECTORY}, EACCES, LANDLOCK(1)},
		{"own memory", "openat", {AT_FDCWD, P("/proc/self/mem"), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"own memory", "openat", {AT_FDCWD, P("/proc/self/mem"), O_RDWR}, EPERM, SECCOMP},
		{"the kernel's version", "openat", {AT_FDCWD, P("/proc/version"), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"the kernel's settings", "openat", {AT_FDCWD, P("/proc/sys/kernel/ostype"), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"the kernel's objects", "openat", {AT_FDCWD, P("/sys/kernel"), O_RDONLY | O_DIRECTORY}, EACCES, LANDLOCK(1)},
		{"a device", "openat", {AT_FDCWD, P("/dev/null"), O_RDONLY}, EACCES, LANDLOCK(1)},
		{"a device", "openat", {AT_FDCWD, P("/dev/null"), O_WRONLY}, EPERM, SECCOMP},
		{"a device", "openat2", {AT_FDCWD, P("/dev/null"), P(&how_write), sizeof how_write}, EACCES, LANDLOCK(3)},
		{"a new terminal", "openat", {AT_FDCWD, P("/dev/ptmx"), O_RDONLY}, EACCES, LANDLOCK(1)},
	};

	(void)state;
	CHECK(rows);
}

static void test_processes(void **state)
{
	const long victim = outside.victim;
	const struct row rows[] = {
		{"signal", "kill", {victim, 0}, EPERM, SECCOMP},
		{"signal to all", "kill", {-1, 0}, EPERM, SECCOMP},
		{"signal to the group", "kill", {0, 0}, EPERM, SECCOMP},
		{"signal", "tgkill", {victim, victim, 0}, EPERM, SECCOMP},
		{"signal", "tkill", {victim, 0}, EPERM, SECCOMP},
		{"signal", "rt_sigqueueinfo", {victim, SIGTERM, P(place)}, EPERM, SECCOMP},
		{"signal", "rt_tgsigqueueinfo", {victim, victim, SIGTERM, P(place)}, EPERM, SECCOMP},
		{"descriptor of a process", "pidfd_open", {victim, 0}, EPERM, SECCOMP},
		{"signal", "pidfd_send_signal", {outside.kept, 0, 0, 0}, EPERM, SECCOMP},
		{"signal by a file", "fcntl", {outside.pipe[0], F_SETOWN, victim}, EPERM, SECCOMP},
		{"signal by a file", "fcntl", {outside.pipe[0], F_SETOWN_EX, P(place)}, EPERM, SECCOMP},
		{"which signal", "fcntl", {outside.pipe[0], F_SETSIG, SIGKILL}, EPERM, SECCOMP},
		{"signal when there is something", "fcntl", {outside.pipe[0], F_SETFL, O_ASYNC}, EPERM, SECCOMP},
		{"signal by a lease", "fcntl", {outside.kept, F_SETLEASE, F_RDLCK}, EPERM, SECCOMP},
		{"signal by a directory", "fcntl", {outside.kept, F_NOTIFY, DN_MODIFY}, EPERM, SECCOMP},
		{"size of a pipe", "fcntl", {outside.pipe[0], F_SETPIPE_SZ, 1 << 20}, EPERM, SECCOMP},
		{"trace", "ptrace", {PTRACE_SEIZE, victim, 0, 0}, EPERM, SECCOMP},
		{"be traced", "ptrace", {PTRACE_TRACEME, 0, 0, 0}, EPERM, SECCOMP},
		{"memory of another", "process_vm_readv", {victim, 0, 0, 0, 0, 0}, EPERM, SECCOMP},
		{"memory of another", "process_vm_writev", {victim, 0, 0, 0, 0, 0}, EPERM, SECCOMP},
		{"compare", "kcmp", {victim, victim, 0, 0, 0}, EPERM, SECCOMP},
		{"limits", "prlimit64", {victim, 4, 0, P(place)}, EPERM, SECCOMP},
		{"mode of new files", "umask", {0}, EPERM, SECCOMP},
		{"priority", "setpriority", {0, victim, 5}, EPERM, SECCOMP},
		{"priority of a user", "setpriority", {PRIO_USER, 0, 5}, EPERM, SECCOMP},
		{"priority of a group", "setpriority", {PRIO_PGRP, 0, 5}, EPERM, SECCOMP},
		{"scheduling", "sched_setaffinity", {victim, 8, P(place)}, EPERM, SECCOMP},
		{"process", "fork", {0}, EPERM, SECCOMP},
		{"process", "clone", {SIGCHLD, 0, 0, 0, 0}, EPERM, SECCOMP},
		{"process in this memory", "clone", {CLONE_VM | SIGCHLD, 0, 0, 0, 0}, EPERM, SECCOMP},
		{"process with more rights", "clone", {CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0}, EPERM, SECCOMP},
		{"process", "clone3", {P(place), 64}, ENOSYS, SECCOMP},
		{"wait", "wait4", {-1, 0, WNOHANG, 0}, EPERM, SECCOMP},
	};

	(void)state;
	CHECK(rows);
}

static void test_code(void **state)
{
	const char *const arguments[] = {"true", NULL};
	const struct row rows[] = {
		{"program", "execve", {P("/bin/true"), P(arguments), P(&arguments[1])}, EPERM, SECCOMP},
		{"program", "execveat", {AT_FDCWD, P("/bin/true"), P(arguments), P(&arguments[1]), 0}, EPERM, SECCOMP},
		{"code", "mmap", {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}, EPERM, SECCOMP},
		{"code of a file", "mmap", {0, 4096, PROT_EXEC, MAP_PRIVATE, outside.kept, 0}, EPERM, SECCOMP},
		{"memory becomes code", "mprotect", {P(place) & ~4095L, 4096, PROT_READ | PROT_EXEC}, EPERM, SECCOMP},
		{"memory becomes code", "pkey_mprotect", {P(place) & ~4095L, 4096, PROT_EXEC, -1}, EPERM, SECCOMP},
		{"a file that is memory", "memfd_create", {P("x"), 0}, EPERM, SECCOMP},
		{"shared memory", "shmget", {0, 4096, 0600}, EPERM, SECCOMP},
		{"personality", "personality", {0x0400000}, EPERM, SECCOMP}, /* READ_IMPLIES_EXEC */
		{"pages on demand", "userfaultfd", {0}, EPERM, SECCOMP},
	};

	(void)state;
	CHECK(rows);
}

static void test_network_and_kernel(void **state)
{
	const struct row rows[] = {
		{"socket", "socket", {AF_INET, SOCK_STREAM, 0}, EPERM, SECCOMP},
		{"socket", "socketpair", {AF_UNIX, SOCK_STREAM, 0, P(place)}, EPERM, SECCOMP},
		{"connect", "connect", {outside.socket, P(place), 2}, EPERM, SECCOMP},
		{"bind", "bind", {outside.socket, P(place), 2}, EPERM, SECCOMP},
		{"listen", "listen", {outside.socket, 1}, EPERM, SECCOMP},
		{"accept", "accept", {outside.socket, 0, 0}, EPERM, SECCOMP},
		{"send", "sendto", {outside.socket, P(place), 1, 0, 0, 0}, EPERM, SECCOMP},
		{"send", "sendmsg", {outside.socket, P(place), 0}, EPERM, SECCOMP},
		{"type into the terminal", "ioctl", {outside.pipe[0], TIOCSTI, P("x")}, EPERM, SECCOMP},
		{"BPF", "bpf", {0, 0, 0}, EPERM, SECCOMP},
		{"counters", "perf_event_open", {0, 0, -1, -1, 0}, EPERM, SECCOMP},
		{"io_uring", "io_uring_setup", {4, P(place)}, EPERM, SECCOMP},
		{"asynchronous files", "io_setup", {1, P(place)}, EPERM, SECCOMP},
		{"keys", "keyctl", {0, 0}, EPERM, SECCOMP},
		{"keys", "add_key", {P("user"), P("x"), P("x"), 1, 0}, EPERM, SECCOMP},
		{"namespace", "unshare", {CLONE_NEWUSER}, EPERM, SECCOMP},
		{"namespace", "setns", {outside.kept, 0}, EPERM, SECCOMP},
		{"module", "init_module", {0, 0, P("")}, EPERM, SECCOMP},
		{"kernel's messages", "syslog", {3, P(place), 1}, EPERM, SECCOMP},
		{"reboot", "reboot", {0, 0, 0, 0}, EPERM, SECCOMP},
		{"name of the machine", "sethostname", {P("x"), 1}, EPERM, SECCOMP},
		{"time", "clock_settime", {0, P(place)}, EPERM, SECCOMP},
		{"user", "setuid", {0}, EPERM, SECCOMP},
		{"privileges", "capset", {P(place), P(place)}, EPERM, SECCOMP},
		{"settings", "prctl", {4, 0, 0, 0, 0}, EPERM, SECCOMP}, /* PR_SET_DUMPABLE */
	};

	(void)state;
	CHECK(rows);
}
/* clang-format on */

/* The result of `act` in the sandbox with this place. */
static int result_with(const char *path, enum sandbox_use use, int (*act)(void))
{
	struct sandbox sandbox;
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct sandbox_place place_given = {path ? open(path, O_PATH) : -1, use};

		sandbox_enter(&place_given, 1, &sandbox);
		_exit(act());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static char looked_at[128];

static int look(void)
{
	return open(looked_at, O_RDONLY) < 0 ? errno : 0;
}

/* /run is for what is running, but a place that was named is read. */
static void test_named_place(void **state)
{
	char named[] = "/run/stacker-test.XXXXXX";
	int fd;

	(void)state;
	if (sandbox_here().landlock < 1 || !mkdtemp(named))
		skip();
	snprintf(looked_at, sizeof looked_at, "%s/file", named);
	fd = open(looked_at, O_WRONLY | O_CREAT, 0600);
	close(fd);
	assert_int_equal(result_with(NULL, SANDBOX_READ, look), EACCES);
	assert_int_equal(result_with(named, SANDBOX_READ, look), 0);
	assert_int_equal(result_with(looked_at, SANDBOX_READ, look), 0);
	unlink(looked_at);
	rmdir(named);
}

/* Debug files and build trees may be anywhere. */
static void test_directories_of_users(void **state)
{
	static const char *const names[] = {"/home", "/mnt", "/opt",     "/srv",
					    "/root", "/nix", "/dev/shm", "/var/lib"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		int got;

		snprintf(looked_at, sizeof looked_at, "%s", names[i]);
		if (look() != 0)
			continue;
		got = result_with(NULL, SANDBOX_READ, look);
		if (got)
			fail_msg("%s: %s", names[i], strerror(got));
	}
}

static int proc_elsewhere(void)
{
	static const struct {
		const char *name;
		int want;
	} cases[] = {
		{"no/proc/self/maps", EACCES},
		{"no/kept", 0},
		{"yes/a", 0},
		{"no/empty/x", ENOENT},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(looked_at, sizeof looked_at, "%s", in_place(cases[i].name));
		if (look() != cases[i].want)
			return (int)i + 1;
	}
	return 0;
}

/* A second /proc, as of a chroot, in a mount namespace of its own: all around it is read. */
static void test_proc_elsewhere(void **state)
{
	int status;
	pid_t child;

	(void)state;
	if (sandbox_here().landlock < 1)
		skip();
	child = fork();
	if (child == 0) {
		struct sandbox_place no = {-1, SANDBOX_READ};
		struct sandbox sandbox;

		if (unshare(CLONE_NEWNS) != 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		    mount("proc", in_place("no/proc"), "proc", 0, NULL) != 0)
			_exit(99);
		no.fd = open(in_place("no"), O_PATH);
		sandbox_enter(&no, 1, &sandbox);
		_exit(proc_elsewhere());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WEXITSTATUS(status) == 99)
		skip(); /* not root */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The value of a line of /proc/PID/status. */
static unsigned long long status_of(pid_t pid, const char *key)
{
	char path[64], line[256];
	unsigned long long value = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtoull(line + strlen(key), NULL, 16);
	fclose(file);
	return value;
}

/* What the kernel says of a process that entered it. */
static void test_privileges(void **state)
{
	int ready[2], done[2];
	char byte = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	child = fork();
	if (child == 0) {
		struct sandbox sandbox;

		close(done[1]);
		enter(&sandbox);
		if (write(ready[1], &byte, 1) == 1 && read(done[0], &byte, 1) == 0)
			_exit(sandbox.fault != NULL || !sandbox.privileges);
		_exit(2);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(status_of(child, "NoNewPrivs:"), 1);
	assert_int_equal(status_of(child, "CapEff:") & ~(1ULL << CAP_DAC_READ_SEARCH), 0);
	assert_int_equal(status_of(child, "CapPrm:") & ~(1ULL << CAP_DAC_READ_SEARCH), 0);
	assert_int_equal(status_of(child, "CapInh:"), 0);
	assert_int_equal(status_of(child, "Seccomp:"), sandbox_here().calls ? 2 : 0);
	close(done[1]);
	assert_int_equal(waitpid(child, &(int){0}, 0), child);
	close(done[0]);
	close(ready[0]);
	close(ready[1]);
}

/* What is missing is named, and why. */
static void test_gaps(void **state)
{
	static const struct {
		struct sandbox sandbox;
		const char *want;
	} cases[] = {
		{{.calls = true, .landlock = 6, .landlock_on = true}, NULL},
		{{.calls = true, .landlock = 2, .landlock_on = true}, NULL},
		{{.calls = true}, "files written, files read (no Landlock)"},
		{{.calls = true, .landlock = 6}, "files written, files read (no Landlock)"},
		{{.landlock = 3, .landlock_on = true},
		 "system calls, network, device controls, signals to other processes (no "
		 "seccomp)"},
		{{.landlock = 0},
		 "system calls, files written, files read, files cut short, network, device "
		 "controls, signals to other processes (neither seccomp nor Landlock)"},
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *got = sandbox_gaps(&arena, &cases[i].sandbox);

		if (cases[i].want)
			assert_string_equal(got, cases[i].want);
		else
			assert_null(got);
	}
	arena_free(&arena);
}

static int place_make(void **state)
{
	static const char *const directories[] = {"yes", "no", "no/empty", "no/proc"};
	static const char *const files[] = {"yes/a", "yes/moved", "yes/removed", "no/kept",
					    "no/other"};

	(void)state;
	strcpy(place, "/tmp/stacker-test-sandbox.XXXXXX");
	if (!mkdtemp(place))
		return -1;
	for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++)
		if (mkdir(in_place(directories[i]), 0700) != 0)
			return -1;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		close(open(in_place(files[i]), O_WRONLY | O_CREAT, 0600));
	outside.victim = getpid();
	outside.kept = open(in_place("no/kept"), O_RDONLY);
	outside.yes = open(in_place("yes"), O_PATH);
	outside.no = open(in_place("no"), O_PATH);
	outside.socket = socket(AF_UNIX, SOCK_STREAM, 0);
	return pipe(outside.pipe);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* The virtual machine has no shell. */
static int place_remove(void **state)
{
	(void)state;
	return nftw(place, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remains),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_kernel_files),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_code),
		cmocka_unit_test(test_network_and_kernel),
		cmocka_unit_test(test_named_place),
		cmocka_unit_test(test_directories_of_users),
		cmocka_unit_test(test_proc_elsewhere),
		cmocka_unit_test(test_privileges),
		cmocka_unit_test(test_gaps),
	};

	return cmocka_run_group_tests(tests, place_make, place_remove);
}
