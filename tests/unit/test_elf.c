/* ELF headers, sections, notes, symbols, built byte by byte, and their malformed twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "elf/elf.h"
#include "elf/symbols.h"

/* A small file: headers, 2 program headers, a note, symbols, strings, section headers. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr load, note_segment;
	struct {
		Elf64_Nhdr head;
		char owner[4];
		uint8_t id[8];
	} note;
	Elf64_Sym symbols[3];
	char strings[32];
	char names[64];
	Elf64_Shdr sections[6];
};

#define NAMES "\0.note.id\0.symtab\0.strtab\0.shstrtab\0.zdebug_info"

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t off, uint64_t size,
			  uint32_t link)
{
	return (Elf64_Shdr){.sh_name = name,
			    .sh_type = type,
			    .sh_offset = off,
			    .sh_size = size,
			    .sh_link = link,
			    .sh_addralign = 4};
}

static struct file file_make(void)
{
	struct file f = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_machine = EM_AARCH64,
			   .e_entry = 0x1234,
			   .e_phoff = offsetof(struct file, load),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2,
			   .e_shoff = offsetof(struct file, sections),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 6,
			   .e_shstrndx = 4},
		.load = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = 0x10000,
			 .p_filesz = sizeof(struct file),
			 .p_memsz = sizeof(struct file) + 0x1000,
			 .p_align = 0x1000},
		.note_segment = {.p_type = PT_NOTE,
				 .p_offset = offsetof(struct file, note),
				 .p_filesz = 24,
				 .p_align = 4},
		.note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", {1, 2, 3, 4, 5, 6, 7, 0xab}},
		.symbols = {{0},
			    {.st_name = 1,
			     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			     .st_shndx = 1,
			     .st_value = 0x10040,
			     .st_size = 8},
			    {.st_name = 9999, .st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT)}},
		.strings = "\0main",
		.names = NAMES,
	};

	f.sections[1] = section(1, SHT_NOTE, offsetof(struct file, note), 24, 0);
	f.sections[2] =
		section(10, SHT_SYMTAB, offsetof(struct file, symbols), sizeof f.symbols, 3);
	f.sections[3] =
		section(18, SHT_STRTAB, offsetof(struct file, strings), sizeof f.strings, 0);
	f.sections[4] =
		section(26, SHT_STRTAB, offsetof(struct file, names), sizeof f.names, 0);
	f.sections[5] = section(36, SHT_NOBITS, 0, 1 << 30, 0);
	return f;
}

static bool open_len(struct arena *arena, const struct file *f, size_t len, struct elf *elf,
		     struct err *e)
{
	return elf_open(elf, arena, (struct bytes){(const uint8_t *)f, len}, "x.so", e);
}

static void check_good(void **state)
{
	struct arena arena = {0};
	struct file f = file_make();
	struct elf elf;
	struct elf_symbols symbols;
	struct elf_symbol symbol;
	struct bytes contents;

	(void)state;
	assert_true(open_len(&arena, &f, sizeof f, &elf, NULL));
	assert_int_equal(elf.machine, EM_AARCH64);
	assert_int_equal(elf.entry, 0x1234);
	assert_int_equal(elf.segment_count, 2);
	assert_int_equal(elf.section_count, 6);
	assert_string_equal(build_id_text(&arena, elf.build_id), "01020304050607ab");
	assert_non_null(elf_section(&elf, ".symtab"));
	assert_null(elf_section(&elf, ".text"));
	assert_ptr_equal(elf_section(&elf, ".debug_info"), &elf.sections[5]);
	assert_true(elf_section_bytes(&elf, ".debug_info", &contents, NULL));
	assert_int_equal(contents.len, 0); /* NOBITS, whatever its size says */
	assert_true(elf_section_bytes(&elf, ".strtab", &contents, NULL));
	assert_int_equal(contents.len, sizeof f.strings);
	symbols = elf_symbols(&elf, ELF_SYMTAB);
	assert_true(elf_symbols_next(&symbols, &symbol));
	assert_string_equal(symbol.name, "main");
	assert_int_equal(symbol.ea, 0x10040);
	assert_int_equal(symbol.type, STT_FUNC);
	assert_true(elf_symbols_next(&symbols, &symbol));
	assert_string_equal(symbol.name, ""); /* name out of bounds */
	assert_int_equal(symbol.bind, STB_WEAK);
	assert_false(elf_symbols_next(&symbols, &symbol));
	arena_free(&arena);
}

