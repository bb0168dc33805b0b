/*
 * An instruction is decoded by a table into `struct instruction` (which operands it has, factored
 * or not, signed or not) and then done by its action: so the _sf, _extended and GNU twins of an
 * instruction are rows of a table and not code.
 */
#include "unwind/program.h"

enum operand {
	NO_OPERAND,
	REGISTER,     /* ULEB128 */
	REGISTER_2,   /* ULEB128, the second one */
	OFFSET,       /* ULEB128, in bytes */
	FACTORED,     /* ULEB128 times the CIE's data alignment */
	FACTORED_S,   /* SLEB128 times the data alignment */
	FACTORED_NEG, /* ULEB128 times the data alignment, negated */
	DELTA_1,      /* code distance of 1, 2, 4, 8 bytes times the code alignment */
	DELTA_2,
	DELTA_4,
	DELTA_8,
	ADDRESS, /* as the CIE's 'R' says */
	BLOCK,   /* ULEB128 length and an expression */
};

enum action {
	REFUSE, /* no such instruction, or none that can be followed */
	NOTHING,
	ADVANCE,
	SET_LOCATION,
	SET_RULE, /* of the kind in the table */
	RESTORE_RULE,
	REMEMBER,
	RESTORE_ALL,
	DEFINE_CFA,
	DEFINE_CFA_REGISTER,
	DEFINE_CFA_OFFSET,
	DEFINE_CFA_EXPRESSION,
	TOGGLE_RA_SIGNED,
};

struct opcode {
	uint8_t action, first, second; /* enum action, enum operand */
	uint8_t rule;                  /* SET_RULE: enum rule_kind */
};

/* clang-format off */
static const struct opcode opcodes[0x40] = {
	[0x00] = {NOTHING, 0, 0, 0},                                    /* nop */
	[0x01] = {SET_LOCATION, ADDRESS, 0, 0},
	[0x02] = {ADVANCE, DELTA_1, 0, 0},
	[0x03] = {ADVANCE, DELTA_2, 0, 0},
	[0x04] = {ADVANCE, DELTA_4, 0, 0},
	[0x05] = {SET_RULE, REGISTER, FACTORED, RULE_OFFSET},           /* offset_extended */
	[0x06] = {RESTORE_RULE, REGISTER, 0, 0},                        /* restore_extended */
	[0x07] = {SET_RULE, REGISTER, 0, RULE_UNDEFINED},
	[0x08] = {SET_RULE, REGISTER, 0, RULE_SAME},
	[0x09] = {SET_RULE, REGISTER, REGISTER_2, RULE_REGISTER},
	[0x0a] = {REMEMBER, 0, 0, 0},
	[0x0b] = {RESTORE_ALL, 0, 0, 0},
	[0x0c] = {DEFINE_CFA, REGISTER, OFFSET, 0},
	[0x0d] = {DEFINE_CFA_REGISTER, REGISTER, 0, 0},
	[0x0e] = {DEFINE_CFA_OFFSET, OFFSET, 0, 0},
	[0x0f] = {DEFINE_CFA_EXPRESSION, BLOCK, 0, 0},
	[0x10] = {SET_RULE, REGISTER, BLOCK, RULE_EXPRESSION},
	[0x11] = {SET_RULE, REGISTER, FACTORED_S, RULE_OFFSET},         /* offset_extended_sf */
	[0x12] = {DEFINE_CFA, REGISTER, FACTORED_S, 0},                 /* def_cfa_sf */
	[0x13] = {DEFINE_CFA_OFFSET, FACTORED_S, 0, 0},                 /* def_cfa_offset_sf */
	[0x14] = {SET_RULE, REGISTER, FACTORED, RULE_VAL_OFFSET},
	[0x15] = {SET_RULE, REGISTER, FACTORED_S, RULE_VAL_OFFSET},     /* val_offset_sf */
	[0x16] = {SET_RULE, REGISTER, BLOCK, RULE_VAL_EXPRESSION},
	[0x1d] = {ADVANCE, DELTA_8, 0, 0},                              /* MIPS_advance_loc8 */
	[0x2d] = {TOGGLE_RA_SIGNED, 0, 0, 0},                           /* AARCH64_negate_ra_state */
	[0x2c] = {TOGGLE_RA_SIGNED, 0, 0, 0},                           /* ..._with_pc: signed with the pc too */
	[0x2e] = {NOTHING, OFFSET, 0, 0},                               /* GNU_args_size */
	[0x2f] = {SET_RULE, REGISTER, FACTORED_NEG, RULE_OFFSET},       /* GNU_negative_offset_extended */
};
/* clang-format on */

