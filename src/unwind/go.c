#include "unwind/go.h"

#include <string.h>

#include "elf/gopclntab.h"

/* How far below its frame record a function's own part of the stack is searched for what it called: few
 * functions of the runtime have frames of more than some hundred bytes. */
#define SWITCHING_FRAME_MAX 8192

/* The table of a module that has none. */
static const char no_table;

static const struct gopclntab *table_of(const struct planner *planner, struct module *module)
{
	if (!module->go && module->elf)
		module->go = gopclntab_open(planner->arena, module_elf(module));
	if (!module->go)
		module->go = (void *)(uintptr_t)&no_table;
	return module->go == (const void *)&no_table ? NULL : module->go;
}

/* --- Plans --- */

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* What calls them, if anything, is not on this stack. */
static const char *const outermost[] = {"runtime.goexit", "runtime.mcall", "runtime.morestack",
					"runtime.rt0_go", "runtime.clone", NULL};
/* On aarch64: called in the name of code that was interrupted, by the handler of a signal. */
static const char *const injected[] = {"runtime.asyncPreempt", "runtime.sigpanic",
				       "runtime.debugCallV2", NULL};
static const char *const switches[] = {"runtime.systemstack", "runtime.asmcgocall", NULL};
/* Call the vDSO on the thread's stack, with the frame pointer still at their own frame record. */
static const char *const clocks[] = {"runtime.nanotime1", "runtime.walltime",
				     "runtime.walltime1", "time.now", NULL};

static bool is_after_direct_call(const struct planner *planner, uint64_t pc)
{
	struct memory memory = {.snapshot = planner->snapshot, .modules = planner->modules};
	size_t at;
	struct bytes text = memory_text(&memory, pc, &at);
	int64_t target;

	return !text.len || planner->snapshot->arch->direct_call(text, at, &target);
}

/* The runtime puts the beginning of systemstack_switch where a goroutine's stack was left, as if it had
 * been called from there. */
static bool is_entry(const struct planner *planner, const struct gopclntab *table, uint64_t pc,
		     uint64_t ea)
{
	struct go_frame frame;

	return gopclntab_frame(table, ea, &frame) && frame.function_ea == ea &&
	       !is_after_direct_call(planner, pc);
}

bool go_plan(const struct planner *planner, const struct module_range *range, struct plan *out)
{
	const struct gopclntab *table = table_of(planner, range->module);
	uint64_t ea = out->pc.va - range->bias;
	bool called = out->pc.kind == PC_RETURN;
	struct go_frame frame;

	if (!table)
		return false;
	if (called && is_entry(planner, table, out->pc.va, ea)) {
		out->is_entered = true;
		called = false;
	}
	if (!gopclntab_frame(table, ea - called, &frame))
		return false;
	out->kind = PLAN_GO;
	out->found_by = FOUND_GO;
	out->go_size = frame.size;
	out->go_by_record = called && is_one_of(frame.function, clocks);
	out->go_injected =
		planner->snapshot->arch->dwarf_lr >= 0 && is_one_of(frame.function, injected);
	if (called && is_one_of(frame.function, outermost))
		out->kind = PLAN_OUTERMOST;
	/* Those that switch call what they were given a pointer to. What calls one of them directly is a
	 * wrapper of the same name, which Go makes for functions in assembler. */
	if (called && is_one_of(frame.function, switches) &&
	    !is_after_direct_call(planner, out->pc.va)) {
		out->kind = PLAN_GO_SWITCH;
		out->go_function = frame.function_ea + range->bias;
	}
	return true;
}

/* --- Steps --- */

static const char *const goroutine_not_found = "the goroutine's stack was not found";

static bool fp_is(const struct stepper *stepper, const struct cursor *cursor, uint64_t value)
{
	uint8_t fp = (uint8_t)stepper->arch->dwarf_fp;

	return register_known(&cursor->registers, fp) && cursor->registers.at[fp] == value;
}

/* Where a function's part of the stack ends, and where it keeps its return address; the caller's frame
 * pointer is right below that. */
struct go_place_on_stack {
	uint64_t cfa, ra_at;
};

static struct go_place_on_stack place_of(const struct stepper *stepper, const struct plan *plan,
					 const struct cursor *cursor)
{
	uint64_t sp = cursor->registers.at[stepper->arch->dwarf_sp];
	uint8_t fp = (uint8_t)stepper->arch->dwarf_fp;
	bool by_record = plan->go_by_record && register_known(&cursor->registers, fp);
	uint64_t record_end = cursor->registers.at[fp] + 8;

	if (stepper->arch->dwarf_lr >= 0) {
		sp = by_record ? record_end : sp;
		return (struct go_place_on_stack){sp + plan->go_size, sp};
	}
	sp = by_record ? record_end : sp + plan->go_size;
	return (struct go_place_on_stack){sp + 8, sp};
}

