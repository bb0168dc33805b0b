/*
 * process/stacks: which memory of which thread is copied while it is held, and the copying.
 *
 * The used part of a stack is [SP - red zone, end of the stack), where the stack ends at its
 * mapping's end, or at the thread control block that glibc and musl put on top of a thread's
 * stack. The runtime of Go works on a stack of the thread for a goroutine that waits on its
 * own: the frame pointers lead there, and what they lead to is copied too.
 *
 * Everything here runs while the target is held: no allocation, no file, no output. Buffers are
 * reserved by stacks_reserve and made ready by stacks_ready.
 */
#ifndef STACKER_PROCESS_STACKS_H
#define STACKER_PROCESS_STACKS_H

#include "process/avoid.h"
#include "process/process.h"

/* Stretches for one system call (UIO_MAXIOV). */
#define STACKS_BATCH 1024

/* One stretch of memory wanted, and what came of it. */
struct stack_copy {
	uint32_t thread; /* index of the thread it belongs to */
	uint64_t va;
	uint64_t wanted; /* bytes from va to the end of the used stack */
	bool from_file;  /* a file supplies this memory */
	bool guessed;    /* that end is only a guess: what is not there is not missing */
	uint64_t got;    /* bytes that are there at `at` */
	uint8_t *at;
};

/* A thread that is held. */
struct stack_owner {
	const struct registers *registers; /* NULL: none */
	uint64_t thread_pointer;           /* 0: not known */
};

struct stacks {
	const struct snapshot *snapshot; /* maps, arch */
	uint32_t tid;                    /* a thread that is held: its memory is everyone's */
	int chain_slot; /* of the frame pointer, when it is followed to other stacks; else -1 */
	uint64_t limit, total;
	struct stack_copy *copies;
	size_t count, capacity;
	size_t thread_count; /* at most */
	uint64_t *unplanned; /* per thread: bytes of its stacks that no copy was left for */
	struct iovec *here, *there; /* STACKS_BATCH of each */
	uint8_t *buffer;            /* `total` bytes reserved, the first part made ready */
	uint64_t used;
	const struct avoid *avoid; /* what is not read; NULL: all is */
	bool files_silent;         /* one did not in time: none is asked any more */
	bool refused;              /* the kernel does not permit to read this memory */
	/* Reading may take so long in one stacks_copy: pages may come slowly, one by one, and
	 * never be late. What is not read by then is missing. */
	uint64_t read_limit_ns, read_ns;
};

/* Before the stop: room for so many threads at most. False with ERR_SYSTEM when the memory
 * cannot be reserved. */
bool stacks_reserve(struct stacks *stacks, struct arena *arena, const struct snapshot *snapshot,
		    const struct capture_request *request, size_t threads, struct err *e);

/* Before the stop: makes memory ready for so many. */
void stacks_ready(struct stacks *stacks, size_t threads);

/* While held: plans and copies the stacks of the threads [from, to), and after them the stacks
 * that signal frames on alternate stacks lead to. May be called again for other threads. */
void stacks_copy(struct stacks *stacks, const struct stack_owner *owners, size_t from,
		 size_t to);

/* Forgets what was copied of the threads that have registers in `owners`: they are copied anew,
 * or have no picture after all. */
void stacks_forget(struct stacks *stacks, const struct stack_owner *owners);

/* What is copied from here on may be taken back: of one thread, whose row is given. */
struct stacks_mark {
	size_t count;
	uint64_t used;
};
struct stacks_mark stacks_mark(const struct stacks *stacks);
void stacks_take_back(struct stacks *stacks, struct stacks_mark mark, size_t row);

void stacks_release(struct stacks *stacks);

#endif
