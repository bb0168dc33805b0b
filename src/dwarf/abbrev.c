#include "dwarf/abbrev.h"

#include <stdlib.h>

#include "dwarf/context.h"

/* A cache is emptied when so much of .debug_abbrev is compiled in it: some 20 of libjvm's units,
 * or all of a program whose units share one table. Compiled, it takes about 4 times as much. */
#define CACHE_BYTES_MAX (UINT64_C(128) << 10)

/* Of one unit. Compiled it takes about 4 times as much, for each of the workers. */
#define TABLE_MAX (UINT64_C(4) << 20)

/* So that an index of a step fits in 32 bits: no table comes near. */
#define STEPS_MAX ((size_t)UINT32_MAX / 2)

static enum skip_kind skip_kind_of(enum layout layout)
{
	switch (layout) {
	case LAYOUT_ULEB:
	case LAYOUT_SLEB:
		return SKIP_LEB;
	case LAYOUT_STRING:
		return SKIP_STRING;
	case LAYOUT_BLOCK1:
		return SKIP_BLOCK1;
	case LAYOUT_BLOCK2:
		return SKIP_BLOCK2;
	case LAYOUT_BLOCK4:
		return SKIP_BLOCK4;
	case LAYOUT_BLOCKU:
		return SKIP_BLOCKU;
	case LAYOUT_INDIRECT:
		return SKIP_INDIRECT;
	default:
		return SKIP_UNKNOWN;
	}
}

/* SKIP_END when the value is no reference within the unit. */
static enum skip_kind sibling_kind(uint64_t form)
{
	switch (form) {
	case DW_FORM_ref1:
		return SKIP_SIBLING1;
	case DW_FORM_ref2:
		return SKIP_SIBLING2;
	case DW_FORM_ref4:
		return SKIP_SIBLING4;
	case DW_FORM_ref8:
		return SKIP_SIBLING8;
	case DW_FORM_ref_udata:
		return SKIP_SIBLINGU;
	default:
		return SKIP_END;
	}
}

struct compiler {
	struct arena *arena;
	struct abbrevs *abbrevs;
	unsigned pending; /* bytes of fixed size that no step has yet */
	bool has_code;    /* low_pc or ranges */
};

static void step_add(struct compiler *c, enum skip_kind kind)
{
	struct skip_step *step = vec_push(c->arena, &c->abbrevs->steps);

	*step = (struct skip_step){(uint16_t)c->pending, (uint8_t)kind};
	c->pending = 0;
}

static void attribute_compile(struct compiler *c, uint64_t name, uint64_t form)
{
	struct form_layout layout = form_layout(form);
	int size = form_fixed_size(layout, c->abbrevs->encoding);

	c->has_code |= name == DW_AT_low_pc || name == DW_AT_ranges;
	if (name == DW_AT_sibling && sibling_kind(form) != SKIP_END) {
		step_add(c, sibling_kind(form));
	} else if (size < 0) {
		step_add(c, skip_kind_of(layout.layout));
	} else {
		if (c->pending + (unsigned)size > UINT16_MAX)
			step_add(c, SKIP_MORE);
		c->pending += (unsigned)size;
	}
}

static enum abbrev_role role_of(uint64_t tag, bool has_code)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		return has_code ? ROLE_FUNCTION : ROLE_BARREN;
	case DW_TAG_lexical_block:
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_with_stmt:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return ROLE_SCOPE;
	default:
		return ROLE_PLAIN;
	}
}

/* One abbreviation; false at the end of the table. */
static bool abbrev_compile(struct compiler *c, struct reader *r)
{
	struct abbrevs *abbrevs = c->abbrevs;
	struct abbrev abbrev = {.code = read_uleb(r)};
	size_t first_step = abbrevs->steps.count;
	uint64_t tag, name, form;

	if (abbrev.code == 0)
		return false;
	tag = read_uleb(r);
	abbrev.children = read_u8(r) != 0;
	abbrev.attributes = r->at;
	c->has_code = false;
	do {
		name = read_uleb(r);
		form = read_uleb(r);
		if (form == DW_FORM_implicit_const)
			read_sleb(r);
		if (name || form)
			attribute_compile(c, name, form);
	} while (name || form);
	if (reader_failed(r))
		return false;
	step_add(c, SKIP_END);
	abbrev.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0;
	abbrev.role = (uint8_t)role_of(tag, c->has_code);
	abbrev.first_step = (uint32_t)first_step;
	*vec_push(c->arena, &abbrevs->list) = abbrev;
	return true;
}

