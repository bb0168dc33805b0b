/*
 * Fuzzing of everything that reads call frame information, and of the walk over it (libFuzzer).
 *
 * The input is one choice byte, then registers and stack words, then an .eh_frame, .debug_frame or
 * .eh_frame_hdr with an .eh_frame of which the module is made. All rows of all FDEs are run, and a thread
 * with these registers is walked. Nothing is checked but what sanitizers and the walk's own end check:
 * no input may read out of bounds, loop without end or be slow.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "unwind/cfi.h"
#include "unwind/unwind.h"

#define TEXT UINT64_C(0x1000)
#define CFI_EA UINT64_C(0x3000)
#define HDR_EA UINT64_C(0x2000)
#define STACK UINT64_C(0x7ffe00000000)

/* A module of three segments and the sections the choice says. */
struct setting {
	struct elf_segment segments[4];
	struct elf_section sections[3];
	struct elf elf;
	struct module module;
	struct module_range range;
	struct modules modules;
	struct map maps[2];
	struct snapshot snapshot;
	struct thread thread;
	struct memory_piece piece;
};

static void add_section(struct setting *s, const char *name, uint64_t ea, struct bytes contents)
{
	s->sections[s->elf.section_count++] = (struct elf_section){
		.name = name,
		.type = SHT_PROGBITS,
		.ea = ea,
		.plain = contents,
		.loaded = true,
	};
}

static void add_segment(struct setting *s, uint32_t type, uint32_t flags, uint64_t ea,
			uint64_t off, uint64_t size)
{
	s->segments[s->elf.segment_count++] =
		(struct elf_segment){type, flags, off, ea, size, size, 1};
}

static void set_elf(struct setting *s, struct bytes contents, uint8_t choice)
{
	uint64_t half = contents.len / 2;

	s->elf = (struct elf){.name = "fuzz",
			      .data = contents,
			      .segments = s->segments,
			      .sections = s->sections};
	add_segment(s, PT_LOAD, PF_R | PF_X, TEXT, 0,
		    contents.len < 0x1000 ? contents.len : 0x1000);
	s->segments[0].mem_size = 0x1000;
	if (choice & 2) { /* section headers are stripped: the first half is .eh_frame_hdr */
		add_segment(s, PT_GNU_EH_FRAME, PF_R, HDR_EA, 0, half);
		add_segment(s, PT_LOAD, PF_R, HDR_EA, 0, half < 0x1000 ? half : 0x1000);
		add_segment(s, PT_LOAD, PF_R, CFI_EA, half, contents.len - half);
	} else if (choice & 4) {
		add_section(s, ".debug_frame", 0, contents);
	} else {
		add_section(s, ".eh_frame", CFI_EA, contents);
	}
}

static void set_thread(struct setting *s, struct bytes registers, struct bytes stack)
{
	struct reader r = reader_over(registers);

	for (size_t i = 0; i < s->snapshot.arch->slot_count; i++) {
		uint64_t value = i % 3 ? read_u16(&r) : read_u8(&r);

		s->thread.registers.at[i] = i % 2 ? STACK + value % 512 : TEXT + value;
	}
	s->thread.registers.at[s->snapshot.arch->pc_slot] = TEXT + read_u16(&r) % 0x1000;
	s->thread.registers.at[s->snapshot.arch->sp_slot] = STACK;
	s->piece = (struct memory_piece){STACK, stack};
	s->thread.pieces = &s->piece;
	s->thread.piece_count = 1;
	s->thread.has_registers = true;
}

static void set_process(struct setting *s)
{
	s->module = (struct module){.name = "fuzz", .elf = &s->elf};
	s->range = (struct module_range){0, 0x100000, 0, &s->module, true, false};
	s->modules = (struct modules){.at = &s->module,
				      .count = 1,
				      .ranges = &s->range,
				      .range_count = 1};
	s->maps[0] =
		(struct map){.start = 0, .end = 0x100000, .permissions = "r-xp", .path = ""};
	s->maps[1] = (struct map){.start = STACK,
				  .end = STACK + 0x10000,
				  .permissions = "rw-p",
				  .path = "[stack]"};
	s->snapshot.maps = s->maps;
	s->snapshot.map_count = 2;
}

/* All rows of the FDE that stands, and the first one by its address. */
static void run_rows(const struct cfi_walk *walk, struct module *module, struct arena *arena)
{
	static struct program program;
	struct row row;
	bool over;

	cfi_row_at(module, arena, walk->fde.ea, &row, NULL);
	if (!program_begin(&program, walk->section, &walk->fde, NULL))
		return;
	while (program_next(&program, &row, &over, NULL))
		if (row.return_reg >= ARCH_DWARF_REGS)
			abort();
}

static void run_all_rows(struct module *module, struct arena *arena)
{
	struct cfi_walk walk;

	for (size_t source = 0; cfi_walk_begin(&walk, module, arena, source); source++)
		while (cfi_walk_next(&walk))
			run_rows(&walk, module, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena; /* kept: allocating anew would take most of the time */
	struct setting s = {.snapshot.arch = &arch_x86_64};
	struct bytes input = {data, size}, rest;
	struct unwinder *unwinder;

	if (size < 1 + 64 + 128 || size > 4096)
		return 0;
	if (data[0] & 1)
		s.snapshot.arch = &arch_aarch64;
	rest = bytes_from(input, 1 + 64 + 128);
	set_process(&s);
	set_elf(&s, rest, data[0]);
	s.elf.arena = &arena;
	set_thread(&s, bytes_part(input, 1, 64), bytes_part(input, 65, 128));
	run_all_rows(&s.module, &arena);
	unwinder = unwinder_new(&arena, &s.snapshot, &s.modules, NULL);
	unwind_thread(unwinder, &s.thread);
	if (s.thread.stack.count == 0)
		abort();
	arena_reset(&arena);
	return 0;
}
