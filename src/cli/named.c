#include "cli/named.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define DIRECTORY (O_PATH | O_DIRECTORY | O_CLOEXEC)

static void debug_directories_open(struct debug_named **next, const struct options *options)
{
	for (size_t i = 0; i < options->debug_directories.count; i++) {
		const char *name = options->debug_directories.at[i];
		int dir = open(name, DIRECTORY);

		if (dir >= 0)
			*(*next)++ = (struct debug_named){.name = name, .dir = dir};
		else if (!options->quiet)
			complain("--debug-dir %s: %s", name, strerror(errno));
	}
}

bool named_find(struct named *out, struct arena *arena, const struct options *options,
		struct err *e)
{
	struct debug_named *next = out->places;

	*out = (struct named){.sysroot = -1};
	if (options->sysroot) {
		out->sysroot = open(options->sysroot, DIRECTORY);
		if (out->sysroot < 0)
			return err_set(e, err_kind_of(errno), "--sysroot %s: %s",
				       options->sysroot, strerror(errno));
	}
	debug_directories_open(&next, options);
	if (!options->executable)
		return true;
	if (!named_file_open(&out->executable, arena, options->executable, e))
		return false;
	*next = (struct debug_named){
		.name = options->executable,
		.dir = -1,
		.real = out->executable.real,
	};
	return true;
}
