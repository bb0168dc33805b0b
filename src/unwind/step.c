/*
 * A step by a plan: compact ones, rows, signal frames. Others are elsewhere (unwind/go).
 */
#include "unwind/step.h"

#include "unwind/go.h"

/*
 * After a step along frame records on aarch64, SP is not known: a record may lie anywhere in its
 * frame. But where a row says that the frame pointer and LR are saved side by side, that pair is the
 * frame record, and the frame pointer points at it: so it gives the CFA.
 */
static bool cfa_by_frame_record(const struct stepper *stepper, const struct cursor *cursor,
				int64_t fp_offset, int64_t lr_offset, uint64_t *cfa)
{
	uint8_t fp = (uint8_t)stepper->arch->dwarf_fp;

	if (cursor->pc.kind != PC_RETURN || lr_offset != fp_offset + 8 ||
	    !register_known(&cursor->registers, fp))
		return false;
	*cfa = address_of(stepper, cursor->registers.at[fp] - (uint64_t)fp_offset);
	return true;
}

/* --- Compact plans --- */

static bool compact_cfa_by_record(const struct stepper *stepper, const struct plan *plan,
				  const struct cursor *cursor, uint64_t *cfa)
{
	for (unsigned i = 1; i < plan->saved_count && plan->ra_saved; i++)
		if (plan->saved_regs[i] == stepper->arch->dwarf_fp)
			return cfa_by_frame_record(stepper, cursor, 8 * plan->saved_words[i],
						   8 * plan->saved_words[0], cfa);
	return false;
}

static bool compact_cfa(const struct stepper *stepper, const struct plan *plan,
			const struct cursor *cursor, uint64_t *cfa, struct ending *ending)
{
	if (register_known(&cursor->registers, plan->cfa_reg)) {
		*cfa = address_of(stepper, cursor->registers.at[plan->cfa_reg] +
						   (uint64_t)(int64_t)plan->cfa_offset);
		return true;
	}
	return compact_cfa_by_record(stepper, plan, cursor, cfa) ||
	       end_at(ending, STOP_BAD_CFI, register_not_known, 0);
}

static uint64_t saved_va(const struct plan *plan, uint64_t cfa, unsigned i)
{
	return cfa + (uint64_t)(8 * (int64_t)plan->saved_words[i]);
}

/* A saved register that cannot be read is not needed yet, and perhaps never. */
static void restore_saved(struct stepper *stepper, const struct plan *plan, uint64_t cfa,
			  struct frame_registers *registers)
{
	struct ending ignored;
	uint64_t value;

	for (unsigned i = plan->ra_saved; i < plan->saved_count; i++) {
		if (memory_u64(&stepper->memory, saved_va(plan, cfa, i), &value, &ignored))
			set_register(registers, plan->saved_regs[i], value);
		else
			registers->known &= ~(UINT64_C(1) << plan->saved_regs[i]);
	}
}

static bool step_compact(struct stepper *stepper, const struct plan *plan,
			 struct cursor *cursor, struct ending *ending)
{
	struct frame_registers *registers = &cursor->registers;
	uint64_t cfa, ra;

	if (!compact_cfa(stepper, plan, cursor, &cfa, ending))
		return false;
	if (plan->ra_saved) {
		if (!memory_u64(&stepper->memory, saved_va(plan, cfa, 0), &ra, ending))
			return false;
	} else if (register_known(registers, plan->return_reg)) {
		ra = registers->at[plan->return_reg];
	} else {
		return end_at(ending, STOP_BAD_CFI, register_not_known, 0);
	}
	restore_saved(stepper, plan, cfa, registers);
	set_register(registers, (uint8_t)stepper->arch->dwarf_sp, cfa);
	cursor->stack_at = cfa;
	cursor_move(cursor, stepper, ra, PC_RETURN, plan->found_by);
	return true;
}

/* --- Rows as they are --- */

/* A frame while its row is applied: registers are read from `from` only. */
struct application {
	struct stepper *stepper;
	const struct plan_row *plan;
	const struct cursor *from;
	uint64_t cfa;
	struct ending *ending;
};

static bool evaluate(const struct application *a, const uint8_t *at, uint32_t size,
		     const uint64_t *initial, uint64_t *out)
{
	struct expression_input input = {
		.registers = &a->from->registers,
		.memory = &a->stepper->memory,
		.load_bias = a->plan->load_bias,
		.has_initial = initial != NULL,
		.initial = initial ? *initial : 0,
	};

	return expression_value((struct bytes){at, size}, &input, out, a->ending);
}

static bool register_value(const struct application *a, uint64_t reg, uint64_t *out)
{
	if (!register_known(&a->from->registers, reg))
		return end_at(a->ending, STOP_BAD_CFI, register_not_known, 0);
	*out = a->from->registers.at[reg];
	return true;
}

static bool row_cfa(struct application *a)
{
	const struct row *row = &a->plan->row;
	const struct rule *fp = &row->rules[a->stepper->arch->dwarf_fp];
	const struct rule *ra = &row->rules[row->return_reg];
	uint64_t base;

	switch ((enum cfa_kind)row->cfa.kind) {
	case CFA_EXPRESSION:
		return evaluate(a, row->cfa.expression, row->cfa.expression_size, NULL,
				&a->cfa);
	case CFA_REGISTER:
		if (register_value(a, row->cfa.reg, &base)) {
			a->cfa = address_of(a->stepper, base + (uint64_t)row->cfa.offset);
			return true;
		}
		return fp->kind == RULE_OFFSET && ra->kind == RULE_OFFSET &&
		       cfa_by_frame_record(a->stepper, a->from, fp->offset, ra->offset,
					   &a->cfa);
	case CFA_UNSET:
		break;
	}
	return end_at(a->ending, STOP_BAD_CFI, "no rule for the CFA", 0);
}

