#include "process/calls.h"

static bool registers_tell(const struct arch *arch)
{
	return arch->syscall_slot < arch->slot_count;
}

void calls_look(const struct process *process, const struct arch *arch,
		struct thread_table *table)
{
	for (size_t i = 0; !registers_tell(arch) && i < table->count; i++)
		task_call(process, table->threads[i].tid, &table->threads[i].call);
}

/* The call's instruction is as long as any, and PC is behind it or at it. */
static bool is_still_in(const struct arch *arch, const struct registers *registers,
			const struct task_call *seen)
{
	uint64_t before = seen->pc - registers->at[arch->pc_slot];

	return registers->at[arch->sp_slot] == seen->sp &&
	       (before == 0 || before == arch->pc_align_mask + 1) &&
	       registers->at[arch->syscall_number_slot] == (uint64_t)seen->number;
}

int64_t call_number(const struct arch *arch, const struct registers *registers,
		    const struct task_call *seen)
{
	int64_t number = seen->number;

	if (registers_tell(arch))
		number = (int64_t)registers->at[arch->syscall_slot];
	else if (number >= 0 && !is_still_in(arch, registers, seen))
		return -1;
	return number >= 0 ? number : -1;
}
