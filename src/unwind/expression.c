/*
 * Operations are decoded by a table (which operand, which group) and done by group: those that push
 * a constant or register need no more than that; the rest is arithmetic, stack handling, control and
 * memory. Every operation is checked for its depth before it is done, by the table's count of values
 * it takes, so the groups need no checks of their own.
 */
#include "unwind/expression.h"

enum operand {
	NONE,
	U1,
	S1,
	U2,
	S2,
	U4,
	S4,
	U8,
	S8,
	ULEB,
	SLEB,
	REG_SLEB, /* ULEB128 register, SLEB128 offset */
};

enum group {
	REFUSE,
	NOTHING,
	PUSH,      /* the operand */
	PUSH_LOW,  /* the low bits of the opcode: DW_OP_lit0 to 31 */
	PUSH_ADDR, /* the operand plus the load bias */
	PUSH_REG,  /* register by opcode or first operand, plus an offset */
	STACK,
	UNARY,
	BINARY,
	COMPARE, /* signed */
	JUMP,
	DEREF,
};

/* clang-format off */
enum {
	OP_addr = 0x03, OP_deref = 0x06,
	OP_const1u = 0x08, OP_const1s, OP_const2u, OP_const2s, OP_const4u, OP_const4s,
	OP_const8u, OP_const8s, OP_constu, OP_consts,
	OP_dup = 0x12, OP_drop, OP_over, OP_pick, OP_swap, OP_rot, OP_xderef,
	OP_abs = 0x19, OP_and, OP_div, OP_minus, OP_mod, OP_mul, OP_neg, OP_not, OP_or, OP_plus,
	OP_plus_uconst, OP_shl, OP_shr, OP_shra, OP_xor, OP_bra,
	OP_eq = 0x29, OP_ge, OP_gt, OP_le, OP_lt, OP_ne, OP_skip,
	OP_lit0 = 0x30, OP_lit31 = 0x4f, OP_reg0 = 0x50, OP_reg31 = 0x6f,
	OP_breg0 = 0x70, OP_breg31 = 0x8f, OP_bregx = 0x92,
	OP_deref_size = 0x94, OP_nop = 0x96,
	OP_entry_value = 0xa3, OP_GNU_entry_value = 0xf3,
};

struct operation {
	uint8_t group, operand;
	uint8_t takes, gives; /* values on the stack it needs, and leaves in their place */
};

static const struct operation operations[256] = {
	[OP_addr] = {PUSH_ADDR, U8, 0, 1},
	[OP_deref] = {DEREF, NONE, 1, 1},
	[OP_deref_size] = {DEREF, U1, 1, 1},
	[OP_const1u] = {PUSH, U1, 0, 1}, [OP_const1s] = {PUSH, S1, 0, 1},
	[OP_const2u] = {PUSH, U2, 0, 1}, [OP_const2s] = {PUSH, S2, 0, 1},
	[OP_const4u] = {PUSH, U4, 0, 1}, [OP_const4s] = {PUSH, S4, 0, 1},
	[OP_const8u] = {PUSH, U8, 0, 1}, [OP_const8s] = {PUSH, S8, 0, 1},
	[OP_constu] = {PUSH, ULEB, 0, 1}, [OP_consts] = {PUSH, SLEB, 0, 1},
	[OP_lit0 ... OP_lit31] = {PUSH_LOW, NONE, 0, 1},
	[OP_breg0 ... OP_breg31] = {PUSH_REG, SLEB, 0, 1},
	[OP_bregx] = {PUSH_REG, REG_SLEB, 0, 1},
	[OP_dup] = {STACK, NONE, 1, 2}, [OP_drop] = {STACK, NONE, 1, 0},
	[OP_over] = {STACK, NONE, 2, 3}, [OP_pick] = {STACK, U1, 0, 1},
	[OP_swap] = {STACK, NONE, 2, 2}, [OP_rot] = {STACK, NONE, 3, 3},
	[OP_abs] = {UNARY, NONE, 1, 1}, [OP_neg] = {UNARY, NONE, 1, 1},
	[OP_not] = {UNARY, NONE, 1, 1}, [OP_plus_uconst] = {UNARY, ULEB, 1, 1},
	[OP_and] = {BINARY, NONE, 2, 1}, [OP_div] = {BINARY, NONE, 2, 1},
	[OP_minus] = {BINARY, NONE, 2, 1}, [OP_mod] = {BINARY, NONE, 2, 1},
	[OP_mul] = {BINARY, NONE, 2, 1}, [OP_or] = {BINARY, NONE, 2, 1},
	[OP_plus] = {BINARY, NONE, 2, 1}, [OP_shl] = {BINARY, NONE, 2, 1},
	[OP_shr] = {BINARY, NONE, 2, 1}, [OP_shra] = {BINARY, NONE, 2, 1},
	[OP_xor] = {BINARY, NONE, 2, 1},
	[OP_eq ... OP_ne] = {COMPARE, NONE, 2, 1},
	[OP_bra] = {JUMP, S2, 1, 0}, [OP_skip] = {JUMP, S2, 0, 0},
	[OP_nop] = {NOTHING, NONE, 0, 0},
};
/* clang-format on */