static bool value_by_rule(const struct application *a, uint64_t reg, const struct rule *rule,
			  uint64_t *out)
{
	struct memory *memory = &a->stepper->memory;
	uint64_t va;

	switch ((enum rule_kind)rule->kind) {
	case RULE_UNSPECIFIED:
	case RULE_SAME:
		return register_value(a, reg, out);
	case RULE_UNDEFINED:
		return end_at(a->ending, STOP_BAD_CFI, register_not_known, 0);
	case RULE_OFFSET:
		return memory_u64(memory, a->cfa + (uint64_t)rule->offset, out, a->ending);
	case RULE_VAL_OFFSET:
		*out = a->cfa + (uint64_t)rule->offset;
		return true;
	case RULE_REGISTER:
		return register_value(a, rule->reg, out);
	case RULE_EXPRESSION:
		return evaluate(a, rule->expression, rule->expression_size, &a->cfa, &va) &&
		       memory_u64(memory, va, out, a->ending);
	case RULE_VAL_EXPRESSION:
		return evaluate(a, rule->expression, rule->expression_size, &a->cfa, out);
	}
	return false;
}

/* The stack pointer of the caller is the CFA unless something else is said. */
static void restore_register(struct application *a, uint8_t reg, struct frame_registers *out)
{
	const struct rule *rule = &a->plan->row.rules[reg];
	bool kept = rule->kind == RULE_UNSPECIFIED || rule->kind == RULE_SAME;
	struct ending ignored, *ending = a->ending;
	uint64_t value;

	if (kept && reg != a->stepper->arch->dwarf_sp)
		return;
	a->ending = &ignored;
	if (kept)
		set_register(out, reg, a->cfa);
	else if (value_by_rule(a, reg, rule, &value))
		set_register(out, reg, value);
	else
		out->known &= ~(UINT64_C(1) << reg);
	a->ending = ending;
}

static bool return_address_by_row(const struct application *a, uint64_t *ra)
{
	uint8_t reg = a->plan->row.return_reg;
	const struct rule *rule = &a->plan->row.rules[reg];

	if (rule->kind == RULE_UNSPECIFIED && a->stepper->arch->dwarf_lr != reg)
		return end_at(a->ending, STOP_BAD_CFI, "no rule for the return address", 0);
	return value_by_rule(a, reg, rule, ra);
}

static bool step_by_row(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
			struct ending *ending)
{
	struct cursor from = *cursor;
	struct application a = {
		.stepper = stepper,
		.plan = plan->row,
		.from = &from,
		.ending = ending,
	};
	uint8_t sp = (uint8_t)stepper->arch->dwarf_sp;
	uint64_t ra;

	if (!row_cfa(&a) || !return_address_by_row(&a, &ra))
		return false;
	for (uint8_t reg = 0; reg < ARCH_DWARF_REGS; reg++)
		restore_register(&a, reg, &cursor->registers);
	cursor->stack_at =
		register_known(&cursor->registers, sp) ? cursor->registers.at[sp] : a.cfa;
	cursor_move(cursor, stepper, ra, plan->signal_frame ? PC_EXACT : PC_RETURN,
		    plan->found_by);
	cursor->switched_by_signal = plan->signal_frame;
	return true;
}

/* --- The kernel's signal frame --- */

static bool step_over_signal(struct stepper *stepper, const struct plan *plan,
			     struct cursor *cursor, struct ending *ending)
{
	const struct arch *arch = stepper->arch;
	uint8_t sp = (uint8_t)arch->dwarf_sp, pc = (uint8_t)arch->dwarf_pc;
	struct frame_registers restored = {.known = 0};
	uint64_t value;

	if (!register_known(&cursor->registers, sp))
		return end_at(ending, STOP_NO_CFI, register_not_known, 0);
	for (size_t i = 0; i < arch->sigframe_words; i++) {
		int8_t slot = arch->sigframe_slots[i];
		int8_t reg = slot < 0 ? -1 : stepper->dwarf_of_slot[slot];
		uint64_t va = cursor->registers.at[sp] + arch->sigframe_registers + 8 * i;

		if (reg < 0)
			continue;
		if (!memory_u64(&stepper->memory, va, &value, ending))
			return false;
		set_register(&restored, (uint8_t)reg, value);
	}
	cursor->registers = restored;
	cursor->stack_at = restored.at[sp];
	cursor_move(cursor, stepper, restored.at[pc], PC_EXACT, plan->found_by);
	cursor->switched_by_signal = true;
	return true;
}

bool step_by_plan(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		  struct ending *ending)
{
	switch (plan->kind) {
	case PLAN_COMPACT:
		return step_compact(stepper, plan, cursor, ending);
	case PLAN_ROW:
		return step_by_row(stepper, plan, cursor, ending);
	case PLAN_GO:
	case PLAN_GO_SWITCH:
		return step_by_go(stepper, plan, cursor, ending);
	default: /* PLAN_SIGNAL */
		return step_over_signal(stepper, plan, cursor, ending);
	}
}
