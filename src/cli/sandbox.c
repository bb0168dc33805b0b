#include "cli/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/file.h"

/* By name, so that one list serves both architectures; a name that one lacks is not there. */
/* clang-format off */
static const char *const allowed[] = {
	/* memory, threads, time, the end */
	"brk", "munmap", "mremap", "madvise", "futex", "clone", "clone3", "set_robust_list", "rseq",
	"set_tid_address", "sched_getaffinity", "sched_yield", "membarrier", "clock_gettime",
	"gettimeofday", "getrandom", "sysinfo", "exit", "exit_group", "getpid", "gettid", "getuid",
	"geteuid",
	/* signals */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
	/* files; where they may be written is Landlock's */
	"read", "pread64", "readv", "write", "pwrite64", "writev", "open", "openat", "openat2",
	"close", "lseek", "stat", "fstat", "lstat", "newfstatat", "statx", "access", "faccessat",
	"readlink", "readlinkat", "getcwd", "getdents64", "fcntl", "poll", "ppoll", "rename",
	"renameat", "renameat2", "unlink", "unlinkat", "ftruncate",
};

enum limit_kind { LIMIT_NO_BITS, LIMIT_ONE_OF, LIMIT_SELF };

/* Allowed when an argument (its low half) fits: what else these calls do is other work. */
static const struct limited {
	const char *name;
	unsigned arg;
	enum limit_kind kind;
	uint32_t values[2]; /* bits that must not be set; the only values; nothing: our process id */
} limited[] = {
	{"mmap",      2, LIMIT_NO_BITS, {PROT_EXEC}},
	{"mprotect",  2, LIMIT_NO_BITS, {PROT_EXEC}},
	{"ioctl",     1, LIMIT_ONE_OF,  {TCGETS, TIOCGWINSZ}}, /* isatty */
	{"prlimit64", 0, LIMIT_ONE_OF,  {0, 0}},               /* of ourselves */
	{"kill",      0, LIMIT_SELF,    {0}}, /* the guards of base/file and base/mapping */
	{"tgkill",    0, LIMIT_SELF,    {0}}, /* abort */
};
/* clang-format on */

static bool is_allowed(const char *name)
{
	for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
		if (strcmp(allowed[i], name) == 0)
			return true;
	return false;
}

static const struct limited *limited_named(const char *name)
{
	for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++)
		if (strcmp(limited[i].name, name) == 0)
			return &limited[i];
	return NULL;
}

/* --- Which system calls: a filter for seccomp(2) --- */

#define CODE_MAX 256

struct filter {
	struct sock_filter code[CODE_MAX];
	unsigned short count;
};

static void filter_put(struct filter *filter, uint16_t code, uint32_t k, uint8_t yes,
		       uint8_t no)
{
	if (filter->count < CODE_MAX)
		filter->code[filter->count++] = (struct sock_filter){code, yes, no, k};
}

static void filter_load(struct filter *filter, size_t offset)
{
	filter_put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* Jumps over `yes` or `no` instructions. */
static void filter_if_equal(struct filter *filter, uint32_t value, uint8_t yes, uint8_t no)
{
	filter_put(filter, BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

static void filter_end(struct filter *filter, uint32_t action)
{
	filter_put(filter, BPF_RET | BPF_K, action, 0, 0);
}

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static void filter_allow(struct filter *filter, uint32_t number)
{
	filter_if_equal(filter, number, 0, 1);
	filter_end(filter, SECCOMP_RET_ALLOW);
}

/* Five instructions for this call. The low half of an argument comes first on both architectures. */
static void filter_limit(struct filter *filter, uint32_t number, const struct limited *limit)
{
	uint32_t first = limit->values[0], second = limit->values[1];

	if (limit->kind == LIMIT_SELF)
		first = second = (uint32_t)getpid();
	filter_if_equal(filter, number, 0, 5);
	filter_load(filter,
		    offsetof(struct seccomp_data, args) + limit->arg * sizeof(uint64_t));
	if (limit->kind == LIMIT_NO_BITS) {
		filter_put(filter, BPF_JMP | BPF_JSET | BPF_K, first, 1, 2);
		filter_end(filter, REFUSE); /* keeps the length */
	} else {
		filter_if_equal(filter, first, 2, 0);
		filter_if_equal(filter, second, 1, 0);
	}
	filter_end(filter, REFUSE);
	filter_end(filter, SECCOMP_RET_ALLOW);
}

static void filter_make(struct filter *filter, const struct arch *arch)
{
	*filter = (struct filter){.count = 0};
	filter_load(filter, offsetof(struct seccomp_data, arch));
	filter_if_equal(filter, arch->elf_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, 1, 0);
	filter_end(filter, REFUSE);
	filter_load(filter, offsetof(struct seccomp_data, nr));
	for (uint32_t number = 0; number < ARCH_SYSCALLS_MAX; number++) {
		const char *name = arch_syscall_name(arch, number);
		const struct limited *limit = name ? limited_named(name) : NULL;

		if (name && is_allowed(name))
			filter_allow(filter, number);
		else if (limit)
			filter_limit(filter, number, limit);
	}
	filter_end(filter, REFUSE);
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