/* The three instructions that keep an operand in their low six bits. */
enum { PRIMARY_ADVANCE = 1, PRIMARY_OFFSET, PRIMARY_RESTORE };
static const struct opcode primaries[4] = {
	[PRIMARY_ADVANCE] = {ADVANCE, 0, 0, 0},
	[PRIMARY_OFFSET] = {SET_RULE, 0, FACTORED, RULE_OFFSET},
	[PRIMARY_RESTORE] = {RESTORE_RULE, 0, 0, 0},
};

struct instruction {
	struct opcode opcode;
	uint8_t code; /* as it stands in the program, for messages */
	uint64_t reg, reg_2;
	int64_t offset;    /* bytes */
	uint64_t distance; /* of code, bytes; for SET_LOCATION the ea */
	struct bytes block;
};

static int64_t multiplied(struct reader *r, int64_t a, int64_t b)
{
	int64_t product = 0;

	if (__builtin_mul_overflow(a, b, &product))
		reader_fail(r);
	return product;
}

static int64_t read_uleb_signed(struct reader *r)
{
	uint64_t value = read_uleb(r);

	if (value > INT64_MAX) {
		reader_fail(r);
		return 0;
	}
	return (int64_t)value;
}

static uint64_t code_distance(struct reader *r, uint64_t units, const struct cie *cie)
{
	uint64_t product = 0;

	if (__builtin_mul_overflow(units, cie->code_align, &product))
		reader_fail(r);
	return product;
}

static bool read_operand(struct program *program, enum operand operand, struct instruction *in,
			 struct err *e)
{
	struct reader *r = &program->code;
	const struct cie *cie = program->fde->cie;

	switch (operand) {
	case NO_OPERAND:
		break;
	case REGISTER:
		in->reg = read_uleb(r);
		break;
	case REGISTER_2:
		in->reg_2 = read_uleb(r);
		break;
	case OFFSET:
		in->offset = read_uleb_signed(r);
		break;
	case FACTORED:
		in->offset = multiplied(r, read_uleb_signed(r), cie->data_align);
		break;
	case FACTORED_S:
		in->offset = multiplied(r, read_sleb(r), cie->data_align);
		break;
	case FACTORED_NEG:
		in->offset = multiplied(r, -read_uleb_signed(r), cie->data_align);
		break;
	case DELTA_1:
		in->distance = code_distance(r, read_u8(r), cie);
		break;
	case DELTA_2:
		in->distance = code_distance(r, read_u16(r), cie);
		break;
	case DELTA_4:
		in->distance = code_distance(r, read_u32(r), cie);
		break;
	case DELTA_8:
		in->distance = code_distance(r, read_u64(r), cie);
		break;
	case ADDRESS:
		return pointer_read(r, cie->pointer_encoding, &program->section->bases,
				    &in->distance, e);
	case BLOCK:
		in->block = read_block(r, read_uleb(r));
		if (in->block.len > UINT32_MAX)
			reader_fail(r);
		break;
	}
	return true;
}

