#include "cli/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/file.h"

/* By name, so that one list serves both architectures; a name that one lacks is not there. */
static const char *const allowed[] = {
	/* memory, threads, time, the end */
	"brk",
	"munmap",
	"mremap",
	"madvise",
	"futex",
	"clone",
	"clone3",
	"set_robust_list",
	"rseq",
	"set_tid_address",
	"sched_getaffinity",
	"sched_yield",
	"membarrier",
	"clock_gettime",
	"gettimeofday",
	"getrandom",
	"sysinfo",
	"prlimit64",
	"exit",
	"exit_group",
	"getpid",
	"gettid",
	/* signals, also to ourselves: the guard of the output raises what it caught */
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigreturn",
	"sigaltstack",
	"restart_syscall",
	"tkill",
	"tgkill", /* glibc's raise, for the builds with sanitizers */
	/* files */
	"read",
	"pread64",
	"readv",
	"write",
	"pwrite64",
	"writev",
	"open",
	"openat",
	"openat2",
	"close",
	"lseek",
	"stat",
	"fstat",
	"lstat",
	"newfstatat",
	"statx",
	"access",
	"faccessat",
	"readlink",
	"readlinkat",
	"getcwd",
	"getdents64",
	"fcntl",
	"flock",
	"poll",
	"ppoll",
	"ioctl",
	"rename",
	"renameat",
	"renameat2",
	"unlink",
	"unlinkat",
	"mkdir",
	"mkdirat",
	"ftruncate",
	"fchmod",
	"geteuid",
	"getuid",
	"umask",
	"utimensat",
};

/* Allowed as long as the memory is not to be executed. */
static const char *const not_executable[] = {"mmap", "mprotect"};

#define IS_AMONG(list, name) is_among(list, sizeof(list) / sizeof(list)[0], name)

static bool is_among(const char *const *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

/* --- Which system calls: a filter for seccomp(2) --- */

#define CODE_MAX 256

struct filter {
	struct sock_filter code[CODE_MAX];
	unsigned short count;
};

static void put(struct filter *filter, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
	if (filter->count < CODE_MAX)
		filter->code[filter->count++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct filter *filter, size_t offset)
{
	put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void give(struct filter *filter, uint32_t action)
{
	put(filter, BPF_RET | BPF_K, action, 0, 0);
}

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static void allow(struct filter *filter, uint32_t number)
{
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
	give(filter, SECCOMP_RET_ALLOW);
}

/* The third argument of both calls holds PROT_*; the low half comes first on both architectures. */
static void allow_without_exec(struct filter *filter, uint32_t number)
{
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
	load(filter, offsetof(struct seccomp_data, args[2]));
	put(filter, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	give(filter, REFUSE);
	give(filter, SECCOMP_RET_ALLOW);
}

static void filter_make(struct filter *filter, const struct arch *arch)
{
	*filter = (struct filter){.count = 0};
	load(filter, offsetof(struct seccomp_data, arch));
	put(filter, BPF_JMP | BPF_JEQ | BPF_K,
	    arch->elf_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, 1, 0);
	give(filter, REFUSE);
	load(filter, offsetof(struct seccomp_data, nr));
	for (uint32_t number = 0; number < ARCH_SYSCALLS_MAX; number++) {
		const char *name = arch_syscall_name(arch, number);

		if (name && IS_AMONG(allowed, name))
			allow(filter, number);
		else if (name && IS_AMONG(not_executable, name))
			allow_without_exec(filter, number);
	}
	give(filter, REFUSE);
}

/* --- Where to write: Landlock (the kernel's userspace-api/landlock.rst) --- */

/* Of version 1 all but reading. */
#define WRITES                                                            \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |     \
	 LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |     \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |     \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |   \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)
#define OUTPUT_WRITES                                                     \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG)

static void directory_allow(int rules, const char *path)
{
	SCOPED_FD int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct landlock_path_beneath_attr beneath = {
		.allowed_access = OUTPUT_WRITES,
		.parent_fd = dir,
	};

	if (dir >= 0)
		syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
}

static void writes_restrict(const char *const *writable)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = WRITES};
	SCOPED_FD int rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);

	if (rules < 0)
		return;
	for (; *writable; writable++)
		directory_allow(rules, *writable);
	syscall(SYS_landlock_restrict_self, rules, 0);
}

void sandbox_enter(const char *const *writable)
{
	struct filter filter;
	struct sock_fprog program;

	/* Both need it: nothing that is executed afterwards could gain rights. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return;
	writes_restrict(writable);
	filter_make(&filter, arch_host());
	program = (struct sock_fprog){filter.count, filter.code};
	if (filter.count < CODE_MAX)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
