#include "elf/elf.h"

#include <string.h>

#include "base/budget.h"
#include "base/mapping.h"
#include "elf/compress.h"

/* e_phnum and e_shnum are 16 bits; their escapes (PN_XNUM, e_shnum 0) go to section 0. Real
 * files stay far below: Firefox has 40 sections, -ffunction-sections objects some hundred
 * thousand. */
#define SECTIONS_MAX ((uint64_t)1 << 20)

/* The kernel allows 64 KiB of program headers; real files have up to some twenty. Segments are searched
 * one by one for every address, and are kept of every file that is mapped. */
#define SEGMENTS_MAX ((uint64_t)256)

/* Notes are looked through for a build-id up to here. */
#define NOTES_MAX (UINT64_C(4) << 20)

static struct elf_segment segment_read(struct reader *r)
{
	struct elf_segment s = {0};

	s.type = read_u32(r);
	s.flags = read_u32(r);
	s.off = read_u64(r);
	s.ea = read_u64(r);
	read_u64(r); /* p_paddr */
	s.file_size = read_u64(r);
	s.mem_size = read_u64(r);
	s.align = read_u64(r);
	return s;
}

/* sh_name is left in `name_off`: the string table is known only after all headers are read. */
static struct elf_section section_read(struct reader *r, uint32_t *name_off)
{
	struct elf_section s = {.name = ""};

	*name_off = read_u32(r);
	s.type = read_u32(r);
	s.flags = read_u64(r);
	s.ea = read_u64(r);
	s.off = read_u64(r);
	s.size = read_u64(r);
	s.link = read_u32(r);
	s.info = read_u32(r);
	s.align = read_u64(r);
	s.entry_size = read_u64(r);
	return s;
}

struct header {
	uint64_t program_off, section_off;
	uint16_t program_size, section_size;
	uint64_t program_count, section_count;
	uint32_t names_index;
};

static bool identity_check(struct bytes data, const char *name, struct err *e)
{
	if (data.len < EI_NIDENT || memcmp(data.at, ELFMAG, SELFMAG) != 0)
		return err_set(e, ERR_FORMAT, "%s: not an ELF file", name);
	if (data.at[EI_CLASS] != ELFCLASS64)
		return err_set(e, ERR_UNSUPPORTED, "%s: not a 64-bit ELF file", name);
	if (data.at[EI_DATA] != ELFDATA2LSB)
		return err_set(e, ERR_UNSUPPORTED, "%s: not a little-endian ELF file", name);
	return true;
}

static bool header_read(struct elf *elf, struct header *h, struct err *e)
{
	struct reader r = reader_at(elf->data, EI_NIDENT);

	elf->type = read_u16(&r);
	elf->machine = read_u16(&r);
	read_u32(&r); /* e_version */
	elf->entry = read_u64(&r);
	h->program_off = read_u64(&r);
	h->section_off = read_u64(&r);
	read_u32(&r); /* e_flags */
	read_u16(&r); /* e_ehsize */
	h->program_size = read_u16(&r);
	h->program_count = read_u16(&r);
	h->section_size = read_u16(&r);
	h->section_count = read_u16(&r);
	h->names_index = read_u16(&r);
	return reader_ok(&r, "ELF header", e);
}

/* Counts that do not fit the header stand in section 0 (gABI, "Extended numbering"). */
static void header_extend(struct elf *elf, struct header *h)
{
	struct reader r = reader_at(elf->data, h->section_off);
	uint32_t name_off;
	struct elf_section zero = section_read(&r, &name_off);

	if (reader_failed(&r) || !h->section_off)
		return;
	if (h->section_count == 0)
		h->section_count = zero.size;
	if (h->names_index == SHN_XINDEX)
		h->names_index = zero.link;
	if (h->program_count == PN_XNUM)
		h->program_count = zero.info;
}

static bool segments_read(struct elf *elf, const struct header *h, struct err *e)
{
	struct reader r = reader_at(elf->data, h->program_off);

	if (h->program_count == 0)
		return true;
	if (h->program_size < sizeof(Elf64_Phdr))
		return err_set(e, ERR_FORMAT, "program header size %u", h->program_size);
	if (h->program_count > reader_left(&r) / h->program_size)
		return err_set(e, ERR_FORMAT, "program headers lie outside the file");
	if (h->program_count > SEGMENTS_MAX)
		return err_set(e, ERR_LIMIT, "%llu program headers",
			       (unsigned long long)h->program_count);
	elf->segments = arena_array(elf->arena, struct elf_segment, h->program_count);
	for (uint64_t i = 0; i < h->program_count; i++) {
		r = reader_at(elf->data, h->program_off + i * h->program_size);
		elf->segments[i] = segment_read(&r);
	}
	elf->segment_count = h->program_count;
	return true;
}

