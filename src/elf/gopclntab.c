#include "elf/gopclntab.h"

#include "base/budget.h"

/* Steps through the lines of one function; real ones have some ten thousand. */
#define STEPS_MAX ((unsigned)1 << 20)

#define NO_FILE UINT32_MAX

/* Where the fields of a function's record are, and how wide the index of functions is. */
struct layout {
	uint32_t magic;
	uint8_t word;      /* bytes of the two fields of an index entry */
	bool relative;     /* index entries count from the start of the text */
	bool tables_apart; /* names, files ... in tables of their own (since 1.16) */
	/* Offsets in a record. unit: index of the first file. */
	uint8_t name, pcsp, pcfile, pcln, unit;
};

/* clang-format off */
static const struct layout layouts[] = {
	{0xfffffffb, 8, false, false,  8, 20, 24, 28,  0},
	{0xfffffffa, 8, false, true,   8, 20, 24, 28, 36},
	{0xfffffff0, 4, true,  true,   4, 16, 20, 24, 32},
	{0xfffffff1, 4, true,  true,   4, 16, 20, 24, 32},
};
/* clang-format on */

struct gopclntab {
	const struct layout *layout;
	uint8_t quantum; /* bytes of the smallest instruction */
	uint64_t text;   /* start of the text; 0 where addresses are absolute */
	uint64_t count;  /* functions; the index has one entry more: where the last one ends */
	struct bytes
		index; /* of functions; their records are relative to it (1.2: to the table) */
	struct bytes records, names, units, files, values;
};

static const struct layout *layout_of(uint32_t magic)
{
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
		if (layouts[i].magic == magic)
			return &layouts[i];
	return NULL;
}

/* Version 1.2: the index follows the header, then the offset of the files' offsets. */
static void open_old(struct gopclntab *t, struct bytes table, struct reader *r)
{
	t->count = read_u64(r);
	t->index = bytes_from(table, reader_offset(r));
	t->records = t->names = t->values = t->files = table;
	if (t->count < t->index.len / 16) {
		struct reader end = reader_at(t->index, t->count * 16 + 8);

		t->units = bytes_from(table, read_u32(&end));
	}
}

static struct bytes table_at(struct bytes table, struct reader *r)
{
	return bytes_from(table, read_u64(r));
}

static void open_new(struct gopclntab *t, struct bytes table, struct reader *r)
{
	t->count = read_u64(r);
	read_u64(r); /* number of files */
	if (t->layout->relative)
		t->text = read_u64(r);
	t->names = table_at(table, r);
	t->units = table_at(table, r);
	t->files = table_at(table, r);
	t->values = table_at(table, r);
	t->index = t->records = table_at(table, r);
}

static struct bytes table_of(struct elf *elf)
{
	struct bytes table = {NULL, 0};

	if (elf_section_bytes(elf, ".gopclntab", &table, NULL) && table.len)
		return table;
	elf_section_bytes(elf, ".data.rel.ro.gopclntab", &table, NULL); /* -buildmode=pie */
	return table;
}

/* Position-independent programs have the start of the text only in a relocation, and newer
 * linkers nowhere. */
static uint64_t text_of(const struct elf *elf)
{
	const struct elf_section *text = elf_section(elf, ".text");

	return text ? text->ea : 0;
}

struct gopclntab *gopclntab_open(struct arena *arena, struct elf *elf)
{
	struct bytes table = table_of(elf);
	struct reader r = reader_over(table);
	struct gopclntab t = {.layout = layout_of(read_u32(&r))};
	struct gopclntab *kept;
	uint8_t word_size;

	read_u16(&r); /* zero */
	t.quantum = read_u8(&r);
	word_size = read_u8(&r);
	if (!t.layout || word_size != 8)
		return NULL;
	if (t.layout->tables_apart)
		open_new(&t, table, &r);
	else
		open_old(&t, table, &r);
	if (t.layout->relative && !t.text)
		t.text = text_of(elf);
	/* The last entry has no record, but an address. */
	if (reader_failed(&r) || t.index.len < t.layout->word ||
	    t.count > (t.index.len - t.layout->word) / (2u * t.layout->word) || !t.count)
		return NULL;
	kept = arena_new(arena, struct gopclntab);
	*kept = t;
	return kept;
}