struct machine {
	const struct expression_input *input;
	struct reader code;
	uint64_t stack[EXPRESSION_STACK_MAX];
	size_t depth;
	uint8_t op;
	uint64_t reg, operand; /* of the operation being done */
	struct ending *ending;
};

static bool refuse(struct machine *m, const char *what)
{
	return end_at(m->ending, STOP_BAD_CFI, what, 0);
}

static void read_operand(struct machine *m, enum operand operand)
{
	struct reader *r = &m->code;

	m->reg = m->op - OP_breg0; /* used by OP_breg only */
	switch (operand) {
	case NONE:
		m->operand = 0;
		break;
	case U1:
	case U2:
	case U4:
	case U8:
		m->operand = read_uint(r, 1U << (operand - U1) / 2);
		break;
	case S1:
	case S2:
	case S4:
	case S8:
		m->operand = (uint64_t)read_sint(r, 1U << (operand - S1) / 2);
		break;
	case ULEB:
		m->operand = read_uleb(r);
		break;
	case REG_SLEB:
		m->reg = read_uleb(r);
		m->operand = (uint64_t)read_sleb(r);
		break;
	case SLEB:
		m->operand = (uint64_t)read_sleb(r);
		break;
	}
}

static bool push(struct machine *m, uint64_t value)
{
	m->stack[m->depth++] = value;
	return true;
}

static bool push_register(struct machine *m)
{
	if (!register_known(m->input->registers, m->reg))
		return refuse(m, "expression needs a register that is not known");
	return push(m, m->input->registers->at[m->reg] + m->operand);
}

static bool do_stack(struct machine *m)
{
	uint64_t *top = &m->stack[m->depth]; /* one above the topmost value */
	uint64_t third;

	switch (m->op) {
	case OP_dup:
		return push(m, top[-1]);
	case OP_drop:
		m->depth--;
		return true;
	case OP_over:
		return push(m, top[-2]);
	case OP_pick:
		if (m->operand >= m->depth)
			return refuse(m, "expression picks below its stack");
		return push(m, m->stack[m->depth - 1 - m->operand]);
	case OP_swap:
		third = top[-1];
		top[-1] = top[-2];
		top[-2] = third;
		return true;
	default: /* OP_rot: the topmost becomes the third */
		third = top[-1];
		top[-1] = top[-2];
		top[-2] = top[-3];
		top[-3] = third;
		return true;
	}
}

static bool do_unary(struct machine *m)
{
	uint64_t *value = &m->stack[m->depth - 1];

	switch (m->op) {
	case OP_abs:
		if ((int64_t)*value < 0)
			*value = -*value;
		return true;
	case OP_neg:
		*value = -*value;
		return true;
	case OP_not:
		*value = ~*value;
		return true;
	default: /* OP_plus_uconst */
		*value += m->operand;
		return true;
	}
}