/* Section headers may be stripped, cut off or overwritten (UPX): then there are none. */
static void headers_read(struct elf *elf, const struct header *h)
{
	struct reader r = reader_at(elf->data, h->section_off);
	uint32_t *name_offs;
	struct bytes names = {NULL, 0};

	if (h->section_off == 0 || h->section_count == 0 || h->section_count > SECTIONS_MAX ||
	    h->section_size < sizeof(Elf64_Shdr) ||
	    h->section_count > reader_left(&r) / h->section_size ||
	    h->section_count > elf->weight / h->section_size ||
	    !budget_take(h->section_count * (sizeof *elf->sections + sizeof *name_offs)))
		return;
	elf->sections = arena_array(elf->arena, struct elf_section, h->section_count);
	name_offs = arena_array(elf->arena, uint32_t, h->section_count);
	for (uint64_t i = 0; i < h->section_count; i++) {
		r = reader_at(elf->data, h->section_off + i * h->section_size);
		elf->sections[i] = section_read(&r, &name_offs[i]);
	}
	elf->section_count = h->section_count;
	if (h->names_index < elf->section_count)
		names = bytes_strings(bytes_part(elf->data, elf->sections[h->names_index].off,
						 elf->sections[h->names_index].size));
	for (uint64_t i = 0; i < h->section_count; i++)
		elf->sections[i].name = strings_at(names, name_offs[i]);
}

bool elf_note_find(struct bytes notes, uint64_t align, const char *owner, uint32_t type,
		   struct bytes *desc)
{
	struct reader r = reader_over(notes);
	uint64_t pad = align == 8 ? 7 : 3;
	size_t owner_size = strlen(owner) + 1;

	while (reader_left(&r) >= 12) {
		uint64_t name_size = read_u32(&r), desc_size = read_u32(&r);
		uint32_t note_type = read_u32(&r);
		struct bytes name = read_block(&r, name_size);

		reader_skip(&r, (0 - (uint64_t)reader_offset(&r)) & pad);
		*desc = read_block(&r, desc_size);
		if (reader_failed(&r))
			return false;
		if (note_type == type && name.len == owner_size &&
		    memcmp(name.at, owner, owner_size) == 0)
			return true;
		/* The last entry's padding may be cut off. */
		if (reader_more(&r))
			reader_skip(&r, (0 - (uint64_t)reader_offset(&r)) & pad);
	}
	return false;
}

/* `left` bytes may still be looked at: headers can name the same ones any number of times. */
static bool build_id_find(struct bytes notes, uint64_t align, uint64_t *left, struct bytes *id)
{
	if (notes.len > *left || !budget_work(notes.len))
		return false;
	*left -= notes.len;
	return elf_note_find(notes, align, "GNU", NT_GNU_BUILD_ID, id);
}

static struct bytes build_id_of_sections(const struct elf *elf)
{
	uint64_t left = NOTES_MAX;
	struct bytes id = {NULL, 0};

	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->type == SHT_NOTE &&
		    build_id_find(bytes_part(elf->data, s->off, s->size), s->align, &left, &id))
			return id;
	}
	return (struct bytes){NULL, 0};
}

static struct bytes build_id_of_segments(const struct elf *elf)
{
	uint64_t left = NOTES_MAX;
	struct bytes id = {NULL, 0};

	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_NOTE &&
		    build_id_find(bytes_part(elf->data, s->off, s->file_size), s->align, &left,
				  &id))
			return id;
	}
	return (struct bytes){NULL, 0};
}

bool elf_open_image(struct elf *elf, struct arena *arena, struct bytes data, const char *name,
		    struct err *e)
{
	struct header h = {0};

	*elf = (struct elf){.name = name,
			    .data = data,
			    .weight = mapping_weight(data),
			    .arena = arena};
	if (!identity_check(data, name, e))
		return false;
	if (!header_read(elf, &h, e))
		return err_within(e, "%s", name);
	header_extend(elf, &h);
	if (!segments_read(elf, &h, e))
		return err_within(e, "%s", name);
	elf->build_id = build_id_of_segments(elf);
	return true;
}

void elf_sections_read(struct elf *elf)
{
	struct header h = {0};

	if (elf->sections_known)
		return;
	elf->sections_known = true;
	if (!header_read(elf, &h, NULL))
		return;
	header_extend(elf, &h);
	headers_read(elf, &h);
	if (!elf->build_id.len)
		elf->build_id = build_id_of_sections(elf);
}

/* Debug files keep their note as a section; their PT_NOTE may point at other contents. */
bool elf_open(struct elf *elf, struct arena *arena, struct bytes data, const char *name,
	      struct err *e)
{
	struct bytes of_segments;

	if (!elf_open_image(elf, arena, data, name, e))
		return false;
	of_segments = elf->build_id;
	elf->build_id = (struct bytes){NULL, 0};
	elf_sections_read(elf);
	if (!elf->build_id.len)
		elf->build_id = of_segments;
	return true;
}