static uint64_t index_read(const struct gopclntab *t, uint64_t i, unsigned field)
{
	struct reader r = reader_at(t->index, (i * 2 + field) * t->layout->word);

	return read_uint(&r, t->layout->word);
}

static uint64_t function_start(const struct gopclntab *t, uint64_t i)
{
	return t->text + index_read(t, i, 0);
}

/* The function that holds `ea`; count when none does. */
static uint64_t function_at(const struct gopclntab *t, uint64_t ea)
{
	uint64_t low = 0, high = t->count;

	if (ea < function_start(t, 0) || ea >= function_start(t, t->count))
		return t->count;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (function_start(t, middle) <= ea)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static uint32_t field_of(struct bytes record, uint8_t off)
{
	struct reader r = reader_at(record, off);

	return read_u32(&r);
}

/* A table of values by address: pairs of a change of the value (zigzag) and a distance, both as
 * LEB128, from value -1 at the function's start; a change of 0 that is not the first one ends it.
 * -1 when the address is not reached. */
static int64_t value_at(const struct gopclntab *t, uint32_t off, uint64_t start, uint64_t ea)
{
	struct reader r = reader_at(t->values, off);
	uint64_t pc = start;
	int64_t value = -1;

	if (!off)
		return -1;
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		uint32_t change = (uint32_t)read_uleb(&r);
		uint32_t distance = (uint32_t)read_uleb(&r);

		if (reader_failed(&r) || (!change && i))
			return -1;
		value += (int32_t)(change >> 1 ^ (change & 1 ? UINT32_MAX : 0));
		pc += (uint64_t)distance * t->quantum;
		if (ea < pc)
			return budget_work(i) ? value : -1;
	}
	budget_work(STEPS_MAX);
	return -1;
}

/* The name of the number-th file. Since 1.16 the number counts from the function's unit, and a
 * table leads from there to the names; 1.2 counts all files of the program, from 1. */
static const char *file_name(const struct gopclntab *t, struct bytes record, int64_t number)
{
	uint64_t first = t->layout->tables_apart ? field_of(record, t->layout->unit) : 0;
	struct reader r = reader_at(t->units, (first + (uint64_t)number) * 4);
	uint32_t off = read_u32(&r);
	const char *name;

	if (number < 0 || (!number && !t->layout->tables_apart) || reader_failed(&r) ||
	    off == NO_FILE)
		return NULL;
	name = bytes_string(t->files, off);
	return name && *name ? name : NULL;
}

/* The record of the function at `ea`, its name and where it begins; false when it is no Go code, or
 * without a name. */
static bool function_record(const struct gopclntab *t, uint64_t ea, struct bytes *record,
			    const char **name, uint64_t *function_ea)
{
	uint64_t i = function_at(t, ea);

	if (i == t->count)
		return false;
	*record = bytes_from(t->records, index_read(t, i, 1));
	*name = bytes_string(t->names, field_of(*record, t->layout->name));
	*function_ea = function_start(t, i);
	return *name && **name;
}

bool gopclntab_frame(const struct gopclntab *t, uint64_t ea, struct go_frame *out)
{
	struct bytes record;
	int64_t size;

	*out = (struct go_frame){.function = NULL};
	if (!function_record(t, ea, &record, &out->function, &out->function_ea))
		return false;
	size = value_at(t, field_of(record, t->layout->pcsp), out->function_ea, ea);
	if (size < 0)
		return false;
	out->size = (uint64_t)size;
	return true;
}

bool gopclntab_find(const struct gopclntab *t, uint64_t ea, struct go_place *out)
{
	struct bytes record;
	int64_t line;

	*out = (struct go_place){.function = NULL};
	if (!function_record(t, ea, &record, &out->function, &out->function_ea))
		return false;
	out->file = file_name(t, record,
			      value_at(t, field_of(record, t->layout->pcfile), out->function_ea,
				       ea));
	line = value_at(t, field_of(record, t->layout->pcln), out->function_ea, ea);
	out->line = line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
	return true;
}
