#include "unwind/fallback.h"

/* A direct call whose target is at most this far before the pc is taken for the call of the function
 * that holds it: leaf functions in assembler (system calls, string functions) are short. */
#define LEAF_SIZE_MAX 512

/* Searches for the beginnings of functions, of one stack. Functions that never return are few, and each
 * of these searches looks at kilobytes of code. */
#define ENTRY_SEARCHES_MAX 16

static bool return_is_code(const struct stepper *stepper, uint64_t ra)
{
	uint64_t va = stepper->arch->strip_pointer(ra, stepper->pac_mask);

	return va && is_code(stepper->planner, va);
}

/* --- Where the return address can be --- */

/* The callee has not touched the frame pointer; SP is right above the return address, if that is on
 * the stack. */
static bool return_from_stack(struct stepper *stepper, struct cursor *cursor,
			      uint64_t sp_offset, enum found_by found_by, struct ending *ending)
{
	uint8_t sp = (uint8_t)stepper->arch->dwarf_sp;
	uint64_t va = cursor->registers.at[sp] + sp_offset;
	uint64_t ra;

	if (!register_known(&cursor->registers, sp))
		return end_at(ending, STOP_NO_CFI, register_not_known, 0);
	if (!memory_u64(&stepper->memory, va, &ra, ending))
		return false;
	if (!return_is_code(stepper, ra))
		return end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
	cursor->stack_at = va + 8;
	set_register(&cursor->registers, sp, cursor->stack_at);
	cursor_move(cursor, stepper, ra, PC_RETURN, found_by);
	return true;
}

static bool return_from_lr(struct stepper *stepper, struct cursor *cursor,
			   struct ending *ending)
{
	int8_t lr = stepper->arch->dwarf_lr;

	if (lr < 0 || !register_known(&cursor->registers, (uint64_t)lr) ||
	    !return_is_code(stepper, cursor->registers.at[lr]))
		return end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
	cursor_move(cursor, stepper, cursor->registers.at[lr], PC_RETURN, FOUND_LINK_REGISTER);
	return true;
}

/* Frame records lie above the frame's SP on the same stack; one on another stack was left by a
 * switch of stacks (Go, coroutines). */
static bool record_is_plausible(const struct stepper *stepper, const struct cursor *cursor,
				uint64_t fp)
{
	return fp % 8 == 0 && (fp >= cursor->stack_at ||
			       !memory_same_stack(&stepper->memory, fp, cursor->stack_at));
}

/* What is known after a step along records is the pc, the frame pointer and, where the ABI fixes the
 * record's place, SP. */
static void move_to_record(struct stepper *stepper, struct cursor *cursor, uint64_t fp,
			   uint64_t next_fp, uint64_t ra)
{
	struct frame_registers registers = {.known = 0};

	set_register(&registers, (uint8_t)stepper->arch->dwarf_fp, next_fp);
	cursor->stack_at = fp + 16;
	if (stepper->arch->sp_above_frame_record)
		set_register(&registers, (uint8_t)stepper->arch->dwarf_sp, cursor->stack_at);
	cursor->registers = registers;
	cursor_move(cursor, stepper, ra, PC_RETURN, FOUND_FRAME_POINTER);
}

/* A chain goes on where the copied stack ends. What was not known to be a chain need not lead anywhere:
 * not that it cannot be read is the matter, but that there is nothing else to go by. */
static bool ending_of_chain(const struct cursor *cursor, struct ending *ending)
{
	if (ending->stop == STOP_NOT_CAPTURED && cursor->found_by == FOUND_FRAME_POINTER)
		return false;
	return end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
}

static bool return_from_record(struct stepper *stepper, struct cursor *cursor,
			       struct ending *ending)
{
	uint8_t reg = (uint8_t)stepper->arch->dwarf_fp;
	uint64_t fp = address_of(stepper, cursor->registers.at[reg]);
	uint64_t next_fp, ra;

	if (!register_known(&cursor->registers, reg))
		return end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
	/* Only a chain can end: 0 in a frame pointer that was not one says nothing. */
	if (fp == 0 && cursor->found_by == FOUND_FRAME_POINTER)
		return end_at(ending, STOP_OUTERMOST, NULL, 0);
	if (!record_is_plausible(stepper, cursor, fp))
		return end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
	if (!memory_u64(&stepper->memory, fp, &next_fp, ending) ||
	    !memory_u64(&stepper->memory, fp + 8, &ra, ending))
		return ending_of_chain(cursor, ending);
	if (ra == 0 && (next_fp == 0 || cursor->found_by == FOUND_FRAME_POINTER) &&
	    cursor->pc.kind == PC_RETURN)
		return end_at(ending, STOP_OUTERMOST, NULL, 0);
	if (!return_is_code(stepper, ra))
		return end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
	move_to_record(stepper, cursor, fp, next_fp, ra);
	return true;
}

/* --- Which of them it is --- */

