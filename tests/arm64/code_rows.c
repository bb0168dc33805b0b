/*
 * code_rows FILE: at every instruction of every FDE of an arm64 file, the frame that the code tells
 * (arch->frame_by_code) against the row of the call frame information, which for that is the truth.
 * Rows go on to tell where LR is saved when it has been loaded from there, which is as right as LR itself.
 * Prints how many are the same, how many the code does not tell, how many cannot be compared because
 * one counts from SP and the other from the frame pointer, and each one that differs.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "unwind/cfi.h"

enum { FP = 29, LR = 30, SP = 31 };

/* Restores registers and returns. */
#define EPILOGUE_SIZE 64

static uint64_t same, loaded, none, other_base, different;

static bool is_same(const struct row *row, const struct arch_frame *frame)
{
	const struct rule *lr = &row->rules[LR];

	if (frame->sp.offset != row->cfa.offset)
		return false;
	if (lr->kind == RULE_UNSPECIFIED || lr->kind == RULE_SAME)
		return frame->ra_in_lr;
	return lr->kind == RULE_OFFSET && !frame->ra_in_lr &&
	       frame->ra.from_fp == frame->sp.from_fp &&
	       frame->ra.offset == row->cfa.offset + lr->offset;
}

static bool is_load_of_lr(struct bytes text, size_t at)
{
	struct reader r = reader_at(text, at);
	uint32_t code = read_u32(&r);
	bool pair = (code & 0xfe400000) == 0xa8400000,
	     single = (code & 0xffc00000) == 0xf9400000 || (code & 0xffe00000) == 0xf8400000;

	return (pair && (code >> 10 & 31) == LR) || ((pair || single) && (code & 31) == LR);
}

/* Is the CFA the same, and was LR loaded a few instructions ago? */
static bool is_loaded(struct bytes text, size_t at, const struct row *row,
		      const struct arch_frame *frame)
{
	size_t first = at > EPILOGUE_SIZE ? at - EPILOGUE_SIZE : 0;

	while (at > first && !is_load_of_lr(text, at - 4))
		at -= 4;
	return at > first && frame->ra_in_lr && frame->sp.offset == row->cfa.offset;
}

static void compare(struct bytes text, size_t at, uint64_t ea, const struct row *row)
{
	struct arch_frame frame;
	bool called = arch_aarch64.is_after_call(text, at);

	if (row->cfa.kind != CFA_REGISTER || row->rules[LR].kind == RULE_UNDEFINED)
		return;
	if (!arch_aarch64.frame_by_code(text, at, called, &frame)) {
		none++;
	} else if (row->cfa.reg != (frame.sp.from_fp ? FP : SP)) {
		other_base++;
	} else if (is_same(row, &frame)) {
		same++;
	} else if (is_loaded(text, at, row, &frame)) {
		loaded++;
	} else {
		different++;
		printf("0x%" PRIx64 ": CFA %s%+" PRId64 ", not %+" PRId64 "\n", ea,
		       frame.sp.from_fp ? "fp" : "sp", frame.sp.offset, row->cfa.offset);
	}
}

static void compare_row(const struct elf *elf, const struct row *row)
{
	const struct elf_segment *segment = elf_segment_at(elf, row->start);
	struct bytes text;

	if (!segment)
		return;
	text = elf_bytes_at(elf, segment->ea);
	for (uint64_t ea = row->start; ea < row->end; ea += 4)
		compare(text, ea - segment->ea, ea, row);
}

int main(int argc, char **argv)
{
	static struct program program;
	struct arena arena = {0};
	struct elf elf;
	struct module module = {.name = "file", .elf = &elf};
	struct cfi_walk walk;
	struct bytes bytes;
	struct err e = {0};
	struct row row;
	bool over;

	if (argc != 2 || !file_map(argv[1], &bytes, &e) ||
	    !elf_open(&elf, &arena, bytes, argv[1], &e) ||
	    !cfi_walk_begin(&walk, &module, &arena, 0)) {
		fprintf(stderr, "%s\n", e.text);
		return 2;
	}
	while (cfi_walk_next(&walk)) {
		if (!program_begin(&program, walk.section, &walk.fde, &e))
			continue;
		while (program_next(&program, &row, &over, &e))
			compare_row(&elf, &row);
	}
	printf("same %" PRIu64 ", in LR already %" PRIu64 ", not told %" PRIu64
	       ", another base %" PRIu64 ", different %" PRIu64 "\n",
	       same, loaded, none, other_base, different);
	return different > 0;
}
