#include "process/trouble.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CAP_SYS_PTRACE_BIT 19 /* linux/capability.h */
#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

static bool zombie_explain(const struct process *process, const struct process_status *status,
			   struct err *e)
{
	struct process_status parent = {.name = "?"};

	process_status_of(status->parent, &parent);
	return err_set(e, ERR_NOT_FOUND,
		       "process %u (%s) is a zombie: it has ended and waits for its parent, "
		       "process %u (%s), to ask for its exit status",
		       process->pid, status->name, status->parent, parent.name);
}

bool process_check(const struct process *process, const struct process_status *status,
		   struct err *e)
{
	uint32_t pid = process->pid;

	if (status->tgid && status->tgid != pid)
		return err_set(e, ERR_UNSUPPORTED, "%u is a thread of process %u: use --pid %u",
			       pid, status->tgid, status->tgid);
	if (status->kernel_thread)
		return err_set(e, ERR_UNSUPPORTED,
			       "%u (%s) is a kernel thread: it has no user stack (try "
			       "/proc/%u/stack)",
			       pid, status->name, pid);
	if (process_has_ended(status))
		return zombie_explain(process, status, e);
	return true;
}

/* One line of /proc/self/status as a number, or `otherwise`. */
static uint64_t own_status(const char *key, int base, uint64_t otherwise)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	size_t len = strlen(key);

	while (status && fgets(line, sizeof line, status)) {
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			otherwise = strtoull(line + len + 1, NULL, base);
			break;
		}
	}
	if (status)
		fclose(status);
	return otherwise;
}

static int yama_scope(void)
{
	FILE *file = fopen(YAMA, "re");
	int scope = 0;

	if (file) {
		if (fscanf(file, "%d", &scope) != 1)
			scope = 0;
		fclose(file);
	}
	return scope;
}

/* A process that is not dumpable has its /proc files owned by root instead of its own user. */
static bool is_undumpable(const struct process *process, uint32_t uid)
{
	struct stat st;

	return fstatat(process->dir, "maps", &st, 0) == 0 && st.st_uid != uid;
}

static bool owner_explain(uint32_t pid, uint32_t uid, struct err *e)
{
	const struct passwd *owner = getpwuid(uid);

	return err_set(e, ERR_PERMISSION,
		       "process %u belongs to %s (uid %u): run as that user, or with sudo", pid,
		       owner ? owner->pw_name : "another user", uid);
}

static bool yama_explain(uint32_t pid, int scope, struct err *e)
{
	if (scope >= 3)
		return err_set(
			e, ERR_PERMISSION,
			"process %u: Yama forbids all tracing (ptrace_scope is 3) until the "
			"next boot",
			pid);
	return err_set(
		e, ERR_PERMISSION,
		"process %u: Yama restricts tracing (ptrace_scope is %d): run with sudo, or "
		"allow it with: echo 0 | sudo tee " YAMA,
		pid, scope);
}

bool permission_explain(const struct process *process, const struct process_status *status,
			struct err *e)
{
	uint32_t pid = process->pid;
	bool capable = own_status("CapEff", 16, 0) >> CAP_SYS_PTRACE_BIT & 1;
	int scope = yama_scope();

	if (scope >= 3)
		return yama_explain(pid, scope, e);
	if (!capable && geteuid() == 0)
		return err_set(
			e, ERR_PERMISSION,
			"process %u: root without CAP_SYS_PTRACE (a container?): start the "
			"container with --cap-add=SYS_PTRACE",
			pid);
	if (!capable && status->uid != geteuid())
		return owner_explain(pid, status->uid, e);
	if (!capable && is_undumpable(process, status->uid))
		return err_set(e, ERR_PERMISSION,
			       "process %u is not dumpable (set-uid, file capabilities or "
			       "PR_SET_DUMPABLE): run with sudo",
			       pid);
	if (!capable && scope > 0)
		return yama_explain(pid, scope, e);
	if (own_status("Seccomp", 10, 0) == 2)
		return err_set(
			e, ERR_PERMISSION,
			"process %u: tracing is refused, and this shell runs under a seccomp "
			"filter (a container?): allow ptrace and process_vm_readv in it",
			pid);
	return err_set(
		e, ERR_PERMISSION,
		"process %u: tracing is not permitted here (another user namespace, or a "
		"security module): run as root of the machine",
		pid);
}
