/*
 * The walk: frame by frame, with the guards that make it end. A step's result counts only when
 * the new pc is code and the stack has moved on; see `accept`.
 */
#include "unwind/unwind.h"

#include <inttypes.h>

#include "unwind/elision.h"
#include "unwind/fallback.h"
#include "unwind/plan_cache.h"
#include "unwind/step.h"

/* How often a walk may go to another stack, or step without using captured stack. Real ones do
 * so a few times: signal handlers on stacks of their own, coroutines that called each other,
 * leaf functions of aarch64. As all other steps use up what was captured, this makes every walk
 * finite. */
#define SIDE_STEPS_MAX 256

struct unwinder {
	struct arena *arena;
	struct unwind_options options;
	struct planner planner;
	struct plan_cache cache;
	struct stepper stepper;
	struct elision elision;
};

struct walk {
	struct unwinder *unwinder;
	const struct thread *thread;
	const struct plan *plan; /* of cursor.pc */
	struct cursor cursor;
	struct ending ending;
	unsigned side_steps;
	uint64_t run_start; /* where the stack that is being walked was entered */
	/* Brent's cycle detection: a frame seen before, replaced after 1, 2, 4, ... frames. */
	uint64_t mark_pc, mark_at, mark_age, mark_life;
};

/* --- Guards --- */

/* A step to a lower place must lead to another stack: back into what was walked already would
 * repeat it. A signal may interrupt anything, also code on a stack below in the same mapping. */
static bool leads_elsewhere(const struct walk *walk, uint64_t from)
{
	const struct cursor *to = &walk->cursor;

	return to->switched_by_signal || to->stack_at < walk->run_start ||
	       !memory_same_stack(&walk->unwinder->stepper.memory, from, to->stack_at);
}

static bool is_marked(struct walk *walk)
{
	const struct cursor *cursor = &walk->cursor;

	if (cursor->pc.va == walk->mark_pc && cursor->stack_at == walk->mark_at)
		return true;
	if (++walk->mark_age >= walk->mark_life) {
		walk->mark_pc = cursor->pc.va;
		walk->mark_at = cursor->stack_at;
		walk->mark_life *= 2;
		walk->mark_age = 0;
	}
	return false;
}

/* Whether a step used up a word or more of captured stack. One whose return address is in a
 * register may claim any place above: of such steps there could be 2^64. */
static bool uses_stack(struct walk *walk, uint64_t from)
{
	uint64_t to = walk->cursor.stack_at;

	return to > from && to - from >= sizeof(uint64_t) &&
	       memory_has_piece(&walk->unwinder->stepper.memory, to - 1);
}

static bool makes_progress(struct walk *walk, uint64_t from_pc, uint64_t from)
{
	const struct cursor *to = &walk->cursor;

	if (is_marked(walk))
		return false;
	if (uses_stack(walk, from))
		return true;
	if (to->stack_at == from && to->pc.va == from_pc)
		return false;
	if (to->stack_at < from) {
		if (!leads_elsewhere(walk, from))
			return false;
		walk->run_start = to->stack_at;
	}
	return ++walk->side_steps <= SIDE_STEPS_MAX;
}

/* Whether the frame that a step led to is one. Sets its plan. */
static bool accept(struct walk *walk, uint64_t from_pc, uint64_t from)
{
	struct unwinder *u = walk->unwinder;
	struct cursor *to = &walk->cursor;

	if (to->pc.va == 0 && to->pc.kind == PC_RETURN)
		return end_at(&walk->ending, STOP_OUTERMOST, NULL, 0);
	if (!makes_progress(walk, from_pc, from))
		return end_at(&walk->ending, STOP_NO_PROGRESS, NULL, from_pc);
	walk->plan = plan_cached(&u->cache, &u->planner, to->pc);
	if (walk->plan->kind == PLAN_NOT_CODE && to->pc.kind == PC_RETURN)
		return end_at(&walk->ending, STOP_NOT_CODE, NULL, to->pc.va);
	if (walk->plan->is_entered)
		to->pc.kind = PC_EXACT;
	return true;
}

