#include "elf/symbols.h"

#include <string.h>

static struct elf_symbols symbols_of_section(struct elf *elf, uint32_t type)
{
	struct elf_symbols symbols = {0};
	struct bytes entries, strings;
	struct err e = {0};

	for (size_t i = 1; i < elf->section_count; i++) {
		struct elf_section *s = &elf->sections[i];

		if (s->type != type || s->link >= elf->section_count)
			continue;
		if (elf_section_load(elf, s, &entries, &e) &&
		    elf_section_load(elf, &elf->sections[s->link], &strings, &e)) {
			symbols.entries = reader_over(entries);
			symbols.strings = bytes_strings(strings);
			return symbols;
		}
		if (e.kind == ERR_LIMIT)
			symbols.left_out = arena_string(elf->arena, e.text);
	}
	return symbols;
}

/* DT_GNU_HASH has no count: the last symbol is the end of the chain that begins highest. Format:
 * nbuckets, symoffset, bloom_size, bloom_shift, bloom[bloom_size] (8 bytes each), buckets, chains;
 * the last hash of a chain has bit 0 set. */
static uint64_t count_by_gnu_hash(struct bytes table)
{
	struct reader r = reader_over(table);
	uint32_t bucket_count = read_u32(&r), first = read_u32(&r), bloom_size = read_u32(&r);
	uint32_t last = 0;

	read_u32(&r);
	reader_skip(&r, (uint64_t)bloom_size * 8);
	if (bucket_count > reader_left(&r) / 4)
		return 0;
	for (uint32_t i = 0; i < bucket_count; i++) {
		uint32_t index = read_u32(&r);

		last = index > last ? index : last;
	}
	if (last < first)
		return first;
	reader_skip(&r, (uint64_t)(last - first) * 4);
	while (reader_more(&r)) {
		last++;
		if (read_u32(&r) & 1)
			break;
	}
	return reader_failed(&r) ? 0 : last;
}

struct dynamic {
	uint64_t symbols, strings, strings_size, hash, gnu_hash;
};

static struct dynamic dynamic_read(const struct elf *elf)
{
	const struct elf_segment *segment = elf_segment_of(elf, PT_DYNAMIC);
	struct dynamic d = {0};
	struct reader r;

	if (!segment)
		return d;
	r = reader_over(bytes_part(elf->data, segment->off, segment->file_size));
	while (reader_left(&r) >= 16) {
		uint64_t tag = read_u64(&r), value = read_u64(&r);

		switch (tag) {
		case DT_NULL:
			return d;
		case DT_SYMTAB:
			d.symbols = value;
			break;
		case DT_STRTAB:
			d.strings = value;
			break;
		case DT_STRSZ:
			d.strings_size = value;
			break;
		case DT_HASH:
			d.hash = value;
			break;
		case DT_GNU_HASH:
			d.gnu_hash = value;
			break;
		default:
			break;
		}
	}
	return d;
}

static struct elf_symbols symbols_of_dynamic(const struct elf *elf)
{
	struct elf_symbols symbols = {0};
	struct dynamic d = dynamic_read(elf);
	struct bytes entries = elf_bytes_at(elf, d.symbols);
	uint64_t count = 0;

	if (!d.symbols || !d.strings)
		return symbols;
	if (d.hash) {
		struct reader r = reader_over(elf_bytes_at(elf, d.hash));

		read_u32(&r);
		count = read_u32(&r);
	} else if (d.gnu_hash) {
		count = count_by_gnu_hash(elf_bytes_at(elf, d.gnu_hash));
	}
	if (count > entries.len / sizeof(Elf64_Sym))
		count = entries.len / sizeof(Elf64_Sym);
	symbols.entries = reader_over(bytes_part(entries, 0, count * sizeof(Elf64_Sym)));
	symbols.strings = elf_bytes_at(elf, d.strings);
	if (symbols.strings.len > d.strings_size)
		symbols.strings.len = d.strings_size;
	symbols.strings = bytes_strings(symbols.strings);
	return symbols;
}

struct elf_symbols elf_symbols(struct elf *elf, enum elf_symbols_which which)
{
	struct elf_symbols symbols =
		symbols_of_section(elf, which == ELF_SYMTAB ? SHT_SYMTAB : SHT_DYNSYM);

	if (which == ELF_DYNSYM && !symbols.entries.begin)
		symbols = symbols_of_dynamic(elf);
	reader_skip(&symbols.entries, sizeof(Elf64_Sym)); /* the null symbol */
	return symbols;
}

const char *elf_symbols_name(struct bytes strings, uint32_t name_off)
{
	return strings_at(strings, name_off);
}

bool elf_symbols_next_unnamed(struct elf_symbols *symbols, struct elf_symbol *out)
{
	struct reader *r = &symbols->entries;
	uint8_t info;

	if (reader_left(r) < sizeof(Elf64_Sym))
		return false;
	out->name = NULL;
	out->name_off = read_u32(r);
	info = read_u8(r);
	out->type = ELF64_ST_TYPE(info);
	out->bind = ELF64_ST_BIND(info);
	out->visibility = ELF64_ST_VISIBILITY(read_u8(r));
	out->section = read_u16(r);
	out->ea = read_u64(r);
	out->size = read_u64(r);
	return true;
}

bool elf_symbols_next(struct elf_symbols *symbols, struct elf_symbol *out)
{
	if (!elf_symbols_next_unnamed(symbols, out))
		return false;
	out->name = elf_symbols_name(symbols->strings, out->name_off);
	return true;
}
