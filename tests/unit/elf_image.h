/*
 * An ELF64 file made in memory, for tests: sections as given, a .symtab or .dynsym from a list of
 * symbols, one PT_LOAD for every section that is SHF_ALLOC, and what else is asked for.
 */
#ifndef STACKER_TEST_ELF_IMAGE_H
#define STACKER_TEST_ELF_IMAGE_H

#include "base/arena.h"
#include "base/bytes.h"

struct image_section {
	const char *name;
	uint32_t type; /* SHT_* */
	uint64_t flags, ea;
	struct bytes contents;
	uint64_t size; /* for SHT_NOBITS */
};

struct image_symbol {
	const char *name;
	uint64_t ea, size;
	uint8_t type, bind; /* STT_*, STB_* */
	uint16_t section;   /* 1 is the first one given, or SHN_* */
};

struct image {
	uint16_t machine; /* 0: EM_X86_64 */
	const struct image_section *sections;
	size_t section_count;
	const struct image_symbol *symbols; /* .symtab */
	size_t symbol_count;
	const struct image_symbol *dynamic; /* .dynsym */
	size_t dynamic_count;
	struct bytes build_id;     /* empty: none */
	struct bytes eh_frame_hdr; /* contents; its ea is 0x100000 */
};

#define IMAGE_EH_FRAME_HDR 0x100000

struct bytes image_make(struct arena *arena, const struct image *image);

/* A section with these contents that is not loaded. */
struct image_section image_plain(const char *name, struct bytes contents);
/* The same, stored as SHF_COMPRESSED says: a zlib stream of blocks that are not compressed. */
struct image_section image_packed(struct arena *arena, const char *name, struct bytes contents);
/* A section of code without contents. */
struct image_section image_code(const char *name, uint64_t ea, uint64_t size);

#endif
