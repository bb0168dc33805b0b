/*
 * One shared mapping. Only what is used of it is ever there, so it is large: but where the
 * program may have little memory, it takes a part of that.
 */
#include "process/room.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Beside the stacks: threads, maps, names. A million threads take 1 GiB. */
#define ROOM_MAX ((size_t)4 << 30)
#define ROOM_MIN ((size_t)16 << 20)

static size_t room_wanted(const struct capture_request *request)
{
	struct rlimit limit;
	size_t most = ROOM_MAX + request->stack_total, part;

	if (most < ROOM_MAX)
		most = SIZE_MAX / 2;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return most;
	part = limit.rlim_cur / 8 > ROOM_MIN ? limit.rlim_cur / 8 : ROOM_MIN;
	return part < most ? part : most;
}

struct room *room_make(const struct capture_request *request, const struct avoid *avoid,
		       struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = room_wanted(request) & ~(page - 1);
	struct room *room = MAP_FAILED;

	for (; size >= ROOM_MIN; size = (size / 2) & ~(page - 1)) {
		room = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (room != MAP_FAILED)
			break;
	}
	if (room == MAP_FAILED) {
		err_set(e, ERR_SYSTEM, "reserving memory for the capture: %s: raise the limit",
			strerror(errno));
		return NULL;
	}
	room->size = size;
	room->arena = arena_over(room + 1, size - sizeof *room);
	room->attempt = (struct attempt){
		.request = request,
		.avoid = *avoid,
		.arena = &room->arena,
		.out = &room->captured,
	};
	return room;
}

void room_trim(struct room *room)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uint8_t *from = room->arena.next, *end = room->arena.end;

	from += -(uintptr_t)from & (page - 1);
	if (from >= end)
		return;
	munmap(from, (size_t)(end - from));
	room->size = (size_t)(from - (uint8_t *)room);
}

void room_free(struct room *room)
{
	munmap(room, room->size);
}
