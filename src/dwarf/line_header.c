/*
 * The header of a line program: sizes, directories and files (DWARF 5, 6.2.4), and the paths that
 * result. The program itself is line.c's.
 */
#include "dwarf/context.h"
#include "dwarf/line.h"

/* Of a header, to where its length has been read. */
#define LENGTH_SIZE 12
/* Directories or files of one table, each some 50 bytes in memory: of a program optimized as a
 * whole, some ten thousand. */
#define FILES_MAX ((size_t)1 << 18)

/* Columns of a version 5 table: five kinds exist. */
#define COLUMNS_MAX 16

struct column {
	uint64_t content; /* DW_LNCT_* */
	uint64_t form;
};

struct columns {
	struct column at[COLUMNS_MAX];
	size_t count;
};

static bool columns_read(struct reader *r, struct columns *columns)
{
	columns->count = read_u8(r);
	if (columns->count > COLUMNS_MAX)
		return false;
	for (size_t i = 0; i < columns->count; i++) {
		columns->at[i].content = read_uleb(r);
		columns->at[i].form = read_uleb(r);
	}
	return !reader_failed(r);
}

static struct line_file entry_read(struct line_table *table, struct reader *r,
				   const struct columns *columns)
{
	struct line_file file = {0};
	struct form_value value;

	for (size_t i = 0; i < columns->count; i++) {
		form_read(r, table->encoding, columns->at[i].form, 0, &value);
		if (columns->at[i].content == DW_LNCT_path)
			file.name = value;
		else if (columns->at[i].content == DW_LNCT_directory_index)
			file.directory = value.u;
	}
	return file;
}

/* An entry without columns or with none but empty ones would cost no byte: each takes at least
 * one. */
static bool entry_count_read(struct reader *r, const struct columns *columns, uint64_t *count)
{
	*count = read_uleb(r);
	return !reader_failed(r) && *count <= reader_left(r) && *count <= FILES_MAX &&
	       (columns->count || *count == 0);
}

static bool tables_read_5(struct line_table *table, struct reader *r)
{
	struct columns columns;
	uint64_t count;

	if (!columns_read(r, &columns) || !entry_count_read(r, &columns, &count))
		return false;
	for (; count && !reader_failed(r); count--)
		*vec_push(table->scratch, &table->directories) =
			entry_read(table, r, &columns).name;
	if (!columns_read(r, &columns) || !entry_count_read(r, &columns, &count))
		return false;
	for (; count && !reader_failed(r); count--)
		*vec_push(table->scratch, &table->files) = entry_read(table, r, &columns);
	return !reader_failed(r);
}

/* Directories, an empty string, files (name, directory, time, length), an empty string. */
static bool tables_read_2(struct line_table *table, struct reader *r)
{
	const struct encoding encoding = table->encoding;

	while (reader_more(r) && *r->at && table->directories.count < FILES_MAX)
		form_read(r, encoding, DW_FORM_string, 0,
			  vec_push(table->scratch, &table->directories));
	read_u8(r);
	while (reader_more(r) && *r->at && table->files.count < FILES_MAX) {
		struct line_file *file = vec_push(table->scratch, &table->files);

		form_read(r, encoding, DW_FORM_string, 0, &file->name);
		file->directory = read_uleb(r);
		read_uleb(r);
		read_uleb(r);
	}
	read_u8(r);
	return !reader_failed(r);
}

static bool header_read(struct line_table *table, struct reader *r)
{
	struct encoding *encoding = &table->encoding;
	uint64_t length;

	encoding->version = read_u16(r);
	if (encoding->version < 2 || encoding->version > 5)
		return false;
	encoding->address_size = table->unit ? table->unit->encoding.address_size : 8;
	if (encoding->version >= 5) {
		encoding->address_size = read_u8(r);
		read_u8(r); /* segment selector size */
	}
	length = read_offset(r, *encoding);
	table->program = *r;
	reader_skip(&table->program, length);
	table->instruction_size = read_u8(r);
	table->operations_max = encoding->version >= 4 ? read_u8(r) : 1;
	read_u8(r); /* default_is_stmt */
	table->line_base = (int8_t)read_u8(r);
	table->line_range = read_u8(r);
	table->opcode_base = read_u8(r);
	table->operand_counts = read_block(r, table->opcode_base ? table->opcode_base - 1u : 0);
	return !reader_failed(r) && !reader_failed(&table->program);
}

