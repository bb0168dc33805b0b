/*
 * What is mounted where, and what that means for a directory that may be allowed.
 */
#include "cli/sandbox_mounts.h"

#include <fcntl.h>
#include <string.h>

#include "base/file.h"

/* clang-format off */
/* File systems that show what the kernel, or other processes, have to say. */
static const char *const kernel_types[] = {
	"proc", "sysfs", "devtmpfs", "devpts", "debugfs", "tracefs", "securityfs", "configfs",
	"cgroup", "cgroup2", "bpf", "pstore", "efivarfs", "mqueue", "fusectl", "hugetlbfs",
	"selinuxfs", "smackfs", "binfmt_misc", "rpc_pipefs", "nfsd",
};
static const char *const remote_types[] = {
	"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "autofs",
	"fuse", "fuseblk",
};
/* clang-format on */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

#define MOUNTINFO_MAX ((size_t)16 << 20)

static bool is_one_of(const char *word, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, list[i]) == 0)
			return true;
	return false;
}

static bool is_remote(const char *type)
{
	return strncmp(type, "fuse.", 5) == 0 ||
	       is_one_of(type, remote_types, COUNT(remote_types));
}

/* "\040" is how a space is written. */
static char *unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		unsigned value = 0;

		if (*at == '\\' && strspn(at + 1, "01234567") >= 3) {
			for (int i = 1; i <= 3; i++)
				value = value * 8 + (unsigned)(at[i] - '0');
			*to++ = (char)value;
			at += 3;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
	return text;
}

/* proc_pid_mountinfo(5): the mount point is the fifth word, the type the first one behind " -
 * ". */
static void mount_read(struct arena *arena, struct exceptions *out, char *line)
{
	char *type = strstr(line, " - "), *path = NULL, *rest = line;

	for (int i = 0; i < 5; i++)
		path = strsep(&rest, " ");
	if (!type || !path || !rest || rest > type)
		return;
	type += 3;
	type[strcspn(type, " ")] = '\0';
	if (is_one_of(type, kernel_types, COUNT(kernel_types)))
		*vec_push(arena, out) = (struct exception){unescape(path), true};
	else if (is_remote(type))
		*vec_push(arena, out) = (struct exception){unescape(path), false};
}

void mounts_read(struct arena *arena, struct exceptions *out)
{
	struct bytes text;
	char *rest;

	if (!file_read_all(arena, AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL))
		return;
	rest = arena_copy(arena, text.at, text.len);
	while (rest)
		mount_read(arena, out, strsep(&rest, "\n"));
}

/* What follows `above` in a path below it, or NULL: "" is the path itself. */
static const char *below(const char *path, const char *above)
{
	size_t len = strlen(above);

	if (len == 1) /* the root */
		len = 0;
	if (strncmp(path, above, len) != 0)
		return NULL;
	return path[len] == '/' || path[len] == '\0' ? path + len : NULL;
}

enum verdict verdict_of(const struct exceptions *exceptions, const char *path, bool asks_remote)
{
	enum verdict verdict = ALLOW;

	for (size_t i = 0; i < exceptions->count; i++) {
		const struct exception *one = &exceptions->at[i];
		const char *rest = below(one->path, path);

		if (rest && !*rest && one->excluded)
			return EXCLUDE;
		if (rest && !*rest && !asks_remote)
			verdict = ASK_LATER;
		else if (rest && verdict == ALLOW && one->excluded)
			verdict = GO_INSIDE;
	}
	return verdict;
}
