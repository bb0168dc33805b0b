/*
 * The sandbox as a whole: its parts in the order in which the kernel takes them, and what came
 * of it.
 */
#include "cli/sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/sandbox_parts.h"

const struct sandbox_aim sandbox_aims[SANDBOX_AIMS] = {
	{"system calls", true, 0},    {"files written", false, 1},
	{"files read", false, 1},     {"files cut short", true, SANDBOX_COVERS_OPENING},
	{"network", true, 4}, /* by Landlock: TCP */
	{"device controls", true, 5}, {"signals to other processes", true, 6},
};

/* Root's work is done. Files that only their owner may read are still to be read. (Besides, who
 * has less than another process may not look into it.) */
static int privileges_drop(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
	const uint32_t kept = 1U << CAP_DAC_READ_SEARCH;

	if (syscall(SYS_capget, &head, sets) != 0)
		return errno;
	sets[0] = (struct __user_cap_data_struct){
		.effective = sets[0].effective & kept,
		.permitted = sets[0].permitted & kept,
	};
	sets[1] = (struct __user_cap_data_struct){0};
	return syscall(SYS_capset, &head, sets) == 0 ? 0 : errno;
}

/* True: it is in force. What the kernel has not got is no fault. */
static bool in_force(struct sandbox *sandbox, const char *what, int error)
{
	if (error && error != ENOSYS && !sandbox->fault) {
		sandbox->fault = what;
		sandbox->fault_errno = error;
	}
	return error == 0;
}

void sandbox_enter(const struct sandbox_place *places, size_t count, struct sandbox *out)
{
	int error;

	*out = (struct sandbox){0};
	/* What is made is its owner's alone, and no program; umask(2) itself is refused then. */
	umask(S_IXUSR | S_IRWXG | S_IRWXO);
	/* The others need it: nothing that is executed afterwards could gain rights. */
	error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
	if (in_force(out, "no_new_privs", error)) {
		error = sandbox_files_restrict(places, count, &out->landlock);
		out->landlock_on = in_force(out, "Landlock", error);
	}
	out->privileges = in_force(out, "capset", privileges_drop());
	error = sandbox_calls_restrict(out->landlock_on &&
				       out->landlock >= SANDBOX_COVERS_OPENING);
	out->calls = in_force(out, "seccomp", error);
}

static bool is_enforced(const struct sandbox *sandbox, const struct sandbox_aim *aim)
{
	return (aim->by_seccomp && sandbox->calls) ||
	       (aim->by_landlock && sandbox->landlock_on &&
		sandbox->landlock >= aim->by_landlock);
}

static const char *reason(const struct sandbox *sandbox)
{
	if (!sandbox->calls && !sandbox->landlock_on)
		return "neither seccomp nor Landlock";
	return sandbox->landlock_on ? "no seccomp" : "no Landlock";
}

const char *sandbox_gaps(struct arena *arena, const struct sandbox *sandbox)
{
	const char *gaps = NULL;

	for (size_t i = 0; i < SANDBOX_AIMS; i++)
		if (!is_enforced(sandbox, &sandbox_aims[i]))
			gaps = arena_printf(arena, "%s%s%s", gaps ? gaps : "", gaps ? ", " : "",
					    sandbox_aims[i].name);
	return gaps ? arena_printf(arena, "%s (%s)", gaps, reason(sandbox)) : NULL;
}
