/*
 * Fuzzing of debugging information: units, abbreviations, DIEs, ranges, line programs, the
 * index of a package.
 *
 * The input is a 16-bit size for each section of names[], of the file and then of its
 * companion, then the contents in the same order. The companion is every .dwo that is asked
 * for, or, with a .debug_cu_index, the package beside the file, and the file of shared parts
 * (dwz). When the whole has an odd size, the file's .debug_info is stored compressed: it is
 * read piece by piece then.
 */
#include <stdio.h>

#include "base/budget.h"
#include "dwarf/dwarf.h"
#include "elf_image.h"
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
struct fuzzed {
	struct elf elf;
	struct elf_section sections[1 + COUNT]; /* [0] is the null section */
	char names[COUNT][32];
};

/* Where the sizes and the contents of the next image are. */
struct input {
	struct bytes all;
	struct reader sizes, contents;
};

static void fuzzed_make(struct fuzzed *image, struct input *input, struct arena *arena,
			const char *suffix)
{
	for (size_t i = 0; i < COUNT; i++) {
		uint64_t size = read_u16(&input->sizes);
		uint64_t left = reader_left(&input->contents);
		struct bytes plain = read_block(&input->contents, size < left ? size : left);

		snprintf(image->names[i], sizeof image->names[i], ".debug_%s%s", names[i],
			 i == COUNT - 1 ? "" : suffix);
		image->sections[1 + i] = (struct elf_section){
			.name = image->names[i],
			.type = SHT_PROGBITS,
			.size = plain.len,
			.plain = plain,
			.loaded = true,
		};
	}
	image->elf = (struct elf){
		.name = "fuzz",
		.data = input->all,
		.machine = EM_X86_64,
		.sections = image->sections,
		.section_count = 1 + COUNT,
		.arena = arena,
	};
}

static void info_pack(struct fuzzed *image, struct arena *arena)
{
	struct elf_section *info = &image->sections[1];

	image->elf.data = image_packed(arena, info->name, info->plain).contents;
	*info = (struct elf_section){
		.name = info->name,
		.type = SHT_PROGBITS,
		.flags = SHF_COMPRESSED,
		.size = image->elf.data.len,
	};
}

struct companions {
	struct fuzzed split, shared;
};

static struct elf *open_dwo(void *context, const char *name, const char *directory, uint64_t id)
{
	struct companions *companions = context;

	(void)name, (void)directory, (void)id;
	return &companions->split.elf;
}

static struct elf *open_dwp(void *context)
{
	struct companions *companions = context;

	return companions->split.sections[COUNT].size ? &companions->split.elf : NULL;
}

static struct elf *open_alternate(void *context, const char *name, struct bytes build_id)
{
	struct companions *companions = context;

	(void)name, (void)build_id;
	return &companions->shared.elf;
}

static void look_up(struct arena *arena, struct fuzzed *image, struct companions *companions)
{
	struct dwarf_companions ways = {companions, open_dwo, open_dwp, open_alternate};
	struct dwarf *dwarf = dwarf_open(arena, &image->elf, &ways);
	struct dwarf_answer answers[ADDRESSES];

	for (size_t i = 0; i < ADDRESSES; i++)
		answers[i] = (struct dwarf_answer){.ea = i < 8 ? i : CODE + 12 * (i - 8)};
	if (!dwarf)
		return;
	dwarf_lookup(dwarf, answers, ADDRESSES);
	dwarf_problem(dwarf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	static struct fuzzed whole;
	static struct companions companions;
	struct bytes all = {data, size};
	struct input input = {all, reader_over(all), reader_over(bytes_from(all, 4 * COUNT))};
	struct input again;

	if (size < 4 * COUNT || size > 1 << 16)
		return 0;
	budget_allow(UINT64_C(64) << 20);
	fuzzed_make(&whole, &input, &arena, "");
	if (size & 1)
		info_pack(&whole, &arena);
	again = input;
	fuzzed_make(&companions.split, &input, &arena, ".dwo");
	fuzzed_make(&companions.shared, &again, &arena, "");
	look_up(&arena, &whole, &companions);
	arena_reset(&arena);
	return 0;
}
