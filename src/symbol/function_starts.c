#include "symbol/function_starts.h"

#define ENTRY_SIZE 8

/* DW_EH_PE_*: only these are written by bfd, gold, lld and mold. */
#define ENC_UDATA4 0x03
#define ENC_SDATA4 0x0b
#define ENC_PCREL_SDATA4 0x1b
#define ENC_DATAREL_SDATA4 0x3b

struct function_starts function_starts(const struct elf *elf)
{
	const struct elf_segment *segment = elf_segment_of(elf, PT_GNU_EH_FRAME);
	struct function_starts starts = {0};
	struct reader r;
	uint8_t version, frame_enc, count_enc, table_enc;
	uint64_t count;

	if (!segment)
		return starts;
	r = reader_over(bytes_part(elf->data, segment->off, segment->file_size));
	version = read_u8(&r);
	frame_enc = read_u8(&r);
	count_enc = read_u8(&r);
	table_enc = read_u8(&r);
	if (version != 1 || count_enc != ENC_UDATA4 || table_enc != ENC_DATAREL_SDATA4 ||
	    (frame_enc != ENC_PCREL_SDATA4 && frame_enc != ENC_DATAREL_SDATA4 &&
	     frame_enc != ENC_SDATA4))
		return starts;
	read_u32(&r); /* .eh_frame */
	count = read_u32(&r);
	starts.table = read_block(&r, count * ENTRY_SIZE);
	starts.base = segment->ea;
	starts.count = starts.table.len / ENTRY_SIZE;
	return starts;
}

static uint64_t start_at(const struct function_starts *starts, size_t i)
{
	struct reader r = reader_at(starts->table, (uint64_t)i * ENTRY_SIZE);

	return starts->base + (uint64_t)read_sint(&r, 4);
}

uint64_t function_start_above(const struct function_starts *starts, uint64_t ea)
{
	size_t low = 0, high = starts->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (start_at(starts, middle) <= ea)
			low = middle + 1;
		else
			high = middle;
	}
	return low < starts->count ? start_at(starts, low) : UINT64_MAX;
}