struct elf *elf_view(const struct elf *elf, struct arena *arena)
{
	struct elf *view = arena_new(arena, struct elf);

	*view = *elf;
	view->arena = arena;
	view->sections = arena_array(arena, struct elf_section, elf->section_count);
	for (size_t i = 0; i < elf->section_count; i++) {
		view->sections[i] = elf->sections[i];
		view->sections[i].plain = (struct bytes){NULL, 0};
		view->sections[i].loaded = false;
	}
	return view;
}

static bool name_is_zdebug_of(const char *have, const char *want)
{
	return strncmp(want, ".debug_", 7) == 0 && strncmp(have, ".zdebug_", 8) == 0 &&
	       strcmp(have + 8, want + 7) == 0;
}

struct elf_section *elf_section(const struct elf *elf, const char *name)
{
	for (size_t i = 1; i < elf->section_count; i++) {
		struct elf_section *s = &elf->sections[i];

		if (strcmp(s->name, name) == 0 || name_is_zdebug_of(s->name, name))
			return s;
	}
	return NULL;
}

static bool is_zdebug(const struct elf_section *section)
{
	return strncmp(section->name, ".zdebug_", 8) == 0;
}

static bool is_packed(const struct elf_section *section)
{
	return section->flags & SHF_COMPRESSED || is_zdebug(section);
}

static bool raw_contents(const struct elf *elf, const struct elf_section *section,
			 struct bytes *raw, struct err *e)
{
	*raw = bytes_part(elf->data, section->off, section->size);
	if (raw->len != section->size)
		return err_set(e, ERR_FORMAT, "lies outside the file");
	return raw->len <= elf->weight ||
	       err_set(e, ERR_LIMIT, "is sparse: %zu bytes are more than the file has on disk",
		       raw->len);
}

static bool packed_read(const struct elf *elf, const struct elf_section *section,
			struct packed *packed, struct err *e)
{
	struct bytes raw;

	if (!raw_contents(elf, section, &raw, e) ||
	    !(section->flags & SHF_COMPRESSED ? packed_section(raw, packed, e)
					      : packed_zdebug(raw, packed, e)))
		return false;
	packed->mapped = elf->mapped;
	return true;
}

static bool contents_load(struct elf *elf, struct elf_section *section, struct err *e)
{
	struct packed packed;

	if (!is_packed(section))
		return raw_contents(elf, section, &section->plain, e);
	return packed_read(elf, section, &packed, e) &&
	       packed_load(elf->arena, &packed, &section->plain, e);
}

bool elf_section_packed(const struct elf *elf, const struct elf_section *section,
			struct packed *out)
{
	return section && section->type != SHT_NOBITS && !section->loaded &&
	       is_packed(section) && packed_read(elf, section, out, NULL);
}

bool elf_section_load(struct elf *elf, struct elf_section *section, struct bytes *out,
		      struct err *e)
{
	*out = (struct bytes){NULL, 0};
	if (!section || section->type == SHT_NOBITS)
		return true;
	if (!section->loaded) {
		section->loaded =
			true; /* a damaged one is not tried again: it is empty from now on */
		if (!contents_load(elf, section, e)) {
			section->plain = (struct bytes){NULL, 0};
			return err_within(e, "%s: section %s", elf->name, section->name);
		}
	}
	*out = section->plain;
	return true;
}

bool elf_section_bytes(struct elf *elf, const char *name, struct bytes *out, struct err *e)
{
	return elf_section_load(elf, elf_section(elf, name), out, e);
}

const struct elf_segment *elf_segment_at(const struct elf *elf, uint64_t ea)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && ea >= s->ea && ea - s->ea < s->mem_size)
			return s;
	}
	return NULL;
}

const struct elf_segment *elf_segment_of(const struct elf *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].type == type)
			return &elf->segments[i];
	return NULL;
}

struct bytes elf_bytes_at(const struct elf *elf, uint64_t ea)
{
	const struct elf_segment *s = elf_segment_at(elf, ea);
	struct bytes whole;

	if (!s || ea - s->ea >= s->file_size)
		return (struct bytes){NULL, 0};
	/* A truncated file still gives what it has. */
	whole = bytes_from(elf->data, s->off);
	if (whole.len > s->file_size)
		whole.len = s->file_size;
	if (whole.len > elf->weight)
		whole.len = elf->weight;
	return bytes_from(whole, ea - s->ea);
}

const char *build_id_text(struct arena *arena, struct bytes build_id)
{
	static const char digits[] = "0123456789abcdef";
	char *text;

	if (build_id.len == 0)
		return NULL;
	text = arena_alloc(arena, build_id.len * 2 + 1, 1);
	for (size_t i = 0; i < build_id.len; i++) {
		text[2 * i] = digits[build_id.at[i] >> 4];
		text[2 * i + 1] = digits[build_id.at[i] & 15];
	}
	return text;
}