static bool read_instruction(struct program *program, struct instruction *in, struct err *e)
{
	uint8_t code = read_u8(&program->code);
	unsigned primary = code >> 6;

	*in = (struct instruction){.code = code};
	in->opcode = primary ? primaries[primary] : opcodes[code];
	if (primary == PRIMARY_ADVANCE)
		in->distance = code_distance(&program->code, code & 0x3f, program->fde->cie);
	else if (primary)
		in->reg = code & 0x3f;
	return read_operand(program, in->opcode.first, in, e) &&
	       read_operand(program, in->opcode.second, in, e) &&
	       reader_ok(&program->code, "call frame program", e);
}

/* Vector registers have rules too; no frame is found by them, so their rules are left out. */
static void set_rule(struct program *program, const struct instruction *in)
{
	struct rule rule = {.kind = in->opcode.rule};

	if (in->reg >= ARCH_DWARF_REGS)
		return;
	if (rule.kind == RULE_REGISTER) {
		rule.reg = in->reg_2;
	} else if (in->block.at) {
		rule.expression = in->block.at;
		rule.expression_size = (uint32_t)in->block.len;
	} else {
		rule.offset = in->offset;
	}
	program->now.rules[in->reg] = rule;
}

static bool define_cfa(struct program *program, uint64_t reg, int64_t offset, struct err *e)
{
	if (reg >= ARCH_DWARF_REGS)
		return err_set(e, ERR_UNSUPPORTED, "CFA in register %lu", (unsigned long)reg);
	program->now.cfa =
		(struct cfa_rule){.kind = CFA_REGISTER, .reg = reg, .offset = offset};
	return true;
}

/* Only a CFA that is a register and an offset can have one of the two replaced. */
static bool redefine_cfa(struct program *program, const struct instruction *in, struct err *e)
{
	const struct cfa_rule *cfa = &program->now.cfa;

	if (cfa->kind != CFA_REGISTER)
		return err_set(e, ERR_FORMAT, "instruction 0x%02x without a CFA register",
			       in->code);
	if (in->opcode.action == DEFINE_CFA_REGISTER)
		return define_cfa(program, in->reg, cfa->offset, e);
	return define_cfa(program, cfa->reg, in->offset, e);
}

static bool move_to(struct program *program, uint64_t ea, const struct instruction *in,
		    struct err *e)
{
	if (program->in_cie)
		return err_set(e, ERR_FORMAT, "instruction 0x%02x in a CIE", in->code);
	if (ea < program->location)
		return err_set(e, ERR_FORMAT, "location goes back to 0x%lx", (unsigned long)ea);
	program->next = ea;
	return true;
}

static bool remember(struct program *program, struct err *e)
{
	if (program->remembered_count == REMEMBERED_MAX)
		return err_set(e, ERR_LIMIT, "more than %d remembered states", REMEMBERED_MAX);
	program->remembered[program->remembered_count++] = program->now;
	return true;
}

static bool restore_all(struct program *program, struct err *e)
{
	if (program->remembered_count == 0)
		return err_set(e, ERR_FORMAT, "no remembered state");
	program->now = program->remembered[--program->remembered_count];
	return true;
}

static bool restore_rule(struct program *program, const struct instruction *in, struct err *e)
{
	if (program->in_cie)
		return err_set(e, ERR_FORMAT, "instruction 0x%02x in a CIE", in->code);
	if (in->reg < ARCH_DWARF_REGS)
		program->now.rules[in->reg] = program->initial.rules[in->reg];
	return true;
}

static bool do_instruction(struct program *program, const struct instruction *in, struct err *e)
{
	switch ((enum action)in->opcode.action) {
	case REFUSE:
		return err_set(e, ERR_UNSUPPORTED, "call frame instruction 0x%02x", in->code);
	case NOTHING:
		return true;
	case ADVANCE:
		if (in->distance > UINT64_MAX - program->location)
			return err_set(e, ERR_FORMAT, "location wraps around");
		return move_to(program, program->location + in->distance, in, e);
	case SET_LOCATION:
		return move_to(program, in->distance, in, e);
	case SET_RULE:
		set_rule(program, in);
		return true;
	case RESTORE_RULE:
		return restore_rule(program, in, e);
	case REMEMBER:
		return remember(program, e);
	case RESTORE_ALL:
		return restore_all(program, e);
	case DEFINE_CFA:
		return define_cfa(program, in->reg, in->offset, e);
	case DEFINE_CFA_REGISTER:
	case DEFINE_CFA_OFFSET:
		return redefine_cfa(program, in, e);
	case DEFINE_CFA_EXPRESSION:
		program->now.cfa = (struct cfa_rule){
			.kind = CFA_EXPRESSION,
			.expression = in->block.at,
			.expression_size = (uint32_t)in->block.len,
		};
		return true;
	case TOGGLE_RA_SIGNED:
		program->now.ra_signed = !program->now.ra_signed;
		return true;
	}
	return false;
}

