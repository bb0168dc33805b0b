#include "unwind/plan.h"

#include "unwind/go.h"

/* _start has no CFI in many C libraries. It is where the file says the program begins, and no longer
 * than this many bytes (glibc and musl have 14 to 52). */
#define START_SIZE_MAX 64

bool is_code(const struct planner *planner, uint64_t va)
{
	const struct module_range *range;
	const struct map *map;

	if (va & planner->snapshot->arch->pc_align_mask)
		return false;
	range = module_range_at(planner->modules, va);
	if (range && range->executable)
		return true;
	map = snapshot_map_at(planner->snapshot, va);
	return map && MAP_EXECUTABLE(map);
}

/* A call may be the last instruction of its mapping, so a return address counts also by the call. */
static bool pc_is_code(const struct planner *planner, struct pc pc)
{
	uint64_t align_mask = planner->snapshot->arch->pc_align_mask;

	return is_code(planner, pc.va) || (pc.kind == PC_RETURN && !(pc.va & align_mask) &&
					   is_code(planner, pc.va - 1 - align_mask));
}

static struct memory planner_memory(const struct planner *planner)
{
	return (struct memory){.snapshot = planner->snapshot, .modules = planner->modules};
}

static bool code_matches(struct bytes text, size_t at, const struct arch_code *code)
{
	struct bytes there = bytes_part(text, at, code->size);

	return there.len == code->size && memcmp(there.at, code->bytes, code->size) == 0;
}

/* Either before the trampoline's first instruction (a handler returns there), or in its system call
 * (the thread was interrupted there). */
static bool at_trampoline(const struct arch *arch, struct bytes text, size_t at)
{
	for (size_t i = 0; i < arch->trampoline_count; i++) {
		const struct arch_code *code = &arch->trampolines[i];

		if (code_matches(text, at, code) ||
		    (at >= code->syscall_at && code_matches(text, at - code->syscall_at, code)))
			return true;
	}
	return false;
}

static bool at_exit(const struct arch *arch, struct bytes text, size_t at)
{
	for (size_t i = 0; i < arch->exit_count; i++)
		if (code_matches(text, at, &arch->exits[i]))
			return true;
	return false;
}

static bool at_start(const struct module_range *range, uint64_t pc)
{
	const struct elf *elf = range && range->module->elf ? range->module->elf : NULL;

	return elf && elf->entry && pc - range->bias - elf->entry < START_SIZE_MAX;
}

/* --- Rows made compact --- */

static bool fits_words(int64_t offset)
{
	return offset % 8 == 0 && offset / 8 >= INT16_MIN && offset / 8 <= INT16_MAX;
}

static bool add_saved(struct plan *plan, uint8_t reg, const struct rule *rule)
{
	if (!fits_words(rule->offset) || plan->saved_count == PLAN_SAVED_MAX)
		return false;
	plan->saved_regs[plan->saved_count] = reg;
	plan->saved_words[plan->saved_count] = (int16_t)(rule->offset / 8);
	plan->saved_count++;
	return true;
}

static bool unchanged(const struct rule *rule)
{
	return rule->kind == RULE_UNSPECIFIED || rule->kind == RULE_SAME;
}

static bool compact_return(const struct arch *arch, const struct row *row, struct plan *plan)
{
	const struct rule *rule = &row->rules[row->return_reg];

	plan->return_reg = row->return_reg;
	plan->ra_saved = rule->kind == RULE_OFFSET;
	if (plan->ra_saved)
		return add_saved(plan, row->return_reg, rule);
	return unchanged(rule) && arch->dwarf_lr == row->return_reg;
}

static bool compact(const struct arch *arch, const struct row *row, struct plan *plan)
{
	plan->saved_count = 0;
	if (row->signal_frame || row->cfa.kind != CFA_REGISTER ||
	    row->cfa.offset != (int32_t)row->cfa.offset || !compact_return(arch, row, plan))
		return false;
	for (uint8_t reg = 0; reg < ARCH_DWARF_REGS; reg++) {
		const struct rule *rule = &row->rules[reg];

		if (reg == row->return_reg || unchanged(rule))
			continue;
		if (rule->kind != RULE_OFFSET || reg == arch->dwarf_sp ||
		    !add_saved(plan, reg, rule))
			return false;
	}
	plan->cfa_reg = (uint8_t)row->cfa.reg;
	plan->cfa_offset = (int32_t)row->cfa.offset;
	return true;
}

/* A row as it is before a function's first instruction: nothing was pushed, and the return address is
 * where the call put it. */
static bool is_entry_row(const struct arch *arch, const struct row *row)
{
	int64_t pushed = arch->dwarf_lr < 0 ? 8 : 0;

	return row->cfa.kind == CFA_REGISTER && row->cfa.reg == (uint64_t)arch->dwarf_sp &&
	       row->cfa.offset == pushed;
}