/* The word that is the return address if the function has not touched the stack. */
static bool leaf_return_address(struct stepper *stepper, const struct cursor *cursor,
				uint64_t *ra)
{
	const struct arch *arch = stepper->arch;
	uint64_t reg = (uint64_t)(arch->dwarf_lr >= 0 ? arch->dwarf_lr : arch->dwarf_sp);
	struct ending ignored;

	*ra = cursor->registers.at[reg];
	return register_known(&cursor->registers, reg) &&
	       (arch->dwarf_lr >= 0 || memory_u64(&stepper->memory, *ra, ra, &ignored));
}

/* Whether a leaf's return address comes right after a direct call of the code where pc is. */
static bool was_called_directly(struct stepper *stepper, const struct cursor *cursor)
{
	uint64_t ra;
	struct bytes text;
	size_t at;
	int64_t target;

	if (!leaf_return_address(stepper, cursor, &ra))
		return false;
	ra = stepper->arch->strip_pointer(ra, stepper->pac_mask);
	text = memory_text(&stepper->memory, ra, &at);
	return text.len && stepper->arch->direct_call(text, at, &target) &&
	       cursor->pc.va - (ra + (uint64_t)target) < LEAF_SIZE_MAX;
}

static bool return_from_leaf(struct stepper *stepper, struct cursor *cursor, uint64_t sp_offset,
			     struct ending *ending)
{
	if (stepper->arch->dwarf_lr >= 0)
		return return_from_lr(stepper, cursor, ending);
	return return_from_stack(stepper, cursor, sp_offset, FOUND_SCAN, ending);
}

static struct arch_ra place_by_code(const struct stepper *stepper, uint64_t pc)
{
	size_t at;
	struct bytes text = memory_text(&stepper->memory, pc, &at);

	if (!text.len)
		return (struct arch_ra){ARCH_RA_UNKNOWN, 0};
	return stepper->arch->return_address(text, at);
}

static bool step_exact(struct stepper *stepper, struct cursor *cursor, struct ending *ending)
{
	struct arch_ra ra = place_by_code(stepper, cursor->pc.va);

	switch (ra.place) {
	case ARCH_RA_ON_STACK:
	case ARCH_RA_IN_LR:
		if (return_from_leaf(stepper, cursor, ra.sp_offset, ending))
			return true;
		break;
	case ARCH_RA_UNKNOWN:
		if (was_called_directly(stepper, cursor))
			return return_from_leaf(stepper, cursor, 0, ending);
		break;
	case ARCH_RA_IN_FRAME:
		break;
	}
	if (return_from_record(stepper, cursor, ending))
		return true;
	return stepper->arch->dwarf_lr >= 0 && ending->stop != STOP_OUTERMOST &&
	       return_from_lr(stepper, cursor, ending);
}

/* --- What the code itself will do until it returns --- */

static bool place_va(const struct stepper *stepper, const struct cursor *cursor,
		     struct arch_place place, uint64_t *va)
{
	const struct arch *arch = stepper->arch;
	uint8_t base = (uint8_t)(place.from_fp ? arch->dwarf_fp : arch->dwarf_sp);

	*va = address_of(stepper, cursor->registers.at[base] + (uint64_t)place.offset);
	return register_known(&cursor->registers, base);
}

static bool place_value(struct stepper *stepper, const struct cursor *cursor,
			struct arch_place place, uint64_t *value, struct ending *ending)
{
	uint64_t va;

	return place_va(stepper, cursor, place, &va) &&
	       memory_u64(&stepper->memory, va, value, ending);
}

static bool return_address_of(struct stepper *stepper, const struct cursor *cursor,
			      const struct arch_frame *frame, uint64_t *ra,
			      struct ending *ending)
{
	uint64_t lr = (uint64_t)stepper->arch->dwarf_lr;

	if (!frame->ra_in_lr)
		return place_value(stepper, cursor, frame->ra, ra, ending);
	*ra = cursor->registers.at[lr];
	return register_known(&cursor->registers, lr);
}

static bool is_called_from(const struct stepper *stepper, uint64_t ra)
{
	uint64_t va = stepper->arch->strip_pointer(ra, stepper->pac_mask);
	size_t at;
	struct bytes text = memory_text(&stepper->memory, va, &at);

	return text.len && stepper->arch->is_after_call(text, at);
}

/* A return address comes after a call, or it was made up: 0 by what starts a thread, a trampoline by
 * the kernel. That tells a frame that is one from what such a run may lead to in code that does not
 * keep the rules. */
static bool was_made_by_call(const struct stepper *stepper, uint64_t ra)
{
	uint64_t va = stepper->arch->strip_pointer(ra, stepper->pac_mask);
	struct plan plan;
	size_t at;

	if (va == 0 || is_called_from(stepper, ra))
		return true;
	plan_make(stepper->planner, (struct pc){va, PC_RETURN}, &plan);
	return plan.is_entered ||
	       (!memory_text(&stepper->memory, va, &at).len && plan.kind != PLAN_NOT_CODE);
}