/* Signed, as DWARF says. The most negative number by -1 is itself, as in two's complement. */
static uint64_t divided(uint64_t a, uint64_t b)
{
	return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shifted_arithmetically(uint64_t a, uint64_t by)
{
	uint64_t sign = (int64_t)a < 0 ? UINT64_MAX : 0;

	if (by >= 64)
		return sign;
	return by == 0 ? a : a >> by | sign << (64 - by);
}

static bool do_binary(struct machine *m)
{
	uint64_t b = m->stack[--m->depth];
	uint64_t *a = &m->stack[m->depth - 1];

	switch (m->op) {
	case OP_and:
		*a &= b;
		return true;
	case OP_div:
		if (b == 0)
			return refuse(m, "expression divides by zero");
		*a = divided(*a, b);
		return true;
	case OP_minus:
		*a -= b;
		return true;
	case OP_mod:
		if (b == 0)
			return refuse(m, "expression divides by zero");
		*a %= b;
		return true;
	case OP_mul:
		*a *= b;
		return true;
	case OP_or:
		*a |= b;
		return true;
	case OP_plus:
		*a += b;
		return true;
	case OP_shl:
		*a = b < 64 ? *a << b : 0;
		return true;
	case OP_shr:
		*a = b < 64 ? *a >> b : 0;
		return true;
	case OP_shra:
		*a = shifted_arithmetically(*a, b);
		return true;
	default: /* OP_xor */
		*a ^= b;
		return true;
	}
}

static bool do_compare(struct machine *m)
{
	int64_t b = (int64_t)m->stack[--m->depth];
	int64_t a = (int64_t)m->stack[m->depth - 1];
	bool results[] = {a == b, a >= b, a > b, a <= b, a < b, a != b};

	m->stack[m->depth - 1] = results[m->op - OP_eq];
	return true;
}

static bool do_jump(struct machine *m)
{
	int64_t by = (int64_t)m->operand;

	if (m->op == OP_bra && m->stack[--m->depth] == 0)
		return true;
	if (by < m->code.begin - m->code.at || by > m->code.end - m->code.at)
		return refuse(m, "expression jumps out of itself");
	m->code.at += by;
	return true;
}

static bool do_deref(struct machine *m)
{
	uint64_t size = m->op == OP_deref ? 8 : m->operand;
	uint64_t *value = &m->stack[m->depth - 1];

	if (size == 0 || size > 8)
		return refuse(m, "expression reads an unknown size");
	return memory_uint_slow(m->input->memory, *value, (unsigned)size, value, m->ending);
}

static bool do_refused(struct machine *m)
{
	if (m->op == OP_entry_value || m->op == OP_GNU_entry_value)
		return refuse(m, "expression needs a value at function entry");
	if (m->op >= OP_reg0 && m->op <= OP_reg31)
		return refuse(m, "expression names a register instead of a value");
	return refuse(m, "expression with an operation that call frames cannot have");
}

static bool do_group(struct machine *m, enum group group)
{
	switch (group) {
	case REFUSE:
		return do_refused(m);
	case NOTHING:
		return true;
	case PUSH:
		return push(m, m->operand);
	case PUSH_LOW:
		return push(m, (uint64_t)(m->op - OP_lit0));
	case PUSH_ADDR:
		return push(m, m->operand + m->input->load_bias);
	case PUSH_REG:
		return push_register(m);
	case STACK:
		return do_stack(m);
	case UNARY:
		return do_unary(m);
	case BINARY:
		return do_binary(m);
	case COMPARE:
		return do_compare(m);
	case JUMP:
		return do_jump(m);
	case DEREF:
		return do_deref(m);
	}
	return false;
}

static bool do_operation(struct machine *m)
{
	const struct operation *operation;

	m->op = read_u8(&m->code);
	operation = &operations[m->op];
	read_operand(m, operation->operand);
	if (reader_failed(&m->code))
		return refuse(m, "expression is cut short");
	if (m->depth < operation->takes)
		return refuse(m, "expression takes more values than it has");
	if (m->depth - operation->takes + operation->gives > EXPRESSION_STACK_MAX)
		return refuse(m, "expression holds too many values");
	return do_group(m, operation->group);
}

bool expression_value(struct bytes expression, const struct expression_input *input,
		      uint64_t *out, struct ending *ending)
{
	struct machine m = {
		.input = input,
		.code = reader_over(expression),
		.ending = ending,
	};

	if (input->has_initial)
		push(&m, input->initial);
	for (unsigned steps = 0; reader_more(&m.code); steps++) {
		if (steps == EXPRESSION_STEPS_MAX)
			return refuse(&m, "expression does not end");
		if (!do_operation(&m))
			return false;
	}
	if (m.depth == 0)
		return refuse(&m, "expression without a value");
	*out = m.stack[m.depth - 1];
	return true;
}
