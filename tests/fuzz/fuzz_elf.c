/* Fuzzing of ELF files: headers, sections with decompression, symbols, notes, the embedded file. */
#include "base/budget.h"
#include "elf/compress.h"
#include "elf/debugfile.h"
#include "elf/elf.h"
#include "elf/symbols.h"
#include "fuzz.h"

static volatile uint64_t sum;

static void read_bytes(struct bytes bytes)
{
	if (bytes.len)
		sum += bytes.at[0] + bytes.at[bytes.len - 1];
}

static void read_sections(struct elf *elf)
{
	struct bytes contents;

	for (size_t i = 0; i < elf->section_count; i++) {
		sum += strlen(elf->sections[i].name);
		if (elf_section_load(elf, &elf->sections[i], &contents, NULL))
			read_bytes(contents);
	}
}

static void read_symbols(struct elf *elf, enum elf_symbols_which which)
{
	struct elf_symbols symbols = elf_symbols(elf, which);
	struct elf_symbol symbol;

	while (elf_symbols_next(&symbols, &symbol)) {
		sum += strlen(symbol.name);
		read_bytes(elf_bytes_at(elf, symbol.ea));
	}
}

static void read_all(struct elf *elf)
{
	read_sections(elf);
	read_symbols(elf, ELF_SYMTAB);
	read_symbols(elf, ELF_DYNSYM);
	read_bytes(elf->build_id);
	read_bytes(elf_bytes_at(elf, elf->entry));
	elf_segment_of(elf, PT_GNU_EH_FRAME);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	struct elf elf, *embedded;
	struct err e = {0};

	budget_allow(UINT64_C(64) << 20);
	if (elf_open(&elf, &arena, (struct bytes){data, size}, "fuzz", &e)) {
		read_all(&elf);
		embedded = debugfile_embedded(&elf, &e);
		if (embedded)
			read_all(embedded);
	}
	arena_reset(&arena);
	return 0;
}