static void plan_by_row(const struct planner *planner, const struct row *row,
			uint64_t load_bias, struct plan *out)
{
	struct plan_row *kept;

	out->found_by = row->from_debug_frame ? FOUND_DEBUG_FRAME : FOUND_CFI;
	out->signal_frame = row->signal_frame;
	out->return_reg = row->return_reg;
	if (row->rules[row->return_reg].kind == RULE_UNDEFINED) {
		out->kind = PLAN_OUTERMOST;
		return;
	}
	if (compact(planner->snapshot->arch, row, out)) {
		out->kind = PLAN_COMPACT;
		return;
	}
	kept = arena_new(planner->arena, struct plan_row);
	*kept = (struct plan_row){*row, load_bias};
	out->row = kept;
	out->kind = PLAN_ROW;
}

/* --- One pc --- */

struct place {
	struct pc pc;
	const struct module_range *range; /* NULL: no module */
	struct bytes text;                /* empty: not to be had */
	size_t at;                        /* of pc in it */
};

static enum cfi_answer row_for(const struct planner *planner, const struct place *place,
			       uint64_t lookup, struct row *row)
{
	const struct module_range *range = place->range;
	enum cfi_answer answer;

	if (!range || !range->module->elf)
		return CFI_NONE;
	answer = cfi_row_at(range->module, planner->arena, lookup - range->bias, row, NULL);
	if (answer == CFI_NONE && range->executable &&
	    cfi_look_for_debug_file(range->module, planner->arena, &planner->debug_files))
		answer = cfi_row_at(range->module, planner->arena, lookup - range->bias, row,
				    NULL);
	return answer;
}

/* The trampoline's own CFI, if it has some that says what it is, else the kernel's layout. Found at
 * pc itself, also for a return address: nothing in it called, and what lies before it in memory may
 * be another function. */
static void plan_trampoline(const struct planner *planner, const struct place *place,
			    struct plan *out)
{
	struct row row;

	out->kind = PLAN_SIGNAL;
	out->found_by = FOUND_SIGNAL;
	out->signal_frame = out->is_entered = true;
	/* Linux's own CFI of the aarch64 trampoline followed the frame record that the kernel
	 * pushes, which loses the interrupted function when that is a leaf. */
	if (planner->snapshot->arch->dwarf_lr < 0 &&
	    row_for(planner, place, place->pc.va, &row) == CFI_ROW && row.signal_frame)
		plan_by_row(planner, &row, place->range->bias, out);
}

static void plan_without_cfi(const struct planner *planner, const struct place *place,
			     enum cfi_answer answer, struct plan *out)
{
	const struct arch *arch = planner->snapshot->arch;

	out->kind = answer == CFI_BAD ? PLAN_BAD_CFI : PLAN_NO_CFI;
	out->found_by = FOUND_FRAME_POINTER;
	if (at_start(place->range, place->pc.va) ||
	    (place->pc.kind == PC_RETURN && at_exit(arch, place->text, place->at)))
		out->kind = PLAN_OUTERMOST;
}

/* CFI that assemblers or scripts gave to musl's clone says that its caller is where the child's stack
 * is empty. */
static bool is_thread_start(const struct arch *arch, const struct place *place,
			    const struct row *row)
{
	return place->pc.kind == PC_RETURN && is_entry_row(arch, row) &&
	       at_exit(arch, place->text, place->at);
}

/*
 * No call returns to the first instruction of a function with no call before it: its address was put
 * on the stack for a `ret` to go there, as makecontext does with the function that ends a coroutine.
 */
static enum cfi_answer row_or_entry(const struct planner *planner, const struct place *place,
				    struct plan *out, struct row *row)
{
	enum cfi_answer answer = row_for(planner, place, pc_lookup(place->pc), row);
	int64_t target;

	if (answer != CFI_NONE || place->pc.kind != PC_RETURN ||
	    at_start(place->range, place->pc.va) ||
	    planner->snapshot->arch->direct_call(place->text, place->at, &target))
		return answer;
	answer = row_for(planner, place, place->pc.va, row);
	out->is_entered = answer == CFI_ROW;
	return answer;
}

static void plan_code(const struct planner *planner, const struct place *place,
		      struct plan *out)
{
	const struct arch *arch = planner->snapshot->arch;
	enum cfi_answer answer;
	struct row row;

	if (at_trampoline(arch, place->text, place->at)) {
		plan_trampoline(planner, place, out);
		return;
	}
	if (place->range && go_plan(planner, place->range, out))
		return;
	answer = row_or_entry(planner, place, out, &row);
	if (answer != CFI_ROW)
		plan_without_cfi(planner, place, answer, out);
	else if (is_thread_start(arch, place, &row))
		out->kind = PLAN_OUTERMOST;
	else
		plan_by_row(planner, &row, place->range->bias, out);
}

void plan_make(const struct planner *planner, struct pc pc, struct plan *out)
{
	struct memory memory = planner_memory(planner);
	struct place place = {.pc = pc};

	*out = (struct plan){.pc = pc, .kind = PLAN_NOT_CODE};
	if (!pc_is_code(planner, pc))
		return;
	place.range = module_range_at(planner->modules, pc_lookup(pc));
	place.text = memory_text(&memory, pc.va, &place.at);
	plan_code(planner, &place, out);
}