/* --- Steps --- */

static const struct module_range *range_of(const struct unwinder *u,
					   const struct cursor *cursor)
{
	return module_range_at(u->planner.modules, pc_lookup(cursor->pc));
}

static bool has_way(const struct plan *plan)
{
	return plan->kind == PLAN_COMPACT || plan->kind == PLAN_ROW ||
	       plan->kind == PLAN_SIGNAL || plan->kind == PLAN_GO ||
	       plan->kind == PLAN_GO_SWITCH;
}

/* Says more exactly why there is no way on from here. */
static bool no_way(struct walk *walk)
{
	const struct cursor *cursor = &walk->cursor;

	if (walk->ending.stop != STOP_NO_CFI)
		return false;
	if (walk->plan->kind == PLAN_BAD_CFI)
		return end_at(&walk->ending, STOP_BAD_CFI, NULL, cursor->pc.va);
	if (!range_of(walk->unwinder, cursor))
		return end_at(&walk->ending, STOP_NO_MODULE, NULL, cursor->pc.va);
	return false;
}

static bool fall_back(struct walk *walk)
{
	uint64_t pc = walk->cursor.pc.va, at = walk->cursor.stack_at;

	if (!step_by_fallback(&walk->unwinder->stepper, walk->plan, &walk->cursor,
			      &walk->ending))
		return no_way(walk);
	return accept(walk, pc, at);
}

/* When the fallback does not help, what was wrong before it is the reason. */
static bool fall_back_after(struct walk *walk, struct ending ending)
{
	if (fall_back(walk))
		return true;
	if (walk->ending.stop != STOP_OUTERMOST)
		walk->ending = ending;
	return false;
}

/* Not when the stack was not captured so far: another way would only miss the frames between. */
static bool is_cfi_at_fault(enum stop stop)
{
	return stop == STOP_BAD_CFI || stop == STOP_NOT_CODE || stop == STOP_NO_PROGRESS;
}

/* At an exact pc, call frame information may be wrong: compilers leave it out for epilogues.
 * What it leads to shows that. */
static bool step_exact(struct walk *walk)
{
	struct cursor before = walk->cursor;
	const struct plan *plan = walk->plan;
	struct plan copy = *plan;

	if (step_by_plan(&walk->unwinder->stepper, plan, &walk->cursor, &walk->ending) &&
	    accept(walk, before.pc.va, before.stack_at))
		return true;
	if (!is_cfi_at_fault(walk->ending.stop))
		return false;
	if (copy.is_entered && !copy.signal_frame)
		return end_at(&walk->ending, STOP_OUTERMOST, NULL, 0);
	walk->cursor = before;
	walk->plan = &copy;
	if (fall_back_after(walk, walk->ending))
		return true;
	walk->cursor = before;
	walk->plan = NULL;
	return false;
}

static bool step(struct walk *walk)
{
	uint64_t pc = walk->cursor.pc.va, at = walk->cursor.stack_at;

	if (walk->plan->kind == PLAN_OUTERMOST)
		return end_at(&walk->ending, STOP_OUTERMOST, NULL, 0);
	if (!has_way(walk->plan))
		return fall_back(walk);
	if (walk->cursor.pc.kind == PC_EXACT)
		return step_exact(walk);
	if (step_by_plan(&walk->unwinder->stepper, walk->plan, &walk->cursor, &walk->ending))
		return accept(walk, pc, at);
	return walk->ending.what == register_not_known && fall_back_after(walk, walk->ending);
}