static int abbrev_compare(const void *a, const void *b)
{
	const struct abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

/* Producers number from 1 upwards, so that a code is an index; nothing makes them. */
static void abbrevs_finish(struct abbrevs *abbrevs)
{
	size_t i;

	for (i = 0; i < abbrevs->list.count && abbrevs->list.at[i].code == i + 1;)
		i++;
	abbrevs->dense = i;
	if (i < abbrevs->list.count)
		qsort(abbrevs->list.at + i, abbrevs->list.count - i, sizeof *abbrevs->list.at,
		      abbrev_compare);
}

static struct abbrevs *abbrevs_compile(struct abbrev_cache *cache, struct bytes section,
				       uint64_t off, struct encoding encoding, uint64_t *size)
{
	struct abbrevs *abbrevs = arena_new(&cache->arena, struct abbrevs);
	struct compiler c = {.arena = &cache->arena, .abbrevs = abbrevs};
	struct reader r = reader_at(section, off);

	if (reader_left(&r) > TABLE_MAX)
		r.end = r.at + TABLE_MAX;
	abbrevs->off = off;
	abbrevs->encoding = encoding;
	abbrevs->end = r.end;
	while (reader_more(&r) && abbrevs->steps.count < STEPS_MAX && abbrev_compile(&c, &r))
		c.pending = 0;
	*size = reader_offset(&r) - off;
	abbrevs_finish(abbrevs);
	return abbrevs;
}

static bool encoding_equal(struct encoding a, struct encoding b)
{
	/* Versions differ in the size of DW_FORM_ref_addr only. */
	return a.address_size == b.address_size && a.offset_size == b.offset_size &&
	       (a.version == 2) == (b.version == 2);
}

const struct abbrevs *abbrevs_at(struct abbrev_cache *cache, struct dwarf *dwarf,
				 struct bytes section, uint64_t off, struct encoding encoding)
{
	struct abbrevs **bucket =
		&cache->buckets[(off ^ off >> 8 ^ off >> 16) % ABBREV_BUCKETS];
	struct abbrevs *abbrevs;
	uint64_t size;

	for (abbrevs = *bucket; abbrevs; abbrevs = abbrevs->next)
		if (abbrevs->off == off && encoding_equal(abbrevs->encoding, encoding))
			return abbrevs;
	if (!dwarf_work(dwarf, 1))
		return NULL;
	abbrevs = abbrevs_compile(cache, section, off <= section.len ? off : section.len,
				  encoding, &size);
	abbrevs->off = off;
	abbrevs->next = *bucket;
	*bucket = abbrevs;
	cache->bytes += size + sizeof *abbrevs;
	return dwarf_work(dwarf, size) ? abbrevs : NULL;
}

static void cache_forget(struct abbrev_cache *cache)
{
	memset(cache->buckets, 0, sizeof cache->buckets);
	cache->bytes = 0;
	cache->generation++;
}

void abbrev_cache_trim(struct abbrev_cache *cache)
{
	if (cache->bytes < CACHE_BYTES_MAX)
		return;
	arena_reset(&cache->arena);
	cache_forget(cache);
}

void abbrev_cache_free(struct abbrev_cache *cache)
{
	arena_free(&cache->arena);
	cache_forget(cache);
}

const struct abbrev *abbrev_sparse(const struct abbrevs *abbrevs, uint64_t code)
{
	size_t low = abbrevs->dense, high = abbrevs->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (abbrevs->list.at[middle].code < code)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < abbrevs->list.count && abbrevs->list.at[low].code == code)
		return &abbrevs->list.at[low];
	return NULL;
}
