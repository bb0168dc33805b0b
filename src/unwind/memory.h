/*
 * unwind/memory: the target's memory as far as a thread's picture holds it.
 *
 * First the pieces that were copied with the thread (its stack), then what cannot have changed since
 * it was mapped: file bytes of segments that are not writable (code, constants). Anything else is
 * not there. Most reads hit the piece that was hit before, so that case is inline.
 */
#ifndef STACKER_UNWIND_MEMORY_H
#define STACKER_UNWIND_MEMORY_H

#include "module/module.h"
#include "snapshot/snapshot.h"

/* Why a step could not be made; becomes the stack's stop. */
struct ending {
	enum stop stop;
	const char *what; /* one phrase that never changes, or NULL */
	uint64_t va;      /* the address it is about; 0: none */
};

/* Records the ending. Always returns false. */
static inline bool end_at(struct ending *ending, enum stop stop, const char *what, uint64_t va)
{
	*ending = (struct ending){stop, what, va};
	return false;
}

struct memory {
	const struct snapshot *snapshot;
	const struct modules *modules;
	const struct memory_piece *pieces;
	size_t piece_count;
	struct memory_piece last; /* hit before; len 0: none */
};

/* The memory that a thread sees. */
struct memory memory_of_thread(const struct snapshot *snapshot, const struct modules *modules,
			       const struct thread *thread);

/* Bytes at va up to the end of what holds it, at least `len`; empty when they are not there. */
struct bytes memory_bytes(struct memory *memory, uint64_t va, uint64_t len);

/* File bytes of a module's code or constants around va: the whole file part of the segment, and
 * where va is in it. Empty when va is not in such a segment. */
struct bytes memory_text(const struct memory *memory, uint64_t va, size_t *at);

/* Says in `ending` why va could not be read. Always returns false. */
bool memory_ending(const struct memory *memory, uint64_t va, struct ending *ending);

bool memory_has_piece_slow(struct memory *memory, uint64_t va);

/* Whether the byte at va was copied with the thread. */
static inline bool memory_has_piece(struct memory *memory, uint64_t va)
{
	return va - memory->last.va < memory->last.bytes.len ||
	       memory_has_piece_slow(memory, va);
}

/* Whether two stack addresses belong to one stack: the same piece, or the same map. */
bool memory_same_stack(const struct memory *memory, uint64_t a, uint64_t b);

bool memory_uint_slow(struct memory *memory, uint64_t va, unsigned size, uint64_t *out,
		      struct ending *ending);

/* Eight bytes. False with the reason in `ending`. */
static inline bool memory_u64(struct memory *memory, uint64_t va, uint64_t *out,
			      struct ending *ending)
{
	uint64_t off = va - memory->last.va;

	if (off < memory->last.bytes.len && memory->last.bytes.len - off >= sizeof *out) {
		memcpy(out, memory->last.bytes.at + off, sizeof *out);
		return true;
	}
	return memory_uint_slow(memory, va, sizeof *out, out, ending);
}

#endif
