#include "dwarf/sections.h"

#include <stdio.h>

#include "base/budget.h"
#include "base/mapping.h"
#include "dwarf/context.h"
#include "dwarf/lazy.h"

/* Pages of .debug_info are given back each time so much of it was read. */
#define RESIDENT_STEP (UINT64_C(8) << 20)

static const char *const section_names[SECTION_COUNT] = {
#define X(id, name) [SECTION_##id] = name,
	DWARF_SECTIONS(X)
#undef X
};

void sections_init(struct sections *sections, struct dwarf *dwarf, struct elf *elf, bool split)
{
	*sections = (struct sections){.dwarf = dwarf, .elf = elf, .split = split};
}

/* Sections whose readers call section_need. */
static bool may_be_lazy(enum section_id id)
{
	return id == SECTION_ABBREV || id == SECTION_STR || id == SECTION_LINE ||
	       id == SECTION_RANGES || id == SECTION_RNGLISTS;
}

/* Reads all of it and learns its points. */
static bool section_learn(struct sections *sections, enum section_id id,
			  const struct packed *packed, uint8_t *room)
{
	struct points_section *learned = &sections->points->sections[id];
	struct stream *stream = packed_stream(packed, NULL);
	bool good = stream != NULL;

	for (uint64_t at = 0, len; at < packed->size && good; at += len) {
		len = packed->size - at < POINTS_READ_MAX ? packed->size - at : POINTS_READ_MAX;
		good = stream_read(stream, room + at, len, NULL);
		if (good)
			points_follow(sections->points, learned, stream, at + len,
				      sections->dwarf->arena);
	}
	learned->end = good ? packed->size : 0;
	stream_close(stream);
	return good;
}

/* False where it is loaded as a whole; that says what is wrong with it, too. */
static bool section_by_points(struct sections *sections, enum section_id id, const char *name)
{
	struct elf *elf = sections->elf;
	struct packed packed;
	uint8_t *room;

	if (!sections->points || !may_be_lazy(id) ||
	    (sections->points->given && !sections->few_units) ||
	    !elf_section_packed(elf, elf_section(elf, name), &packed) ||
	    packed.format != STREAM_ZLIB || packed.size < POINTS_SECTION_MIN)
		return false;
	room = packed_room(elf->arena, &packed);
	if (!room)
		return false;
	points_begin(sections->points, id, &packed);
	sections->at[id] = (struct bytes){room, packed.size};
	sections->lazy[id] =
		lazy_open(sections->dwarf->arena, sections->points, id, &packed, room);
	if (sections->lazy[id])
		return true;
	if (!budget_take(packed.size))
		return false;
	if (section_learn(sections, id, &packed, room))
		return true;
	packed_room_drop(elf->arena, &packed, room);
	return false;
}

void section_need_lazy(struct sections *sections, enum section_id id, uint64_t off,
		       uint64_t len)
{
	struct err e;

	if (!lazy_need(sections->lazy[id], off, len, &e))
		dwarf_note(sections->dwarf, "%s: %s: %s", sections->elf->name,
			   section_names[id], e.text);
}

struct bytes section_bytes(struct sections *sections, enum section_id id)
{
	/* The index of a package has no ".dwo" in its name. */
	const char *suffix = sections->split && id != SECTION_CU_INDEX ? ".dwo" : "";
	struct err e;
	char name[48];

	if (sections->loaded[id])
		return sections->at[id];
	sections->loaded[id] = true;
	snprintf(name, sizeof name, "%s%s", section_names[id], suffix);
	if (section_by_points(sections, id, name))
		return sections->at[id];
	if (!elf_section_bytes(sections->elf, name, &sections->at[id], &e)) {
		dwarf_note(sections->dwarf, "%s: %s: %s", sections->elf->name, name, e.text);
		sections->at[id] = (struct bytes){NULL, 0};
	}
	return sections->at[id];
}

void sections_touched(struct sections *sections, uint64_t bytes)
{
	sections->info_touched += bytes;
	if (sections->info_touched < RESIDENT_STEP || !sections->elf->mapped)
		return;
	sections->info_touched = 0;
	mapping_release(sections->at[SECTION_INFO]);
}

uint64_t sections_size(const struct sections *sections)
{
	uint64_t size = sections->elf->weight;

	for (size_t i = 0; i < SECTION_COUNT; i++)
		size += sections->at[i].len;
	return size;
}

struct alternate_link {
	const char *name;
	struct bytes build_id;
};

/* .gnu_debugaltlink: the name, NUL, the build-id to the end (dwz). */
static bool altlink_read(struct bytes contents, struct alternate_link *out)
{
	struct reader r = reader_over(contents);

	out->name = read_string(&r);
	out->build_id = read_block(&r, reader_left(&r));
	return !reader_failed(&r);
}

/* .debug_sup (DWARF 5, 7.3.6): version, is_supplementary, name, checksum. */
static bool debug_sup_read(struct bytes contents, struct alternate_link *out)
{
	struct reader r = reader_over(contents);
	uint16_t version = read_u16(&r);
	bool is_supplementary = read_u8(&r) != 0;

	out->name = read_string(&r);
	out->build_id = read_block(&r, read_uleb(&r));
	return !reader_failed(&r) && version == 5 && !is_supplementary;
}

static bool alternate_link(struct sections *sections, struct alternate_link *out)
{
	struct bytes contents;

	if (elf_section_bytes(sections->elf, ".gnu_debugaltlink", &contents, NULL) &&
	    contents.len)
		return altlink_read(contents, out);
	if (elf_section_bytes(sections->elf, ".debug_sup", &contents, NULL) && contents.len)
		return debug_sup_read(contents, out);
	return false;
}

struct sections *sections_alternate(struct sections *sections)
{
	struct dwarf *dwarf = sections->dwarf;
	struct alternate_link link;
	struct elf *elf = NULL;

	if (sections->alternate_tried)
		return sections->alternate;
	sections->alternate_tried = true;
	if (!alternate_link(sections, &link))
		return NULL;
	if (dwarf->companions.open_alternate)
		elf = dwarf->companions.open_alternate(dwarf->companions.context, link.name,
						       link.build_id);
	if (!elf) {
		dwarf_note(dwarf, "%s: supplementary file %s not found", sections->elf->name,
			   link.name);
		return NULL;
	}
	sections->alternate = arena_new(dwarf->arena, struct sections);
	sections_init(sections->alternate, dwarf, elf, false);
	return sections->alternate;
}
