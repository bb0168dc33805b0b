#include "dwarf/line.h"

#include "dwarf/context.h"

/* Registers of the state machine (DWARF 5, 6.2.2) that matter here. */
struct machine {
	uint64_t address;
	uint64_t op_index;
	struct line_row row;
};

/* The row before, which holds on while nothing is asked for between it and the rows that come. */
#define NOT_OPEN UINT64_MAX

struct run {
	struct line_table *table;
	struct hits *hits;
	bool alive;            /* what DW_LNE_set_address said last is code */
	uint64_t open_address; /* of the row before; NOT_OPEN: there is none */
	struct line_row open_row;
	size_t next;        /* first hit at or above open_address */
	uint64_t next_ea;   /* its address; the largest when there is none */
	size_t rows_wanted; /* hits without a row */
};

/* What the header says of opcodes, worked out once: divisions for each would be felt. */
struct opcodes {
	uint8_t base;
	uint8_t instruction_size, operations_max;
	uint8_t operations[256]; /* of special opcodes: what they advance by */
	uint32_t lines[256];     /* modulo 2^32, as lines are */
};

static void next_hit_set(struct run *run, size_t next)
{
	run->next = next;
	run->next_ea = next < run->hits->count ? run->hits->at[next].ea : UINT64_MAX;
}

/* The hits between the row before and the one that comes now, at `address`. */
static void hits_take(struct run *run, uint64_t address)
{
	size_t i = run->next;

	for (; i < run->hits->count && run->hits->at[i].ea < address; i++) {
		struct hit *hit = &run->hits->at[i];

		if (hit->has_row || !run->alive)
			continue;
		hit->has_row = true;
		hit->row = run->open_row;
		run->rows_wanted--;
	}
	next_hit_set(run, i);
}

/* The rare part of row_add. */
static void row_turn(struct run *run, uint64_t address)
{
	if (run->open_address != NOT_OPEN && address > run->next_ea)
		hits_take(run, address);
	else
		next_hit_set(run, hits_from(run->hits, address));
}

/* A row. Addresses only grow within a sequence; where they do not all the same (linkers write
 * tombstones into sequences), the row before holds nothing and a new stretch begins. */
static inline void row_add(struct run *run, const struct machine *now)
{
	if (now->address > run->next_ea || now->address < run->open_address)
		row_turn(run, now->address);
	run->open_address = now->address;
	run->open_row = now->row;
}

static struct machine sequence_begin(struct run *run)
{
	run->alive = dwarf_is_code(run->table->sections->dwarf, 0);
	run->open_address = NOT_OPEN;
	return (struct machine){.row = {.file = 1, .line = 1}};
}

/* What lies between code and a tombstone belongs to no row. */
static void address_set(struct run *run, struct machine *now, uint64_t address)
{
	bool alive = dwarf_is_code(run->table->sections->dwarf, address);

	if (!alive || !run->alive)
		run->open_address = NOT_OPEN;
	run->alive = alive;
	now->address = address;
	now->op_index = 0;
}

/* Moves by `count` operations (DWARF 5, 6.2.5.1: an instruction may hold several). */
static inline void advance(const struct opcodes *opcodes, struct machine *now, uint64_t count)
{
	if (opcodes->operations_max > 1) {
		count += now->op_index;
		now->op_index = count % opcodes->operations_max;
		count /= opcodes->operations_max;
	}
	now->address += opcodes->instruction_size * count;
}

static void file_define(struct run *run, struct reader *r)
{
	struct line_file file = {0};

	form_read(r, run->table->encoding, DW_FORM_string, 0, &file.name);
	file.directory = read_uleb(r);
	if (!reader_failed(r))
		*vec_push(run->table->scratch, &run->table->files) = file;
}

/* Operands include the opcode; unknown ones are left unread. */
static void extended_opcode(struct run *run, struct machine *now, struct bytes operands)
{
	struct reader r = reader_over(operands);

	switch (read_u8(&r)) {
	case DW_LNE_end_sequence:
		row_add(run, now);
		*now = sequence_begin(run);
		break;
	case DW_LNE_set_address:
		address_set(run, now, read_uint(&r, (unsigned)reader_left(&r)));
		break;
	case DW_LNE_define_file:
		file_define(run, &r);
		break;
	case DW_LNE_set_discriminator:
	default:
		break;
	}
}

/* Opcodes of later versions say how many LEB128 operands they have. */
static void unknown_opcode(const struct line_table *table, uint8_t opcode, struct reader *r)
{
	for (uint8_t count = table->operand_counts.at[opcode - 1]; count; count--)
		read_uleb(r);
}

static inline void standard_opcode(struct run *run, const struct opcodes *opcodes,
				   struct machine *now, uint8_t opcode, struct reader *r)
{
	struct reader copy;

	switch (opcode) {
	case DW_LNS_copy:
		row_add(run, now);
		break;
	case DW_LNS_advance_pc:
		advance(opcodes, now, read_uleb(r));
		break;
	case DW_LNS_advance_line:
		now->row.line += (uint32_t)read_sleb(r);
		break;
	case DW_LNS_set_file:
		now->row.file = read_uleb(r);
		break;
	case DW_LNS_set_column:
		now->row.column = (uint32_t)read_uleb(r);
		break;
	case DW_LNS_const_add_pc:
		advance(opcodes, now, opcodes->operations[255]);
		break;
	case DW_LNS_fixed_advance_pc:
		now->address += read_u16(r);
		now->op_index = 0;
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_set_isa:
		read_uleb(r);
		break;
	default:
		copy = *r;
		unknown_opcode(run->table, opcode, &copy);
		*r = copy;
		break;
	}
}

/* The hot loop: reader and machine are local, and given to inlined functions only, so that they
 * can live in registers; the rare opcodes get a copy. */
static void program_run(struct run *run, const struct opcodes *opcodes)
{
	struct reader r = run->table->program;
	struct machine now = sequence_begin(run), extended;

	while (run->rows_wanted && reader_more(&r)) {
		uint8_t opcode = read_u8(&r);

		if (opcode >= opcodes->base) {
			advance(opcodes, &now, opcodes->operations[opcode]);
			now.row.line += opcodes->lines[opcode];
			row_add(run, &now);
		} else if (opcode != DW_LNS_extended_op) {
			standard_opcode(run, opcodes, &now, opcode, &r);
		} else {
			extended = now;
			extended_opcode(run, &extended, read_block(&r, read_uleb(&r)));
			now = extended;
		}
	}
}

/* Opcode 0 is never a special one. A line_range of 0 gives no advance, and all opcodes the same
 * line_base. */
static void opcodes_fill(struct opcodes *opcodes, const struct line_table *table)
{
	uint8_t operations = 0, lines = 0;

	opcodes->base = table->opcode_base ? table->opcode_base : 1;
	opcodes->instruction_size = table->instruction_size;
	opcodes->operations_max = table->operations_max;
	for (unsigned opcode = table->opcode_base; opcode < 256; opcode++) {
		opcodes->operations[opcode] = operations;
		opcodes->lines[opcode] = (uint32_t)(table->line_base + lines);
		if (table->line_range && ++lines == table->line_range) {
			lines = 0;
			operations++;
		}
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
	struct run run = {.table = table, .hits = hits, .rows_wanted = rows_wanted(hits)};
	struct opcodes opcodes;

	opcodes_fill(&opcodes, table);
	program_run(&run, &opcodes);
}