/* Runs instructions up to one that moves the location, or to the end of the program. */
static bool run_to_next_location(struct program *program, struct err *e)
{
	struct instruction in;

	while (reader_more(&program->code)) {
		if (++program->steps > PROGRAM_STEPS_MAX)
			return err_set(e, ERR_LIMIT, "call frame program: more than %d steps",
				       PROGRAM_STEPS_MAX);
		if (!read_instruction(program, &in, e) || !do_instruction(program, &in, e))
			return false;
		if (in.opcode.action == ADVANCE || in.opcode.action == SET_LOCATION)
			return true;
	}
	program->over = true;
	program->next = program->fde->ea + program->fde->size;
	return true;
}

static bool run_cie(struct program *program, struct err *e)
{
	program->in_cie = true;
	program->code = program->fde->cie->program;
	if (!run_to_next_location(program, e))
		return false;
	program->initial = program->now;
	program->remembered_count = 0;
	program->steps = 0;
	return true;
}

bool program_begin(struct program *program, const struct cfi_section *section,
		   const struct fde *fde, struct err *e)
{
	program->section = section;
	program->fde = fde;
	program->location = program->next = fde->ea;
	program->over = true;
	program->remembered_count = 0;
	program->steps = 0;
	program->now = (struct row_rules){.ra_signed = false};
	if (fde->cie->return_reg >= ARCH_DWARF_REGS)
		return err_set(e, ERR_UNSUPPORTED, "return address in register %lu",
			       (unsigned long)fde->cie->return_reg);
	if (!run_cie(program, e))
		return err_within(e, "CIE at 0x%lx", (unsigned long)fde->cie->off);
	program->in_cie = program->over = false;
	program->next = fde->ea;
	program->code = fde->program;
	return true;
}

static void row_of(const struct program *program, struct row *out)
{
	const struct cie *cie = program->fde->cie;

	out->start = program->location;
	out->end = program->next;
	out->cfa = program->now.cfa;
	memcpy(out->rules, program->now.rules, sizeof out->rules);
	out->ra_signed = program->now.ra_signed;
	out->signal_frame = cie->signal_frame;
	out->from_debug_frame = !program->section->is_eh;
	out->return_reg = (uint8_t)cie->return_reg;
}

/* The next row without the work of giving it out. */
static bool next_row(struct program *program, bool *over, struct err *e)
{
	*over = program->over;
	if (program->over)
		return false;
	program->location = program->next;
	if (!run_to_next_location(program, e))
		return err_within(e, "FDE of 0x%lx", (unsigned long)program->fde->ea);
	return true;
}

bool program_next(struct program *program, struct row *out, bool *over, struct err *e)
{
	if (!next_row(program, over, e))
		return false;
	row_of(program, out);
	return true;
}

bool row_at(const struct cfi_section *section, const struct fde *fde, uint64_t ea,
	    struct row *out, struct err *e)
{
	struct program program;
	bool over;

	if (!program_begin(&program, section, fde, e))
		return false;
	while (next_row(&program, &over, e)) {
		if (ea < program.next || program.over) {
			row_of(&program, out);
			return true;
		}
	}
	return over ? err_set(e, ERR_FORMAT, "no row for 0x%lx", (unsigned long)ea) : false;
}
