#include "base/named.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/destination.h"
#include "base/file.h"

bool named_file_read(struct named_file *out, struct arena *arena, int fd, const char *name,
		     struct err *e)
{
	struct stat st;

	*out = (struct named_file){.name = name};
	if (fstat(fd, &st) != 0)
		return err_set(e, err_kind_of(errno), "%s: %s", name, strerror(errno));
	if (S_ISREG(st.st_mode))
		out->real = file_handle_name(arena, fd);
	out->is_mapped = S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0;
	return out->is_mapped ? file_map_fd(fd, name, &out->data, e)
			      : file_read_fd(arena, fd, name, NAMED_MAX, &out->data, e);
}

/* -1 with `e`. */
static int named_open(const char *name, struct err *e)
{
	int descriptor = descriptor_named(name), fd;
	struct stat st;

	if (descriptor < 0 && (stat(name, &st) != 0 || !S_ISFIFO(st.st_mode)))
		return file_open(name, e);
	fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
			     : open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		err_set(e, err_kind_of(errno), "%s: %s", name, strerror(errno));
	return fd;
}

bool named_file_open(struct named_file *out, struct arena *arena, const char *name,
		     struct err *e)
{
	SCOPED_FD int fd = named_open(name, e);

	return fd >= 0 && named_file_read(out, arena, fd, name, e);
}
