#include "unwind/memory.h"

struct memory memory_of_thread(const struct snapshot *snapshot, const struct modules *modules,
			       const struct thread *thread)
{
	struct memory memory = {
		.snapshot = snapshot,
		.modules = modules,
		.pieces = thread->pieces,
		.piece_count = thread->piece_count,
	};

	if (memory.piece_count)
		memory.last = memory.pieces[0];
	return memory;
}

static const struct memory_piece *piece_at(const struct memory *memory, uint64_t va,
					   uint64_t len)
{
	for (size_t i = 0; i < memory->piece_count; i++) {
		const struct memory_piece *piece = &memory->pieces[i];
		uint64_t off = va - piece->va;

		if (off < piece->bytes.len && piece->bytes.len - off >= len)
			return piece;
	}
	return NULL;
}

/* The module's segment that va is in. One that is writable in the file does not count, although its
 * mapping may be read-only: relocation has changed it (RELRO). */
static const struct elf_segment *constant_segment(const struct memory *memory, uint64_t va,
						  const struct elf **elf, uint64_t *ea)
{
	const struct module_range *range = module_range_at(memory->modules, va);
	const struct elf_segment *segment;

	if (!range || range->writable || !range->module->elf)
		return NULL;
	*elf = range->module->elf;
	*ea = va - range->bias;
	segment = elf_segment_at(*elf, *ea);
	return segment && !(segment->flags & PF_W) ? segment : NULL;
}

struct bytes memory_text(const struct memory *memory, uint64_t va, size_t *at)
{
	const struct elf *elf;
	uint64_t ea;
	const struct elf_segment *segment = constant_segment(memory, va, &elf, &ea);
	struct bytes text;

	*at = 0;
	if (!segment)
		return (struct bytes){NULL, 0};
	text = elf_bytes_at(elf, segment->ea);
	*at = ea - segment->ea;
	return *at < text.len ? text : (struct bytes){NULL, 0};
}

struct bytes memory_bytes(struct memory *memory, uint64_t va, uint64_t len)
{
	const struct memory_piece *piece = piece_at(memory, va, len);
	struct bytes bytes;
	size_t at;

	if (piece) {
		memory->last = *piece;
		return bytes_from(piece->bytes, va - piece->va);
	}
	bytes = memory_text(memory, va, &at);
	bytes = bytes_from(bytes, at);
	return bytes.len >= len ? bytes : (struct bytes){NULL, 0};
}

bool memory_ending(const struct memory *memory, uint64_t va, struct ending *ending)
{
	const struct map *map = snapshot_map_at(memory->snapshot, va);

	if (map && MAP_WRITABLE(map))
		return end_at(ending, STOP_NOT_CAPTURED, NULL, va);
	return end_at(ending, STOP_UNREADABLE, NULL, va);
}

bool memory_uint_slow(struct memory *memory, uint64_t va, unsigned size, uint64_t *out,
		      struct ending *ending)
{
	struct reader r = reader_over(memory_bytes(memory, va, size));

	*out = read_uint(&r, size);
	return !reader_failed(&r) || memory_ending(memory, va, ending);
}

bool memory_has_piece_slow(struct memory *memory, uint64_t va)
{
	const struct memory_piece *piece = piece_at(memory, va, 1);

	if (piece)
		memory->last = *piece;
	return piece;
}

bool memory_same_stack(const struct memory *memory, uint64_t a, uint64_t b)
{
	const struct memory_piece *piece = piece_at(memory, a, 1);
	const struct map *map = snapshot_map_at(memory->snapshot, a);

	return (piece && piece == piece_at(memory, b, 1)) ||
	       (map && map == snapshot_map_at(memory->snapshot, b));
}