bool line_table_read(struct line_table *table, struct unit *unit, struct sections *sections,
		     uint64_t off, struct arena *scratch, uint64_t *end)
{
	struct bytes section = unit && !unit->skeleton && unit->contributions
				       ? unit_section(unit, SECTION_LINE)
				       : section_bytes(sections, SECTION_LINE);
	struct reader r = reader_at(section, off);

	section_need(sections, SECTION_LINE, off, LENGTH_SIZE);
	*table = (struct line_table){.unit = unit, .sections = sections, .scratch = scratch};
	*end = 0;
	if (!unit_length_read(&r, &table->encoding.offset_size))
		return false;
	*end = (uint64_t)(r.end - r.begin);
	section_need(sections, SECTION_LINE, off, *end - off);
	if (!dwarf_work(sections->dwarf, *end - off) || !header_read(table, &r))
		return false;
	/* Damaged tables cost the names of files, not the lines. */
	if (!(table->encoding.version >= 5 ? tables_read_5(table, &r)
					   : tables_read_2(table, &r)))
		dwarf_note(sections->dwarf, "%s: damaged file table at 0x%llx of .debug_line",
			   sections->elf->name, (unsigned long long)off);
	return true;
}

bool line_table_of(struct line_table *table, struct unit *unit, struct arena *scratch)
{
	struct unit *owner = unit->skeleton ? unit->skeleton : unit;
	uint64_t end;

	return owner->stmt_list.form && line_table_read(table, owner, owner->sections,
							owner->stmt_list.u, scratch, &end);
}

static const char *table_string(struct line_table *table, const struct form_value *value)
{
	struct unit bare = {.sections = table->sections, .encoding = table->encoding};

	return unit_string(table->unit ? table->unit : &bare, value);
}

/* Version 5 has the compilation directory as directory 0. */
static const char *directory_of(struct line_table *table, uint64_t index)
{
	const char *name;

	if (table->encoding.version < 5) {
		if (index == 0)
			return "";
		index--;
	}
	if (index >= table->directories.count)
		return "";
	name = table_string(table, &table->directories.at[index]);
	return name ? name : "";
}

/* DIR/NAME; slashes at the seam become one, and an empty part adds none. */
static const char *path_join(struct arena *arena, const char *directory, const char *name)
{
	size_t len = strlen(directory);

	if (len == 0)
		return name;
	if (*name == '/' || directory[len - 1] == '/') {
		while (*name == '/')
			name++;
		if (directory[len - 1] == '/')
			return arena_printf(arena, "%s%s", directory, name);
	}
	return arena_printf(arena, "%s/%s", directory, name);
}

static const char *path_make(struct line_table *table, const struct line_file *file,
			     struct arena *arena)
{
	const char *name = table_string(table, &file->name);
	const char *directory, *unit_directory = NULL;

	if (!name || *name == '/')
		return name;
	directory = directory_of(table, file->directory);
	if (table->unit && *directory != '/' &&
	    (table->encoding.version < 5 || file->directory != 0))
		unit_directory = unit_string(table->unit, &table->unit->comp_dir);
	name = *directory ? path_join(arena, directory, name) : name;
	return unit_directory ? path_join(arena, unit_directory, name) : name;
}

const char *line_table_path(struct line_table *table, uint64_t index, struct arena *arena)
{
	struct line_file *file;

	if (table->encoding.version < 5)
		index--; /* 0 becomes an index that no table has */
	if (index >= table->files.count)
		return NULL;
	file = &table->files.at[index];
	if (!file->path)
		file->path = path_make(table, file, arena);
	return file->path;
}
