/*
 * process/room: memory that the process which captures and the one which waits both see, at the
 * same addresses: what is found, and how far it is.
 */
#ifndef STACKER_PROCESS_ROOM_H
#define STACKER_PROCESS_ROOM_H

#include "process/attempt.h"

struct room {
	struct attempt attempt;
	struct arena arena; /* over the rest of the room */
	struct captured captured;
	struct err e;
	bool ok;
	size_t size;
};

/* Before the fork. NULL with ERR_SYSTEM when there is no such memory. */
struct room *room_make(const struct capture_request *request, const struct avoid *avoid,
		       struct err *e);
/* What was found stays for good, the rest is given back. */
void room_trim(struct room *room);
void room_free(struct room *room);

#endif