static void walk_begin(struct walk *walk, struct unwinder *u, const struct thread *thread)
{
	u->stepper.memory = memory_of_thread(u->planner.snapshot, u->planner.modules, thread);
	u->stepper.entry_searches = 0;
	*walk = (struct walk){.unwinder = u, .thread = thread, .mark_life = 1};
	cursor_begin(&walk->cursor, &u->stepper, &thread->registers);
	walk->run_start = walk->cursor.stack_at;
	walk->plan = plan_cached(&u->cache, &u->planner, walk->cursor.pc);
}

static bool add_frame(struct walk *walk)
{
	struct elision *elision = &walk->unwinder->elision;
	uint64_t limit = walk->unwinder->options.frame_limit;

	if (limit && elision->total == limit)
		return end_at(&walk->ending, STOP_LIMIT, NULL, 0);
	elision_add(elision, (struct frame){
				     .pc = walk->cursor.pc,
				     .found_by = (uint8_t)walk->cursor.found_by,
				     .stack_va = walk->cursor.stack_at,
			     });
	return true;
}

/* --- The reason at the end, in words --- */

static const char *place_of(struct unwinder *u, const struct cursor *cursor)
{
	const struct module_range *range = range_of(u, cursor);

	if (!range)
		return arena_printf(u->arena, "0x%" PRIx64, cursor->pc.va);
	return arena_printf(u->arena, "%s+0x%" PRIx64, range->module->name,
			    cursor->pc.va - range->bias);
}

static const char *not_captured_detail(struct walk *walk)
{
	struct unwinder *u = walk->unwinder;

	if (!walk->thread->stack_missing)
		return arena_printf(u->arena, "0x%" PRIx64, walk->ending.va);
	return arena_printf(u->arena,
			    "0x%" PRIx64 "; %" PRIu64
			    " bytes were left out: --stack-limit or --stack-total is too low",
			    walk->ending.va, walk->thread->stack_missing);
}

static const char *detail_of(struct walk *walk)
{
	struct unwinder *u = walk->unwinder;
	const char *place;

	switch (walk->ending.stop) {
	case STOP_NO_CFI:
	case STOP_BAD_CFI:
		place = place_of(u, &walk->cursor);
		if (!walk->ending.what)
			return place;
		return arena_printf(u->arena, "%s: %s", place, walk->ending.what);
	case STOP_NOT_CAPTURED:
		return not_captured_detail(walk);
	case STOP_NO_MODULE:
	case STOP_UNREADABLE:
	case STOP_NOT_CODE:
	case STOP_NO_PROGRESS:
		return arena_printf(u->arena, "0x%" PRIx64, walk->ending.va);
	case STOP_LIMIT:
		return arena_printf(u->arena, "%" PRIu64 " frames", u->options.frame_limit);
	default:
		return NULL;
	}
}

/* --- The face --- */

struct unwinder *unwinder_new(struct arena *arena, const struct snapshot *snapshot,
			      struct modules *modules, const struct unwind_options *options)
{
	struct unwinder *u = arena_new(arena, struct unwinder);

	u->arena = arena;
	if (options)
		u->options = *options;
	u->planner = (struct planner){arena, snapshot, modules, u->options.debug_files};
	plan_cache_begin(&u->cache, arena);
	stepper_begin(&u->stepper, &u->planner);
	elision_begin(&u->elision, arena,
		      u->options.frames_kept ? u->options.frames_kept : UNWIND_FRAMES_KEPT);
	return u;
}

void unwind_thread(struct unwinder *u, struct thread *thread)
{
	struct walk walk;

	thread->stack = (struct stack){.stop = STOP_NO_REGISTERS};
	if (!thread->has_registers)
		return;
	walk_begin(&walk, u, thread);
	while (add_frame(&walk) && step(&walk))
		;
	elision_finish(&u->elision, &thread->stack);
	thread->stack.stop = walk.ending.stop;
	thread->stack.stop_detail = detail_of(&walk);
}

void unwind_all(struct unwinder *u, struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->thread_count; i++)
		unwind_thread(u, &snapshot->threads[i]);
}
