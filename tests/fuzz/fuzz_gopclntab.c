/* Fuzzing of Go's table of functions: the input is the section. */
#include "elf/gopclntab.h"
#include "fuzz.h"

static volatile uint64_t sum;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	struct elf_section sections[] = {
		{.name = ""},
		{.name = ".text", .type = SHT_PROGBITS, .ea = 0x401000, .size = 0x1000},
		{.name = ".gopclntab",
		 .type = SHT_PROGBITS,
		 .ea = 0x500000,
		 .size = size,
		 .plain = {data, size},
		 .loaded = true},
	};
	struct elf elf = {
		.name = "fuzz",
		.data = {data, size},
		.machine = EM_X86_64,
		.sections = sections,
		.section_count = 3,
		.arena = &arena,
	};
	struct gopclntab *table = gopclntab_open(&arena, &elf);
	struct go_place place;
	struct go_frame frame;

	for (uint64_t ea = 0x400ff8; table && ea < 0x402000; ea += 0x18) {
		if (gopclntab_frame(table, ea, &frame))
			sum += frame.size;
		if (gopclntab_find(table, ea, &place))
			sum += strlen(place.function) + (place.file ? strlen(place.file) : 0);
	}
	arena_reset(&arena);
	return 0;
}
