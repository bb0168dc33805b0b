/*
 * An exec gives a process other memory. An open maps file stays with the memory of its time (mm_struct), so
 * it becomes empty; where somebody else has that memory too (vfork, CLONE_VM), it shows other code than
 * the process has now. The auxiliary vector alone tells less: a process may change it (PR_SET_MM).
 */
#include "process/image.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "process/maps.h"
#include "process/step.h"

/* The two files are read one after the other: code may be mapped in between. */
#define LOOKS 3

void image_open(struct image *image, const struct process *process, bool with_maps)
{
	SCOPED_FD int fd = openat(process->dir, "auxv", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	*image = IMAGE_NONE;
	got = fd >= 0 ? read(fd, image->auxv, sizeof image->auxv) : 0;
	/* In the middle of an exec it is empty: one entry, the end. */
	image->size = got > 16 ? (size_t)got : 0;
	if (with_maps)
		image->maps = openat(process->dir, "maps", O_RDONLY | O_CLOEXEC);
}

void image_close(struct image *image)
{
	fd_close_scoped(&image->maps);
	*image = IMAGE_NONE;
}

static bool has_same_auxv(const struct image *a, const struct image *b)
{
	return a->size == b->size && memcmp(a->auxv, b->auxv, a->size) == 0;
}

enum memory { MEMORY_UNKNOWN, MEMORY_GONE, MEMORY_THERE };

static enum memory memory_look(int maps)
{
	char byte;
	ssize_t got;

	if (maps < 0)
		return MEMORY_UNKNOWN;
	got = pread(maps, &byte, 1, 0);
	if (got < 0) /* the thread by whose id it was opened is no more */
		return MEMORY_UNKNOWN;
	return got ? MEMORY_THERE : MEMORY_GONE;
}

static void maps_of(struct arena *arena, int fd, struct map **maps, size_t *count)
{
	struct bytes text = {0};

	*count = 0;
	if (lseek(fd, 0, SEEK_SET) == 0 &&
	    file_read_fd(arena, fd, "maps", MAPS_TEXT_MAX, &text, NULL))
		maps_parse(arena, text, maps, count);
}

static bool has_same_memory(const struct image *a, const struct image *b, struct arena *arena)
{
	struct map *a_maps, *b_maps;
	size_t a_count, b_count;

	if (a->maps < 0 || b->maps < 0)
		return false;
	for (int look = 0; look < LOOKS; look++) {
		maps_of(arena, a->maps, &a_maps, &a_count);
		maps_of(arena, b->maps, &b_maps, &b_count);
		if (a_count && b_count && maps_have_same_code(a_maps, a_count, b_maps, b_count))
			return true;
	}
	return false;
}

bool image_changed(const struct image *before, uint32_t pid, struct arena *arena)
{
	struct image now = IMAGE_NONE;
	struct process process;
	enum memory memory;
	bool changed;

	if (process_open(&process, pid, NULL)) {
		image_open(&now, &process, before->maps >= 0);
		process_close(&process);
	}
	step_begin(STEP_MAPS, 0, NULL);
	memory = memory_look(before->maps);
	if (memory == MEMORY_GONE || !now.size)
		changed = !process_is_gone(pid);
	else if (
		!before->size) /* in the middle of an exec: its registers were still those of before */
		changed = true;
	else
		changed = !has_same_auxv(before, &now) &&
			  (memory == MEMORY_UNKNOWN || !has_same_memory(before, &now, arena));
	step_begin(STEP_PROCESS, 0, NULL);
	image_close(&now);
	return changed;
}
