#include "elf_image.h"

#include <elf.h>
#include <string.h>

struct writer {
	struct arena *arena;
	VEC(uint8_t) out;
};

static uint64_t put(struct writer *w, const void *at, size_t len)
{
	uint64_t off = w->out.count;

	for (size_t i = 0; i < len; i++)
		*vec_push(w->arena, &w->out) = ((const uint8_t *)at)[i];
	return off;
}

static void align(struct writer *w, size_t to)
{
	while (w->out.count % to)
		*vec_push(w->arena, &w->out) = 0;
}

struct maker {
	struct writer w;       /* the file */
	struct writer strings; /* section names */
	VEC(Elf64_Shdr) headers;
	VEC(Elf64_Phdr) segments;
};

static size_t add(struct maker *m, const struct image_section *s, uint32_t link,
		  uint64_t entry_size)
{
	Elf64_Shdr h = {
		.sh_name = (uint32_t)put(&m->strings, s->name, strlen(s->name) + 1),
		.sh_type = s->type,
		.sh_flags = s->flags,
		.sh_addr = s->ea,
		.sh_size = s->type == SHT_NOBITS ? s->size : s->contents.len,
		.sh_link = link,
		.sh_addralign = 4,
		.sh_entsize = entry_size,
	};

	align(&m->w, 8);
	h.sh_offset = m->w.out.count;
	if (s->type != SHT_NOBITS)
		put(&m->w, s->contents.at, s->contents.len);
	if (s->flags & SHF_ALLOC)
		*vec_push(m->w.arena, &m->segments) = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | (s->flags & SHF_EXECINSTR ? PF_X : 0),
			.p_offset = h.sh_offset,
			.p_vaddr = h.sh_addr,
			.p_filesz = s->type == SHT_NOBITS ? 0 : h.sh_size,
			.p_memsz = h.sh_size,
			.p_align = 1,
		};
	*vec_push(m->w.arena, &m->headers) = h;
	return m->headers.count - 1;
}

static void add_symbols(struct maker *m, const char *name, uint32_t type,
			const struct image_symbol *symbols, size_t count)
{
	struct writer entries = {.arena = m->w.arena}, strings = {.arena = m->w.arena};
	Elf64_Sym zero = {0};
	struct image_section table = {.name = name, .type = type};
	struct image_section names = {.name = type == SHT_SYMTAB ? ".strtab" : ".dynstr",
				      .type = SHT_STRTAB};

	if (!count)
		return;
	put(&strings, "", 1);
	put(&entries, &zero, sizeof zero);
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym s = {
			.st_name = (uint32_t)put(&strings, symbols[i].name,
						 strlen(symbols[i].name) + 1),
			.st_info = (uint8_t)ELF64_ST_INFO(symbols[i].bind, symbols[i].type),
			.st_shndx = symbols[i].section,
			.st_value = symbols[i].ea,
			.st_size = symbols[i].size,
		};

		put(&entries, &s, sizeof s);
	}
	table.contents = (struct bytes){entries.out.at, entries.out.count};
	names.contents = (struct bytes){strings.out.at, strings.out.count};
	add(m, &table, (uint32_t)add(m, &names, 0, 0), sizeof(Elf64_Sym));
}

static void add_build_id(struct maker *m, struct bytes id)
{
	struct writer note = {.arena = m->w.arena};
	Elf64_Nhdr head = {4, (uint32_t)id.len, NT_GNU_BUILD_ID};
	struct image_section s = {.name = ".note.gnu.build-id", .type = SHT_NOTE};

	if (!id.len)
		return;
	put(&note, &head, sizeof head);
	put(&note, "GNU", 4);
	put(&note, id.at, id.len);
	align(&note, 4);
	s.contents = (struct bytes){note.out.at, note.out.count};
	add(m, &s, 0, 0);
}

