/*
 * elf/elf: one ELF64 little-endian file in memory: headers, segments, sections, notes.
 *
 * Format: System V ABI (gABI) chapters 4 and 5; GNU build-id notes; SHF_COMPRESSED sections
 * (gABI), and the older .zdebug_ form of binutils. `struct bytes data` may be a file or a
 * memory image such as the vDSO; nothing is copied but decompressed sections.
 *
 * Address spaces: `ea` is an address as written in the file, `off` an offset in the file.
 */
#ifndef STACKER_ELF_ELF_H
#define STACKER_ELF_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "elf/compress.h"

struct elf_segment {
	uint32_t type, flags; /* PT_*, PF_* */
	uint64_t off, ea, file_size, mem_size, align;
};

struct elf_section {
	const char *name; /* "" when the name is out of bounds */
	uint32_t type, link, info;
	uint64_t flags, ea, off, size, entry_size, align;
	struct bytes plain; /* contents, decompressed; valid once `loaded` */
	bool loaded;
};

struct elf {
	const char *name; /* for messages: the path */
	struct bytes data;
	uint64_t weight; /* no section is larger: a sparse file has not all that it states */
	uint16_t type, machine; /* ET_*, EM_* */
	uint64_t entry;
	struct elf_segment *segments; /* in file order, all types */
	size_t segment_count;
	struct elf_section
		*sections; /* [0] is the null section; none when stripped of headers */
	size_t section_count;
	bool sections_known;   /* they were read, if there are any */
	struct bytes build_id; /* contents of NT_GNU_BUILD_ID; empty when there is none */
	struct arena *arena;
	bool mapped; /* `data` is a file mapped by base/file: pages that are given back (MADV_DONTNEED)
		      * come again when they are read. Set by who mapped it, after elf_open. */
};

/* Reads the headers. `data` and `name` must outlive `elf`. Section headers that are damaged or
 * cut off leave section_count 0 (a stripped or truncated file is still good for its segments);
 * damaged program headers are an error. ERR_FORMAT "NAME: not an ELF file", ERR_UNSUPPORTED for
 * 32-bit and big-endian files. */
bool elf_open(struct elf *elf, struct arena *arena, struct bytes data, const char *name,
	      struct err *e);

/* The same without section headers, for files of which many may never be asked: `sections` and
 * `section_count` are valid after elf_sections_read, which does nothing the second time. The build-id
 * is that of the segments; where they have none, it comes with the sections. */
bool elf_open_image(struct elf *elf, struct arena *arena, struct bytes data, const char *name,
		    struct err *e);
void elf_sections_read(struct elf *elf);

/* The same file for somebody with a memory of his own: what is decompressed for him goes there.
 * `elf` and what it was opened with must outlive it. */
struct elf *elf_view(const struct elf *elf, struct arena *arena);

/* The first section of that name, or NULL. A .debug_x is also found as .zdebug_x. */
struct elf_section *elf_section(const struct elf *elf, const char *name);

/* The section's contents, decompressed once and kept in the elf's arena. An absent (NULL) or
 * SHT_NOBITS section gives empty bytes and true; false only for damaged ones, and only the
 * first time: after that they are empty. */
bool elf_section_load(struct elf *elf, struct elf_section *section, struct bytes *out,
		      struct err *e);
bool elf_section_bytes(struct elf *elf, const char *name, struct bytes *out, struct err *e);

/* For who does not want all of a section at once: false when it is not stored compressed, was
 * loaded already, or is damaged (elf_section_load says how). */
bool elf_section_packed(const struct elf *elf, const struct elf_section *section,
			struct packed *out);

/* The PT_LOAD that holds `ea` in its memory image, or NULL. */
const struct elf_segment *elf_segment_at(const struct elf *elf, uint64_t ea);
/* The first segment of a type (PT_GNU_EH_FRAME, PT_DYNAMIC), or NULL. */
const struct elf_segment *elf_segment_of(const struct elf *elf, uint32_t type);
/* File bytes from `ea` to the end of its PT_LOAD's file part; empty when there are none. */
struct bytes elf_bytes_at(const struct elf *elf, uint64_t ea);

/* The first note with this owner name ("GNU") and type in PT_NOTE contents `notes` whose
 * entries are aligned to `align` (4 or 8); false when there is none. */
bool elf_note_find(struct bytes notes, uint64_t align, const char *owner, uint32_t type,
		   struct bytes *desc);

/* Lower-case hex of a build-id in the arena; NULL when it is empty. */
const char *build_id_text(struct arena *arena, struct bytes build_id);

#endif
