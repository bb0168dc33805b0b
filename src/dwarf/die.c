#include "dwarf/die.h"

#include "dwarf/context.h"
#include "dwarf/unit.h"

bool die_cursor_at(struct die_cursor *c, struct unit *unit, uint64_t off)
{
	struct bytes info = section_bytes(unit->sections, SECTION_INFO);

	if (off < unit->die_off || off >= unit->end)
		return false;
	c->dwarf = unit->sections->dwarf;
	c->abbrevs = unit_abbrevs(unit);
	c->r = reader_at(bytes_part(info, 0, unit->end), off);
	c->off = off;
	return c->abbrevs != NULL;
}

bool die_next(struct die_cursor *c, const struct abbrev **abbrev)
{
	uint64_t code;

	c->off = (uint64_t)(c->r.at - c->r.begin);
	if (!reader_more(&c->r))
		return false;
	code = read_uleb(&c->r);
	*abbrev = NULL;
	if (code == 0)
		return !reader_failed(&c->r);
	*abbrev = abbrev_of(c->abbrevs, code);
	if (!*abbrev)
		reader_fail(&c->r);
	return *abbrev != NULL;
}

static bool leb_skip(struct reader *r)
{
	while (reader_more(r))
		if (!(*r->at++ & 0x80))
			return true;
	reader_fail(r);
	return false;
}

static void indirect_skip(struct reader *r, struct encoding encoding)
{
	struct form_value ignored;

	form_read(r, encoding, DW_FORM_indirect, 0, &ignored);
}

/*
 * This is where the time goes: most of a large file is entries nobody asked for. The reader is
 * copied to a local one whose address is given to inlined functions only (but for the rare
 * steps), so that it can live in registers.
 */
static inline __attribute__((always_inline)) uint64_t steps_run(struct die_cursor *c,
								const struct abbrev *abbrev,
								uint64_t unit_off)
{
	const struct skip_step *step = c->abbrevs->steps.at + abbrev->first_step;
	uint64_t sibling = 0;
	struct reader r = c->r;

	for (;; step++) {
		reader_skip(&r, step->advance);
		switch ((enum skip_kind)step->kind) {
		case SKIP_END:
			c->r = r;
			return sibling;
		case SKIP_MORE:
			break;
		case SKIP_LEB:
			leb_skip(&r);
			break;
		case SKIP_STRING:
			while (reader_has(&r, 1) && *r.at++)
				;
			break;
		case SKIP_BLOCK1:
			reader_skip(&r, read_u8(&r));
			break;
		case SKIP_BLOCK2:
			reader_skip(&r, read_u16(&r));
			break;
		case SKIP_BLOCK4:
			reader_skip(&r, read_u32(&r));
			break;
		case SKIP_BLOCKU:
			if (reader_more(&r) && *r.at < 0x80) {
				reader_skip(&r, *r.at++);
			} else {
				c->r = r;
				reader_skip(&c->r, read_uleb(&c->r));
				r = c->r;
			}
			break;
		case SKIP_INDIRECT:
			c->r = r;
			indirect_skip(&c->r, c->abbrevs->encoding);
			r = c->r;
			break;
		case SKIP_SIBLING1:
			sibling = unit_off + read_u8(&r);
			break;
		case SKIP_SIBLING2:
			sibling = unit_off + read_u16(&r);
			break;
		case SKIP_SIBLING4:
			sibling = unit_off + read_u32(&r);
			break;
		case SKIP_SIBLING8:
			sibling = unit_off + read_u64(&r);
			break;
		case SKIP_SIBLINGU:
			c->r = r;
			sibling = unit_off + read_uleb(&c->r);
			r = c->r;
			break;
		case SKIP_UNKNOWN:
			reader_fail(&r);
			break;
		}
	}
}

uint64_t die_skip(struct die_cursor *c, const struct abbrev *abbrev, uint64_t unit_off)
{
	return steps_run(c, abbrev, unit_off);
}

/* A sibling lies ahead, inside the unit; anything else is a lie and the children are walked. */
static bool leap(struct die_cursor *c, uint64_t sibling)
{
	uint64_t here = (uint64_t)(c->r.at - c->r.begin);
	uint64_t end = (uint64_t)(c->r.end - c->r.begin);

	if (sibling <= here || sibling > end)
		return false;
	c->r.at = c->r.begin + sibling;
	return true;
}

void die_skip_children(struct die_cursor *c, uint64_t sibling, uint64_t unit_off)
{
	const struct abbrev *abbrev;
	uint64_t depth = 1;

	if (leap(c, sibling))
		return;
	while (depth && die_next(c, &abbrev)) {
		if (!abbrev) {
			depth--;
			continue;
		}
		sibling = steps_run(c, abbrev, unit_off);
		if (abbrev->children && !leap(c, sibling))
			depth++;
	}
}

struct die_attributes die_attributes(struct die_cursor *c, const struct abbrev *abbrev,
				     struct encoding encoding)
{
	struct reader specs = {abbrev->attributes, abbrev->attributes, c->abbrevs->end, NULL};

	return (struct die_attributes){.cursor = c, .specs = specs, .encoding = encoding};
}

bool die_attribute_next(struct die_attributes *a)
{
	uint64_t form;
	int64_t implicit = 0;

	a->name = read_uleb(&a->specs);
	form = read_uleb(&a->specs);
	if (form == DW_FORM_implicit_const)
		implicit = read_sleb(&a->specs);
	if (a->name == 0 && form == 0) {
		/* Attributes without a value cost the entry no byte. */
		dwarf_work(a->cursor->dwarf, (uint64_t)(a->specs.at - a->specs.begin));
		return false;
	}
	form_read(&a->cursor->r, a->encoding, form, implicit, &a->value);
	return !reader_failed(&a->cursor->r) && !reader_failed(&a->specs);
}
