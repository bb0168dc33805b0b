/*
 * Which system calls remain, and with which arguments: a filter for seccomp(2). It sees numbers
 * and arguments, not the memory that arguments point to.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "arch/arch.h"
#include "cli/sandbox_parts.h"

/* By name, so that one list serves both architectures; a name that one lacks is not there. */
/* clang-format off */
static const char *const allowed[] = {
	/* memory, threads, time, the end */
	"brk", "munmap", "mremap", "madvise", "futex", "set_robust_list", "rseq",
	"set_tid_address", "sched_getaffinity", "sched_yield", "membarrier", "clock_gettime",
	"gettimeofday", "getrandom", "sysinfo", "exit", "exit_group", "getpid", "gettid", "getuid",
	"geteuid",
	/* signals */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
	/* files; which may be opened is Landlock's */
	"read", "pread64", "readv", "write", "pwrite64", "writev", "close", "lseek", "stat", "fstat",
	"lstat", "newfstatat", "statx", "access", "faccessat", "readlink", "readlinkat", "getcwd",
	"getdents64", "poll", "ppoll", "rename", "renameat", "renameat2", "unlink", "unlinkat",
	"ftruncate", "fallocate",
};

#define EVERY_BIT UINT32_MAX
/* A file that is there is not opened for writing, and not cut: only a new one is. */
#define OPENING (O_WRONLY | O_RDWR | O_CREAT | O_EXCL | O_TRUNC)
#define NEW_FILE (O_WRONLY | O_CREAT | O_EXCL)
/* A thread, not a process. */
#define THREAD (CLONE_VM | CLONE_THREAD)

#define VALUES_MAX 4

/* Allowed when the low half of an argument, of which `mask` counts, is one of the values. */
static const struct limited {
	const char *name;
	unsigned arg;
	uint32_t mask;
	unsigned count;
	uint32_t values[VALUES_MAX];
	bool self;      /* the value is our process id */
	unsigned zeros; /* other arguments that have to be 0: a bit each */
} limited[] = {
	{"mmap",      2, PROT_EXEC, 1, {0}, false, 0},
	{"mprotect",  2, PROT_EXEC, 1, {0}, false, 0},
	{"clone",     0, THREAD,    1, {THREAD}, false, 0},
	{"open",      1, OPENING,   2, {O_RDONLY, NEW_FILE}, false, 0},
	{"openat",    2, OPENING,   2, {O_RDONLY, NEW_FILE}, false, 0},
	{"fcntl",     1, EVERY_BIT, 4, {F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC}, false, 0},
	{"ioctl",     1, EVERY_BIT, 2, {TCGETS, TIOCGWINSZ}, false, 0}, /* isatty */
	{"prlimit64", 0, EVERY_BIT, 1, {0}, false, 0},                  /* of ourselves */
	{"kill",      0, EVERY_BIT, 1, {0}, true, 0}, /* the guards of outputs and base/mapping */
	{"tgkill",    0, EVERY_BIT, 1, {0}, true, 0}, /* abort */
	{"setpriority", 0, EVERY_BIT, 1, {PRIO_PROCESS}, false, 1U << 1}, /* of ourselves: base/urgency ends */
};

/* For these their callers have another way, and take it when the kernel lacks them. */
static const char *const as_missing[] = {"clone3", "openat2"};
/* clang-format on */

static bool is_listed(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

#define IS_LISTED(name, list) is_listed(name, list, sizeof(list) / sizeof(list)[0])

static const struct limited *limited_named(const char *name)
{
	for (size_t i = 0; i < sizeof limited / sizeof limited[0]; i++)
		if (strcmp(limited[i].name, name) == 0)
			return &limited[i];
	return NULL;
}

#define CODE_MAX 320

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

static void filter_end_for(struct filter *filter, uint32_t number, uint32_t action)
{
	filter_if_equal(filter, number, 0, 1);
	filter_end(filter, action);
}

static void filter_zero(struct filter *filter, unsigned arg)
{
	filter_load(filter, offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t));
	filter_if_equal(filter, 0, 1, 0);
	filter_end(filter, REFUSE);
}

/* The low half of an argument comes first on both architectures. */
static void filter_limit(struct filter *filter, uint32_t number, const struct limited *limit)
{
	unsigned count = limit->count;
	unsigned zeros = (unsigned)__builtin_popcount(limit->zeros);

	filter_if_equal(filter, number, 0,
			(uint8_t)(3 * zeros + count + 4)); /* all that follow */
	for (unsigned arg = 0; limit->zeros >> arg; arg++)
		if (limit->zeros >> arg & 1)
			filter_zero(filter, arg);
	filter_load(filter,
		    offsetof(struct seccomp_data, args) + limit->arg * sizeof(uint64_t));
	filter_put(filter, BPF_ALU | BPF_AND | BPF_K, limit->mask, 0, 0);
	for (unsigned i = 0; i < count; i++)
		filter_if_equal(filter, limit->self ? (uint32_t)getpid() : limit->values[i],
				(uint8_t)(count - i), 0);
	filter_end(filter, REFUSE);
	filter_end(filter, SECCOMP_RET_ALLOW);
}

static void filter_for(struct filter *filter, uint32_t number, const char *name, bool openat2)
{
	const struct limited *limit = limited_named(name);

	if (limit)
		filter_limit(filter, number, limit);
	else if (IS_LISTED(name, allowed) || (openat2 && strcmp(name, "openat2") == 0))
		filter_end_for(filter, number, SECCOMP_RET_ALLOW);
	else if (IS_LISTED(name, as_missing))
		filter_end_for(filter, number, SECCOMP_RET_ERRNO | ENOSYS);
}

static void filter_make(struct filter *filter, const struct arch *arch, bool openat2)
{
	*filter = (struct filter){.count = 0};
	filter_load(filter, offsetof(struct seccomp_data, arch));
	filter_if_equal(filter, arch->elf_machine | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE, 1, 0);
	filter_end(filter, REFUSE);
	filter_load(filter, offsetof(struct seccomp_data, nr));
	for (uint32_t number = 0; number < ARCH_SYSCALLS_MAX; number++) {
		const char *name = arch_syscall_name(arch, number);

		if (name)
			filter_for(filter, number, name, openat2);
	}
	filter_end(filter, REFUSE);
}

int sandbox_calls_restrict(bool openat2)
{
	struct filter filter;
	struct sock_fprog program;

	filter_make(&filter, arch_host(), openat2);
	if (filter.count == CODE_MAX)
		return E2BIG; /* a longer list than there is room for */
	program = (struct sock_fprog){filter.count, filter.code};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
		return 0;
	/* EINVAL: a kernel (or an emulator) without filters. */
	return errno == EINVAL ? ENOSYS : errno;
}