/* A frame pointer that points right below the return address is that of this function, else it is
 * still, or again, its caller's. Go keeps no other registers over calls. */
static void registers_of_caller(struct stepper *stepper, struct go_place_on_stack place,
				struct cursor *cursor)
{
	uint8_t sp = (uint8_t)stepper->arch->dwarf_sp, fp = (uint8_t)stepper->arch->dwarf_fp;
	uint64_t record = cursor->registers.at[fp];
	struct frame_registers registers = {.known = 0};
	struct ending ignored;

	if (!fp_is(stepper, cursor, place.ra_at - 8) ||
	    memory_u64(&stepper->memory, place.ra_at - 8, &record, &ignored))
		set_register(&registers, fp, record);
	set_register(&registers, sp, place.cfa);
	registers.known &= cursor->registers.known | UINT64_C(1) << sp;
	cursor->registers = registers;
	cursor->stack_at = place.cfa;
}

/* The handler put the interrupted code's LR on its stack, and its pc into LR (runtime/signal_arm64.go,
 * pushCall). */
static void uninject(struct stepper *stepper, struct cursor *cursor)
{
	uint8_t sp = (uint8_t)stepper->arch->dwarf_sp;
	struct ending ignored;
	uint64_t lr;

	if (memory_u64(&stepper->memory, cursor->stack_at, &lr, &ignored))
		set_register(&cursor->registers, (uint8_t)stepper->arch->dwarf_lr, lr);
	cursor->stack_at += 16;
	set_register(&cursor->registers, sp, cursor->stack_at);
}

static bool step_frame(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		       struct ending *ending)
{
	int8_t lr = stepper->arch->dwarf_lr;
	struct go_place_on_stack place = place_of(stepper, plan, cursor);
	bool in_lr = lr >= 0 && plan->go_size == 0 && !plan->go_by_record;
	uint64_t ra;

	if (!register_known(&cursor->registers, (uint8_t)stepper->arch->dwarf_sp) ||
	    (in_lr && !register_known(&cursor->registers, (uint8_t)lr)))
		return end_at(ending, STOP_NO_CFI, register_not_known, 0);
	if (in_lr)
		ra = cursor->registers.at[lr];
	else if (!memory_u64(&stepper->memory, place.ra_at, &ra, ending))
		return false;
	registers_of_caller(stepper, place, cursor);
	if (plan->go_injected)
		uninject(stepper, cursor);
	cursor_move(cursor, stepper, ra, plan->go_injected ? PC_EXACT : PC_RETURN, FOUND_GO);
	return true;
}

/* Whether `ra` returns from a call of the function that switched, into one whose frame is so large. */
static bool is_call_of(const struct stepper *stepper, const struct plan *plan, uint64_t ra,
		       uint64_t size)
{
	const struct planner *planner = stepper->planner;
	struct plan caller = {.pc = {ra, PC_RETURN}};
	const struct module_range *range =
		module_range_at(planner->modules, pc_lookup(caller.pc));
	int64_t target;
	size_t at;
	struct bytes text;

	if (!range || !range->executable)
		return false;
	text = memory_text(&stepper->memory, ra, &at);
	return text.len && stepper->arch->direct_call(text, at, &target) &&
	       ra + (uint64_t)target == plan->go_function && go_plan(planner, range, &caller) &&
	       caller.go_size == size;
}

static bool step_switch(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
			struct ending *ending)
{
	uint8_t sp = (uint8_t)stepper->arch->dwarf_sp, fp = (uint8_t)stepper->arch->dwarf_fp;
	uint64_t record = cursor->registers.at[fp], ra;

	if (stepper->arch->dwarf_lr >= 0)
		return end_at(ending, STOP_NO_CFI, goroutine_not_found, 0);
	if (!register_known(&cursor->registers, fp))
		return end_at(ending, STOP_NO_CFI, register_not_known, 0);
	if (!memory_u64(&stepper->memory, record, &ra, ending))
		return false;
	for (uint64_t below = 8; below <= SWITCHING_FRAME_MAX; below += 8) {
		uint64_t va = record - below;

		if (!memory_u64(&stepper->memory, va, &ra, ending))
			return false;
		if (!is_call_of(stepper, plan, ra, below))
			continue;
		cursor->stack_at = va + 8;
		set_register(&cursor->registers, sp, cursor->stack_at);
		cursor_move(cursor, stepper, ra, PC_RETURN, FOUND_GO);
		return true;
	}
	return end_at(ending, STOP_NO_CFI, goroutine_not_found, 0);
}

bool step_by_go(struct stepper *stepper, const struct plan *plan, struct cursor *cursor,
		struct ending *ending)
{
	return plan->kind == PLAN_GO ? step_frame(stepper, plan, cursor, ending)
				     : step_switch(stepper, plan, cursor, ending);
}