static void add_eh_frame_hdr(struct maker *m, struct bytes contents)
{
	const struct image_section s = {.name = ".eh_frame_hdr",
					.type = SHT_PROGBITS,
					.flags = SHF_ALLOC,
					.ea = IMAGE_EH_FRAME_HDR,
					.contents = contents};
	Elf64_Phdr p;

	if (!contents.len)
		return;
	add(m, &s, 0, 0);
	p = m->segments.at[m->segments.count - 1];
	p.p_type = PT_GNU_EH_FRAME;
	*vec_push(m->w.arena, &m->segments) = p;
}

static void finish(struct maker *m, Elf64_Ehdr *header)
{
	const struct image_section names = {
		.name = ".shstrtab",
		.type = SHT_STRTAB,
		.contents = {m->strings.out.at, m->strings.out.count},
	};

	/* Its own name is put behind its contents, so it has none: nobody looks for it. */
	header->e_shstrndx = (uint16_t)add(m, &names, 0, 0);
	align(&m->w, 8);
	header->e_shoff = put(&m->w, m->headers.at, m->headers.count * sizeof(Elf64_Shdr));
	header->e_shnum = (uint16_t)m->headers.count;
	header->e_phoff = put(&m->w, m->segments.at, m->segments.count * sizeof(Elf64_Phdr));
	header->e_phnum = (uint16_t)m->segments.count;
	memcpy(m->w.out.at, header, sizeof *header);
}

struct bytes image_make(struct arena *arena, const struct image *image)
{
	struct maker m = {.w.arena = arena, .strings.arena = arena};
	Elf64_Ehdr header = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = image->machine ? image->machine : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	put(&m.w, &header, sizeof header);
	put(&m.strings, "", 1);
	*vec_push(arena, &m.headers) = (Elf64_Shdr){0};
	for (size_t i = 0; i < image->section_count; i++)
		add(&m, &image->sections[i], 0, 0);
	add_symbols(&m, ".symtab", SHT_SYMTAB, image->symbols, image->symbol_count);
	add_symbols(&m, ".dynsym", SHT_DYNSYM, image->dynamic, image->dynamic_count);
	add_build_id(&m, image->build_id);
	add_eh_frame_hdr(&m, image->eh_frame_hdr);
	finish(&m, &header);
	return (struct bytes){m.w.out.at, m.w.out.count};
}

struct image_section image_plain(const char *name, struct bytes contents)
{
	return (struct image_section){.name = name, .type = SHT_PROGBITS, .contents = contents};
}

static uint32_t adler32(struct bytes data)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < data.len; i++) {
		a = (a + data.at[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

struct image_section image_packed(struct arena *arena, const char *name, struct bytes contents)
{
	enum { BLOCK = 1000, BLOCK_HEAD = 5 };
	Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB,
			     .ch_size = contents.len,
			     .ch_addralign = 1};
	size_t blocks = contents.len / BLOCK + 1;
	uint32_t checksum = __builtin_bswap32(adler32(contents));
	uint8_t *begin =
		arena_alloc(arena, sizeof header + 2 + blocks * BLOCK_HEAD + contents.len + 4,
			    1);
	uint8_t *to = begin;

	memcpy(to, &header, sizeof header);
	memcpy(to + sizeof header, "\x78\x01", 2);
	to += sizeof header + 2;
	for (size_t i = 0; i < blocks; i++) {
		uint16_t len = i + 1 < blocks ? BLOCK : (uint16_t)(contents.len % BLOCK);
		uint16_t complement = (uint16_t)~len;

		*to = i + 1 == blocks;
		memcpy(to + 1, &len, 2);
		memcpy(to + 3, &complement, 2);
		if (len)
			memcpy(to + BLOCK_HEAD, contents.at + i * BLOCK, len);
		to += BLOCK_HEAD + len;
	}
	memcpy(to, &checksum, 4);
	return (struct image_section){
		.name = name,
		.type = SHT_PROGBITS,
		.flags = SHF_COMPRESSED,
		.contents = {begin, (size_t)(to + 4 - begin)},
	};
}

struct image_section image_code(const char *name, uint64_t ea, uint64_t size)
{
	return (struct image_section){.name = name,
				      .type = SHT_NOBITS,
				      .flags = SHF_ALLOC | SHF_EXECINSTR,
				      .ea = ea,
				      .size = size};
}
