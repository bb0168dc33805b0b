#include "dwarf/line.h"

#include "dwarf/context.h"

/* Registers of the state machine (DWARF 5, 6.2.2) that matter here. */
struct machine {
	uint64_t address;
	uint64_t op_index;
	struct line_row row;
};

struct run {
	struct line_table *table;
	struct hits *hits;
	struct reader r;
	struct machine now;
	uint64_t anchor; /* what the last DW_LNE_set_address said */
	/* The row before, while it holds on. */
	bool open;
	uint64_t open_address, open_anchor;
	struct line_row open_row;
	size_t next;        /* first hit at or above open_address */
	uint64_t next_ea;   /* its address; the largest when there is none */
	size_t rows_wanted; /* hits without a row */
	uint8_t quotient[256]; /* n / line_range: a division for each opcode would be felt */
};

static void next_hit_set(struct run *run, size_t next)
{
	run->next = next;
	run->next_ea = next < run->hits->count ? run->hits->at[next].ea : UINT64_MAX;
}

/* The hits between the row before and the one that comes now. */
static void hits_take(struct run *run)
{
	const struct dwarf *dwarf = run->table->sections->dwarf;
	bool alive = dwarf_is_code(dwarf, run->open_anchor) && dwarf_is_code(dwarf, run->anchor);
	size_t i = run->next;

	for (; i < run->hits->count && run->hits->at[i].ea < run->now.address; i++) {
		struct hit *hit = &run->hits->at[i];

		if (hit->has_row || !alive)
			continue;
		hit->has_row = true;
		hit->row = run->open_row;
		run->rows_wanted--;
	}
	next_hit_set(run, i);
}

/* A row. Addresses only grow within a sequence; where they do not all the same (linkers write
 * tombstones into sequences), the row before holds nothing and a new stretch begins. */
static inline void row_add(struct run *run)
{
	if (run->open && run->now.address > run->next_ea)
		hits_take(run);
	else if (!run->open || run->now.address < run->open_address)
		next_hit_set(run, hits_from(run->hits, run->now.address));
	run->open = true;
	run->open_address = run->now.address;
	run->open_anchor = run->anchor;
	run->open_row = run->now.row;
}

static void sequence_begin(struct run *run)
{
	run->now = (struct machine){.row = {.file = 1, .line = 1}};
	run->anchor = 0;
	run->open = false;
}

static void sequence_end(struct run *run)
{
	row_add(run);
	sequence_begin(run);
}

/* Moves by `advance` operations (DWARF 5, 6.2.5.1: instructions may hold several). */
static inline void advance(struct run *run, uint64_t advance)
{
	const struct line_table *table = run->table;

	if (table->operations_max > 1) {
		uint64_t total = run->now.op_index + advance;

		run->now.address +=
			table->instruction_size * (total / table->operations_max);
		run->now.op_index = total % table->operations_max;
	} else {
		run->now.address += table->instruction_size * advance;
	}
}

/* A line_range of 0 gives no advance, and all opcodes the same line_base. */
static void quotients_fill(struct run *run)
{
	unsigned range = run->table->line_range;

	for (unsigned n = 0; range && n < 256; n++)
		run->quotient[n] = n < range ? 0 : (uint8_t)(run->quotient[n - range] + 1);
}

static inline void special_opcode(struct run *run, uint8_t opcode)
{
	const struct line_table *table = run->table;
	uint8_t adjusted = (uint8_t)(opcode - table->opcode_base);
	uint8_t quotient = run->quotient[adjusted];
	int remainder = table->line_range ? adjusted - quotient * table->line_range : 0;

	advance(run, quotient);
	run->now.row.line += (uint32_t)(table->line_base + remainder);
	row_add(run);
}

static void file_define(struct run *run, struct reader *r)
{
	struct line_file file = {0};

	form_read(r, run->table->encoding, DW_FORM_string, 0, &file.name);
	file.directory = read_uleb(r);
	if (!reader_failed(r))
		*vec_push(run->table->scratch, &run->table->files) = file;
}

/* A length, an opcode, operands; unknown ones are stepped over by the length. */
static void extended_opcode(struct run *run)
{
	uint64_t length = read_uleb(&run->r);
	struct reader operands = reader_over(read_block(&run->r, length));

	if (length == 0 || reader_failed(&run->r))
		return;
	switch (read_u8(&operands)) {
	case DW_LNE_end_sequence:
		sequence_end(run);
		break;
	case DW_LNE_set_address:
		run->now.address = read_uint(&operands, (unsigned)reader_left(&operands));
		run->now.op_index = 0;
		run->anchor = run->now.address;
		break;
	case DW_LNE_define_file:
		file_define(run, &operands);
		break;
	case DW_LNE_set_discriminator:
	default:
		break;
	}
}

/* Opcodes of later versions say how many LEB128 operands they have. */
static void unknown_opcode(struct run *run, uint8_t opcode)
{
	uint8_t count = run->table->operand_counts.at[opcode - 1];

	for (; count; count--)
		read_uleb(&run->r);
}

static void standard_opcode(struct run *run, uint8_t opcode)
{
	struct machine *now = &run->now;

	switch (opcode) {
	case DW_LNS_extended_op:
		extended_opcode(run);
		break;
	case DW_LNS_copy:
		row_add(run);
		break;
	case DW_LNS_advance_pc:
		advance(run, read_uleb(&run->r));
		break;
	case DW_LNS_advance_line:
		now->row.line += (uint32_t)read_sleb(&run->r);
		break;
	case DW_LNS_set_file:
		now->row.file = read_uleb(&run->r);
		break;
	case DW_LNS_set_column:
		now->row.column = (uint32_t)read_uleb(&run->r);
		break;
	case DW_LNS_const_add_pc:
		advance(run, run->quotient[(uint8_t)(255 - run->table->opcode_base)]);
		break;
	case DW_LNS_fixed_advance_pc:
		now->address += read_u16(&run->r);
		now->op_index = 0;
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_set_isa:
		read_uleb(&run->r);
		break;
	default:
		unknown_opcode(run, opcode);
		break;
	}
}

static size_t rows_wanted(const struct hits *hits)
{
	size_t wanted = 0;

	for (size_t i = 0; i < hits->count; i++)
		wanted += !hits->at[i].has_row;
	return wanted;
}

void line_table_run(struct line_table *table, struct hits *hits)
{
	struct run run = {.table = table, .hits = hits, .r = table->program};

	run.rows_wanted = rows_wanted(hits);
	quotients_fill(&run);
	sequence_begin(&run);
	while (run.rows_wanted && reader_more(&run.r)) {
		uint8_t opcode = read_u8(&run.r);

		if (opcode >= table->opcode_base && opcode != DW_LNS_extended_op)
			special_opcode(&run, opcode);
		else
			standard_opcode(&run, opcode);
	}
}
