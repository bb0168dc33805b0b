/* What remains possible in the sandbox, and what does not; each in a child of its own. */
#include <errno.h>
#include <fcntl.h>
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
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/sandbox.h"

static char place[64];

static const char *in_place(const char *name)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/%s", place, name);
	return path;
}

static int errno_of(long result)
{
	return result < 0 ? errno : 0;
}

/* Each returns 0 or errno. */

static int file_read_works(void)
{
	char byte;
	int fd = open("/proc/self/status", O_RDONLY);

	return errno_of(fd < 0 ? fd : read(fd, &byte, 1));
}

static int written(const char *path)
{
	return errno_of(open(path, O_WRONLY | O_CREAT, 0600));
}

static int write_allowed_place(void)
{
	return written(in_place("yes/file"));
}

static int write_other_place(void)
{
	return written(in_place("no/file"));
}

static int rename_in_place(void)
{
	char from[128];

	written(in_place("yes/a"));
	snprintf(from, sizeof from, "%s", in_place("yes/a"));
	return errno_of(rename(from, in_place("yes/b")));
}

static int remove_elsewhere(void)
{
	return errno_of(unlink(in_place("no/kept")));
}

static int execute(void)
{
	return errno_of(execl("/bin/true", "true", NULL));
}

static int network(void)
{
	return errno_of(socket(AF_INET, SOCK_STREAM, 0));
}

static int other_process(void)
{
	return errno_of(kill(getppid(), 0));
}

static int other_thread(void)
{
	return errno_of(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int itself(void)
{
	return errno_of(kill(getpid(), 0));
}

static int type_into_terminal(void)
{
	return errno_of(ioctl(STDIN_FILENO, TIOCSTI, ""));
}

/* Not what a pipe or file answers to it. */
static int is_terminal(void)
{
	return !isatty(STDIN_FILENO) && errno == EPERM ? EPERM : 0;
}

static int change_mode(void)
{
	return errno_of(fchmod(open(in_place("no/kept"), O_RDONLY), 0777));
}

static int limits_of_another(void)
{
	struct rlimit limit;

	return errno_of(prlimit(getppid(), RLIMIT_CORE, NULL, &limit));
}

static int trace(void)
{
	return errno_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static void *mapped(int protection)
{
	return mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int memory(void)
{
	return mapped(PROT_READ | PROT_WRITE) == MAP_FAILED ? errno : 0;
}

static int code(void)
{
	return mapped(PROT_READ | PROT_EXEC) == MAP_FAILED ? errno : 0;
}

static int memory_to_code(void)
{
	return errno_of(mprotect(mapped(PROT_READ | PROT_WRITE), 4096, PROT_READ | PROT_EXEC));
}

static int child_result(int (*act)(void))
{
	char yes[128];
	int status;
	pid_t child = fork();

	if (child == 0) {
		snprintf(yes, sizeof yes, "%s", in_place("yes"));
		sandbox_enter((const char *const[]){yes, NULL});
		_exit(act());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_sandbox(void **state)
{
	static const struct {
		const char *name;
		int (*act)(void);
		int want;
	} cases[] = {
		{"read a file", file_read_works, 0},
		{"write where it may", write_allowed_place, 0},
		{"rename where it may", rename_in_place, 0},
		{"write elsewhere", write_other_place, EACCES},
		{"remove elsewhere", remove_elsewhere, EACCES},
		{"execute", execute, EPERM},
		{"network", network, EPERM},
		{"signal another", other_process, EPERM},
		{"signal another's thread", other_thread, EPERM},
		{"signal itself", itself, 0},
		{"type into the terminal", type_into_terminal, EPERM},
		{"look whether it is one", is_terminal, 0},
		{"change a mode", change_mode, EPERM},
		{"another's limits", limits_of_another, EPERM},
		{"trace", trace, EPERM},
		{"memory", memory, 0},
		{"code", code, EPERM},
		{"memory becomes code", memory_to_code, EPERM},
	};

	/* LANDLOCK_CREATE_RULESET_VERSION: what the kernel has. */
	bool has_landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int got;

		if (cases[i].want == EACCES && !has_landlock)
			continue;
		got = child_result(cases[i].act);
		if (got != cases[i].want)
			fail_msg("%s: %s", cases[i].name, strerror(got));
	}
}

static int place_make(void **state)
{
	(void)state;
	strcpy(place, "/tmp/stacker-test-sandbox.XXXXXX");
	if (!mkdtemp(place) || mkdir(in_place("yes"), 0700) != 0 ||
	    mkdir(in_place("no"), 0700) != 0)
		return -1;
	return written(in_place("no/kept"));
}

static int place_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", place);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sandbox),
	};

	return cmocka_run_group_tests(tests, place_make, place_remove);
}
