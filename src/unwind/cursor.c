/*
 * The innermost frame, from which a walk begins.
 */
#include "unwind/cursor.h"

const char *const register_not_known = "a rule needs a register that is not known";

void stepper_begin(struct stepper *stepper, const struct planner *planner)
{
	const struct arch *arch = planner->snapshot->arch;

	*stepper = (struct stepper){
		.arch = arch,
		.pac_mask = planner->snapshot->pac_code_mask,
		.planner = planner,
		.code_frames = arena_new(planner->arena, struct code_frames),
	};
	memset(stepper->dwarf_of_slot, -1, sizeof stepper->dwarf_of_slot);
	for (size_t i = 0; i < arch->register_count; i++)
		stepper->dwarf_of_slot[arch->registers[i].slot] = arch->registers[i].dwarf;
}

void cursor_begin(struct cursor *cursor, const struct stepper *stepper,
		  const struct registers *registers)
{
	const struct arch *arch = stepper->arch;

	*cursor = (struct cursor){
		.pc = {registers->at[arch->pc_slot], PC_EXACT},
		.found_by = FOUND_REGISTERS,
		.stack_at = registers->at[arch->sp_slot],
	};
	for (size_t slot = 0; slot < arch->slot_count; slot++)
		if (stepper->dwarf_of_slot[slot] >= 0)
			set_register(&cursor->registers, (uint8_t)stepper->dwarf_of_slot[slot],
				     registers->at[slot]);
}
