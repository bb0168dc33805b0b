/*
 * Fuzzing of debugging information: units, abbreviations, DIEs, ranges, line programs, the index of a
 * package.
 *
 * The input is one choice byte, a 16-bit size for each section of names[], then their contents. With
 * the choice's lowest bit the package beside the file, and every .dwo that is asked for, is made of the
 * same bytes.
 */
#include <stdio.h>

#include "dwarf/dwarf.h"
#include "fuzz.h"

static const char *const names[] = {
	"info", "abbrev", "str",      "line",    "line_str", "str_offsets",
	"addr", "ranges", "rnglists", "aranges", "cu_index",
};
#define COUNT (sizeof names / sizeof names[0])
#define ADDRESSES 48
/* Where the seeds have their code. */
#define CODE UINT64_C(0x1000)

/* The sections under their plain names, or under those of split files. */
struct image {
	struct elf elf;
	struct elf_section sections[COUNT];
	char names[COUNT][32];
};

static void image_make(struct image *image, struct arena *arena, struct bytes input,
		       const char *suffix)
{
	struct reader sizes = reader_over(bytes_from(input, 1));
	struct reader contents = reader_over(bytes_from(input, 1 + 2 * COUNT));

	for (size_t i = 0; i < COUNT; i++) {
		uint64_t size = read_u16(&sizes), left = reader_left(&contents);
		struct bytes plain = read_block(&contents, size < left ? size : left);

		snprintf(image->names[i], sizeof image->names[i], ".debug_%s%s", names[i],
			 suffix);
		image->sections[i] = (struct elf_section){
			.name = image->names[i],
			.type = SHT_PROGBITS,
			.size = plain.len,
			.plain = plain,
			.loaded = true,
		};
	}
	image->elf = (struct elf){
		.name = "fuzz",
		.data = input,
		.machine = EM_X86_64,
		.sections = image->sections,
		.section_count = COUNT,
		.arena = arena,
	};
}

static struct elf *open_dwo(void *context, const char *name, const char *directory, uint64_t id)
{
	(void)name, (void)directory, (void)id;
	return context;
}

static struct elf *open_dwp(void *context)
{
	return context;
}

static struct elf *open_alternate(void *context, const char *name, struct bytes build_id)
{
	(void)name, (void)build_id;
	return context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	static struct image whole, split;
	struct bytes input = {data, size};
	struct dwarf_answer answers[ADDRESSES];
	struct dwarf_companions companions = {&split.elf, open_dwo, open_dwp, open_alternate};
	struct dwarf *dwarf;

	if (size < 1 + 2 * COUNT || size > 1 << 16)
		return 0;
	image_make(&whole, &arena, input, "");
	image_make(&split, &arena, input, ".dwo");
	if (!(data[0] & 1))
		companions.context = NULL;
	for (size_t i = 0; i < ADDRESSES; i++)
		answers[i] = (struct dwarf_answer){.ea = i < 8 ? i : CODE + 12 * (i - 8)};
	dwarf = dwarf_open(&arena, &whole.elf, &companions);
	if (dwarf) {
		dwarf_lookup(dwarf, answers, ADDRESSES);
		dwarf_problem(dwarf);
	}
	arena_reset(&arena);
	return 0;
}
