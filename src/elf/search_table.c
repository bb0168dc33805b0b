#include "elf/search_table.h"

#include "base/search.h"

enum { HEADER_VERSION = 1 };

static struct bytes header_of(struct elf *elf, uint64_t *ea)
{
	const struct elf_segment *segment = elf_segment_of(elf, PT_GNU_EH_FRAME);
	const struct elf_section *section = elf_section(elf, ".eh_frame_hdr");
	struct bytes bytes = {NULL, 0};

	if (segment) {
		*ea = segment->ea;
		bytes = elf_bytes_at(elf, segment->ea);
		return bytes_part(bytes, 0,
				  segment->file_size < bytes.len ? segment->file_size
								 : bytes.len);
	}
	if (section && elf_section_bytes(elf, ".eh_frame_hdr", &bytes, NULL))
		*ea = section->ea;
	return bytes;
}

/* Pairs of pointers of one fixed size each. A count that says more than there is room for is cut:
 * the owner sees that the table is not complete. */
static void set_table(struct search_table *table, const struct reader *r, uint64_t count)
{
	size_t size = pointer_size(table->encoding);
	struct reader trial = *r;
	uint64_t value;
	size_t room;

	if (size == 0 || (table->encoding & EH_PE_INDIRECT) ||
	    !pointer_read(&trial, table->encoding, &table->bases, &value, NULL))
		return;
	table->first = reader_offset(r);
	table->stride = 2 * size;
	room = reader_left(r) / table->stride;
	table->count = count < room ? count : room;
	table->complete = count <= room;
	table->usable = !reader_failed(r) && table->count > 0;
}

struct search_table search_table_open(struct elf *elf)
{
	struct search_table table = {.usable = false};
	struct reader r;
	uint8_t eh_frame_encoding, count_encoding;
	uint64_t count;

	table.header = header_of(elf, &table.bases.section);
	table.bases.data = table.bases.section;
	table.bases.has_data = true;
	r = reader_over(table.header);
	if (read_u8(&r) != HEADER_VERSION)
		return table;
	eh_frame_encoding = read_u8(&r);
	count_encoding = read_u8(&r);
	table.encoding = read_u8(&r);
	if (!pointer_read(&r, eh_frame_encoding, &table.bases, &table.eh_frame_ea, NULL))
		return table;
	table.has_eh_frame = !reader_failed(&r) && eh_frame_encoding != EH_PE_OMIT &&
			     !(eh_frame_encoding & EH_PE_INDIRECT);
	if (count_encoding != EH_PE_OMIT &&
	    pointer_read(&r, count_encoding, &table.bases, &count, NULL))
		set_table(&table, &r, count);
	return table;
}

static uint64_t field(const struct search_table *table, uint64_t index, size_t off)
{
	struct reader r = reader_at(table->header, table->first + index * table->stride + off);
	uint64_t value;

	/* Cannot fail: the encoding was tried when the table was opened, and all pairs lie inside. */
	pointer_read(&r, table->encoding, &table->bases, &value, NULL);
	return value;
}

void search_table_pair(const struct search_table *table, uint64_t index, uint64_t *function,
		       uint64_t *fde_ea)
{
	*function = field(table, index, 0);
	*fde_ea = field(table, index, table->stride / 2);
}

/* The first pair behind ea. */
static uint64_t index_above(const struct search_table *table, uint64_t ea)
{
	size_t count = table->usable ? table->count : 0;

	return FIRST_INDEX(count, i, field(table, i, 0) > ea);
}

bool search_table_find(const struct search_table *table, uint64_t ea, uint64_t *function,
		       uint64_t *fde_ea)
{
	uint64_t above = index_above(table, ea);

	if (above == 0)
		return false;
	search_table_pair(table, above - 1, function, fde_ea);
	return true;
}

uint64_t search_table_next(const struct search_table *table, uint64_t ea)
{
	uint64_t above = index_above(table, ea);

	return table->usable && table->complete && above < table->count ? field(table, above, 0)
									: UINT64_MAX;
}

bool search_table_sorted(const struct search_table *table)
{
	for (uint64_t i = 1; i < table->count; i++)
		if (field(table, i - 1, 0) > field(table, i, 0))
			return false;
	return true;
}