static void check_addresses(void **state)
{
	struct arena arena = {0};
	struct file f = file_make();
	struct elf elf;

	(void)state;
	assert_true(open_len(&arena, &f, sizeof f, &elf, NULL));
	assert_int_equal(elf_bytes_at(&elf, 0x10000).len, sizeof f);
	assert_ptr_equal(elf_bytes_at(&elf, 0x10000 + 4).at, (const uint8_t *)&f + 4);
	assert_int_equal(elf_bytes_at(&elf, 0xffff).len, 0);
	assert_int_equal(elf_bytes_at(&elf, 0x10000 + sizeof f).len,
			 0); /* the zero-filled part */
	assert_non_null(elf_segment_at(&elf, 0x10000 + sizeof f));
	assert_null(elf_segment_at(&elf, UINT64_MAX));
	arena_free(&arena);
}

/* Each twin is the good file with one lie in it. */
static void check_lies(void **state)
{
	struct arena arena = {0};
	struct file f = file_make();
	struct elf elf;
	struct err e = {0};
	struct bytes contents;

	(void)state;
	f.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_false(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_string_equal(e.text, "x.so: not a 64-bit ELF file");
	f = file_make();
	f.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_false(open_len(&arena, &f, sizeof f, &elf, &e));
	f = file_make();
	f.header.e_ident[0] = '#';
	assert_false(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_string_equal(e.text, "x.so: not an ELF file");
	f = file_make();
	f.header.e_phoff = UINT64_MAX - 3;
	assert_false(open_len(&arena, &f, sizeof f, &elf, &e));
	f = file_make();
	f.header.e_phentsize = 1;
	assert_false(open_len(&arena, &f, sizeof f, &elf, &e));
	f = file_make();
	f.header.e_shoff = UINT64_MAX - 3; /* section headers may be damaged */
	assert_true(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_int_equal(elf.section_count, 0);
	assert_int_equal(elf.build_id.len, 8); /* by its segment */
	f = file_make();
	f.header.e_shstrndx = 77;
	assert_true(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_string_equal(elf.sections[2].name, "");
	f = file_make();
	f.sections[3].sh_size = UINT64_MAX;
	assert_true(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_false(elf_section_bytes(&elf, ".strtab", &contents, &e));
	assert_string_equal(e.text, "x.so: section .strtab: lies outside the file");
	f = file_make();
	f.note.head.n_namesz = UINT32_MAX;
	assert_true(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_int_equal(elf.build_id.len, 0);
	f = file_make();
	f.note.head.n_descsz = UINT32_MAX;
	assert_true(open_len(&arena, &f, sizeof f, &elf, &e));
	assert_int_equal(elf.build_id.len, 0);
	arena_free(&arena);
}

/* Cut short at every length: an error or less of the file, never a read outside (ASan looks). */
static void check_cut(void **state)
{
	struct arena arena = {0};
	struct file f = file_make();

	(void)state;
	for (size_t len = 0; len < sizeof f; len++) {
		uint8_t *copy = arena_alloc(&arena, len ? len : 1, 1);
		struct elf elf;
		struct elf_symbols symbols;
		struct elf_symbol symbol;
		struct bytes contents;

		memcpy(copy, &f, len);
		if (!elf_open(&elf, &arena, (struct bytes){copy, len}, "x", NULL))
			continue;
		for (size_t i = 0; i < elf.section_count; i++)
			elf_section_load(&elf, &elf.sections[i], &contents, NULL);
		symbols = elf_symbols(&elf, ELF_SYMTAB);
		while (elf_symbols_next(&symbols, &symbol))
			assert_non_null(symbol.name);
		assert_true(elf_bytes_at(&elf, 0x10000).len <= len);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_good),
		cmocka_unit_test(check_addresses),
		cmocka_unit_test(check_lies),
		cmocka_unit_test(check_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
