/* ELF headers, sections, notes, symbols, built byte by byte, and their malformed twins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

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

/* A file with `contents` and many equal program headers or sections; section 1 is the names. */
struct crowd {
	size_t segments, sections;
	Elf64_Shdr like; /* its offset is in the contents */
	struct bytes contents;
};

static struct bytes crowd_make(struct arena *arena, const struct crowd *crowd)
{
	struct file f = file_make();
	size_t segments_size = crowd->segments * sizeof f.load;
	size_t sections_off =
		sizeof f.header + segments_size + ((crowd->contents.len + 7) & ~7U);
	size_t size = sections_off + crowd->sections * sizeof f.sections[0];
	uint8_t *image = arena_alloc(arena, size, 1);
	Elf64_Shdr like = crowd->like;

	f.header.e_phoff = sizeof f.header;
	f.header.e_phnum = (uint16_t)crowd->segments;
	f.header.e_shoff = crowd->sections ? sections_off : 0;
	f.header.e_shnum = (uint16_t)crowd->sections;
	f.header.e_shstrndx = 1;
	memcpy(image, &f.header, sizeof f.header);
	for (size_t i = 0; i < crowd->segments; i++)
		memcpy(image + sizeof f.header + i * sizeof f.load, &f.load, sizeof f.load);
	if (crowd->contents.len)
		memcpy(image + sizeof f.header + segments_size, crowd->contents.at,
		       crowd->contents.len);
	like.sh_offset = sizeof f.header + segments_size;
	for (size_t i = 0; i < crowd->sections; i++)
		memcpy(image + sections_off + i * sizeof like, &like, sizeof like);
	return (struct bytes){image, size};
}

static void check_number_of_segments(void **state)
{
	static const struct {
		size_t segments;
		enum err_kind kind;
	} cases[] = {{1, ERR_NONE}, {256, ERR_NONE}, {257, ERR_LIMIT}, {0xfff0, ERR_LIMIT}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena arena = {0};
		struct crowd crowd = {.segments = cases[i].segments};
		struct err e = {0};
		struct elf elf;

		assert_int_equal(elf_open(&elf, &arena, crowd_make(&arena, &crowd), "x", &e),
				 cases[i].kind == ERR_NONE);
		assert_int_equal(e.kind, cases[i].kind);
		arena_free(&arena);
	}
}

static struct bytes filled(struct arena *arena, size_t len, uint8_t byte)
{
	uint8_t *at = arena_alloc(arena, len, 1);

	memset(at, byte, len);
	return (struct bytes){at, len};
}

#define SECONDS_MAX (1 * CLOCKS_PER_SEC)

/* Many sections, or symbols, whose names are looked for in a table without an end of a string. */
static void check_names_without_end(void **state)
{
	enum { NAMES_SIZE = 4 << 20, MANY = 20000 };
	struct arena arena = {0};
	struct crowd crowd = {.sections = MANY,
			      .contents = filled(&arena, NAMES_SIZE, 'x'),
			      .like = section(1, SHT_STRTAB, 0, NAMES_SIZE, 1)};
	struct bytes image = crowd_make(&arena, &crowd);
	Elf64_Shdr symbols = section(1, SHT_SYMTAB, 64, (uint64_t)MANY * sizeof(Elf64_Sym), 1);
	struct elf elf;
	struct elf_symbols walk;
	struct elf_symbol symbol;
	clock_t begin = clock();
	size_t count = 0;

	(void)state;
	memcpy((uint8_t *)(uintptr_t)image.at + image.len - sizeof symbols, &symbols,
	       sizeof symbols);
	assert_true(elf_open(&elf, &arena, image, "x", NULL));
	assert_int_equal(elf.section_count, MANY);
	assert_string_equal(elf.sections[MANY - 1].name, "");
	walk = elf_symbols(&elf, ELF_SYMTAB);
	for (; elf_symbols_next(&walk, &symbol); count++)
		assert_string_equal(symbol.name, "");
	assert_int_equal(count, MANY - 1);
	assert_true(clock() - begin < SECONDS_MAX);
	arena_free(&arena);
}

/* Many sections that are all the same notes, of the smallest size and of another type. */
static void check_notes_named_often(void **state)
{
	enum { NOTES_SIZE = 12 * 80000, MANY = 4000 };
	struct arena arena = {0};
	struct crowd crowd = {.sections = MANY,
			      .contents = filled(&arena, NOTES_SIZE, 0),
			      .like = section(0, SHT_NOTE, 0, NOTES_SIZE, 0)};
	struct bytes image = crowd_make(&arena, &crowd);
	struct elf elf;
	clock_t begin = clock();

	(void)state;
	assert_true(elf_open(&elf, &arena, image, "x", NULL));
	assert_int_equal(elf.build_id.len, 0);
	assert_true(clock() - begin < SECONDS_MAX);
	arena_free(&arena);
}

/* Offsets that are good in a table whose end is cut off. */
static void check_string_tables(void **state)
{
	static const struct {
		const char *table;
		size_t len;
		uint64_t off;
		const char *want;
	} cases[] = {
		{"\0ab\0cd", 7, 1, "ab"},    {"\0ab\0cd", 7, 2, "b"},  {"\0ab\0cd", 7, 4, "cd"},
		{"\0ab\0cd", 6, 4, ""},      {"\0ab\0cd", 6, 1, "ab"}, {"\0ab\0cd", 3, 1, ""},
		{"\0ab\0cd", 7, 7, ""},      {"\0ab\0cd", 0, 0, ""},   {"ab", 2, 0, ""},
		{"\0ab", 4, UINT64_MAX, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bytes table = {(const uint8_t *)cases[i].table, cases[i].len};

		assert_string_equal(strings_at(bytes_strings(table), cases[i].off),
				    cases[i].want);
	}
	assert_int_equal(bytes_strings((struct bytes){NULL, 0}).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_good),
		cmocka_unit_test(check_addresses),
		cmocka_unit_test(check_lies),
		cmocka_unit_test(check_cut),
		cmocka_unit_test(check_number_of_segments),
		cmocka_unit_test(check_names_without_end),
		cmocka_unit_test(check_notes_named_often),
		cmocka_unit_test(check_string_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