static void restore_frame(struct stepper *stepper, struct cursor *cursor,
			  const struct arch_frame *frame, uint64_t sp)
{
	struct frame_registers registers = cursor->registers;
	struct ending ignored;
	uint64_t value;

	for (unsigned i = 0; i < frame->saved_count; i++) {
		uint8_t reg = (uint8_t)frame->saved[i].dwarf;

		if (place_value(stepper, cursor, frame->saved[i].place, &value, &ignored))
			set_register(&registers, reg, value);
		else
			registers.known &= ~(UINT64_C(1) << reg);
	}
	set_register(&registers, (uint8_t)stepper->arch->dwarf_sp, sp);
	cursor->registers = registers;
	cursor->stack_at = sp;
}

/* Whether the frame pointer says the same. */
static bool is_frame_record(const struct stepper *stepper, const struct cursor *cursor,
			    const struct arch_frame *frame)
{
	uint64_t fp = (uint64_t)stepper->arch->dwarf_fp;
	uint64_t va;

	return !frame->ra_in_lr && register_known(&cursor->registers, fp) &&
	       place_va(stepper, cursor, frame->ra, &va) && va == cursor->registers.at[fp] + 8;
}

/* A program begins with both 0. Where a frame pointer may be any register this says nothing; AAPCS64
 * (6.4.6) keeps x29 for frame records, and 0 in it for the end of their chain. */
static bool is_beginning(const struct stepper *stepper, const struct cursor *cursor,
			 uint64_t ra)
{
	uint64_t fp = (uint64_t)stepper->arch->dwarf_fp;

	return ra == 0 && stepper->arch->dwarf_lr >= 0 &&
	       register_known(&cursor->registers, fp) && cursor->registers.at[fp] == 0;
}

/* Takes the frame if a return address is where it should be. */
static bool return_by_frame(struct stepper *stepper, struct cursor *cursor,
			    const struct arch_frame *frame, bool must_be_called,
			    struct ending *ending)
{
	uint64_t sp, ra;
	enum found_by found_by;

	if (!place_va(stepper, cursor, frame->sp, &sp) ||
	    !return_address_of(stepper, cursor, frame, &ra, ending) ||
	    !(must_be_called ? is_called_from(stepper, ra) || is_beginning(stepper, cursor, ra)
			     : was_made_by_call(stepper, ra)))
		return false;
	found_by = is_frame_record(stepper, cursor, frame) ? FOUND_FRAME_POINTER : FOUND_SCAN;
	restore_frame(stepper, cursor, frame, sp);
	cursor_move(cursor, stepper, ra, PC_RETURN, found_by);
	return true;
}

static struct code_question question_of(const struct stepper *stepper,
					const struct cursor *cursor, struct bytes text,
					size_t at)
{
	return (struct code_question){
		.arch = stepper->arch,
		.text = text,
		.at = at,
		.pc = cursor->pc.va,
		.called = cursor->pc.kind == PC_RETURN,
	};
}

/* The nearest beginning that leads to a return address. */
static bool step_by_entry(struct stepper *stepper, struct cursor *cursor, struct bytes text,
			  size_t at)
{
	struct code_question question = question_of(stepper, cursor, text, at);
	struct arch_frame frame;
	struct ending ignored;
	size_t entry = at;

	if (!stepper->arch->frame_by_entry || stepper->entry_searches == ENTRY_SEARCHES_MAX)
		return false;
	stepper->entry_searches++;
	question.by_entry = true;
	while (code_frame(stepper->code_frames, &question, &entry, &frame))
		if (return_by_frame(stepper, cursor, &frame, true, &ignored))
			return true;
	return false;
}

static bool step_by_code(struct stepper *stepper, struct cursor *cursor, struct ending *ending)
{
	struct code_question question;
	struct arch_frame frame;
	bool returns;
	size_t at;
	struct bytes text = memory_text(&stepper->memory, cursor->pc.va, &at);

	if (!text.len || !stepper->arch->frame_by_code)
		return false;
	question = question_of(stepper, cursor, text, at);
	returns = code_frame(stepper->code_frames, &question, NULL, &frame);
	if (returns && !frame.doubtful &&
	    return_by_frame(stepper, cursor, &frame, frame.by_jump, ending))
		return true;
	if (ending->stop == STOP_NOT_CAPTURED)
		return false;
	return step_by_entry(stepper, cursor, text, at) ||
	       (returns && frame.doubtful &&
		return_by_frame(stepper, cursor, &frame, true, ending));
}

bool step_by_fallback(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		      struct ending *ending)
{
	if (plan->kind == PLAN_NOT_CODE)
		return return_from_leaf(stepper, cursor, 0, ending);
	end_at(ending, STOP_NO_CFI, NULL, cursor->pc.va);
	if (step_by_code(stepper, cursor, ending))
		return true;
	/* Another way would only miss the frames between. */
	if (ending->stop == STOP_NOT_CAPTURED)
		return false;
	if (cursor->pc.kind == PC_EXACT)
		return step_exact(stepper, cursor, ending);
	return return_from_record(stepper, cursor, ending);
}
