/*
 * arch/aarch64_code: where a function's caller is, told by its own code.
 *
 * Code without call frame information (musl, assembler) still gives its frame back before it
 * returns. So the code is run forward from the pc to `ret`, with nothing but SP, the frame
 * pointer and where registers are loaded from being followed (arch/aarch64_path): what has
 * become of SP then is the caller's, and x30 and the callee-saved registers come from where
 * they were loaded. Calls leave all that as it was, and every path to a return gives back the
 * same frame, so that any will do: of a conditional branch first the path straight on, then the
 * other one if that leads nowhere (into a call that does not return).
 *
 * Functions that never return (the outermost ones of libcs) are run from what may be their
 * beginning to the pc instead.
 */
#include "arch/aarch64_code.h"

#include "arch/aarch64_path.h"

#define NOP 0xd503201f

/* Of one search: code that is run in all, and branches whose other path is still open. Most
 * functions need a few dozen instructions; the worst one of musl a few hundred. */
#define INSTRUCTIONS_MAX 4096
#define INSTRUCTIONS_FROM_ENTRY_MAX 512
#define OPEN_MAX 16
/* How far back the beginning of a function is looked for, in bytes. */
#define LOOK_BACK_MAX 2048

struct search {
	struct path_search paths;
	struct aarch64_path open[OPEN_MAX];
};

static void search_begin(struct search *search, struct bytes text, size_t goal)
{
	search->paths = (struct path_search){
		.rules = &aarch64_path_rules,
		.text = text,
		.goal = goal,
		.instructions_left =
			goal == PATH_TO_RETURN ? INSTRUCTIONS_MAX : INSTRUCTIONS_FROM_ENTRY_MAX,
		.open = (uint8_t *)search->open,
		.open_max = OPEN_MAX,
	};
}

/* Any path that leads to the goal will do. */
static bool any_path_runs(struct search *search, struct aarch64_path *path)
{
	while (!path_run(&search->paths, &path->base))
		if (!path_next(&search->paths, &path->base))
			return false;
	return true;
}

/* --- From the pc to a return --- */

static void frame_of_return(const struct aarch64_path *path, struct arch_frame *out)
{
	const struct aarch64_content *lr = &path->now[AARCH64_LR - AARCH64_FIRST_SAVED];

	*out = (struct arch_frame){
		.sp = tracked_place(path->base.sp),
		.ra_in_lr = lr->holds == AARCH64_HOLDS_OWN,
		.ra = tracked_place(lr->from),
	};
	for (uint32_t reg = AARCH64_FIRST_SAVED; reg < AARCH64_LR; reg++) {
		const struct aarch64_content *content = &path->now[reg - AARCH64_FIRST_SAVED];

		if (content->holds == AARCH64_HOLDS_LOADED)
			out->saved[out->saved_count++] =
				(struct arch_saved){(int8_t)reg, tracked_place(content->from)};
	}
}

bool aarch64_frame_by_code(struct bytes text, size_t at, bool called, struct arch_frame *out)
{
	struct search search;
	struct aarch64_path path = aarch64_path_begin(at, called);

	search_begin(&search, text, PATH_TO_RETURN);
	if (!any_path_runs(&search, &path))
		return false;
	frame_of_return(&path, out);
	return true;
}

/* --- From an entry to the pc: functions that do not return --- */

/* The frame at the end of a path that began a function: all is told from SP at its beginning,
 * and is wanted from SP, or else FP, as they are now. */
static bool frame_of_entry(const struct aarch64_path *path, struct arch_frame *out)
{
	const struct aarch64_stored *lr = &path->stored[AARCH64_LR - AARCH64_FIRST_SAVED];
	bool by_sp = path->base.sp.base == TRACKED_SP;
	int64_t now = by_sp ? path->base.sp.offset : path->base.fp.offset;

	if ((!by_sp && path->base.fp.base != TRACKED_SP) || lr->to.base != TRACKED_SP ||
	    lr->content.holds != AARCH64_HOLDS_OWN)
		return false;
	*out = (struct arch_frame){
		.sp = {!by_sp, -now},
		.ra = {!by_sp, lr->to.offset - now},
	};
	for (uint32_t reg = AARCH64_FIRST_SAVED; reg < AARCH64_LR; reg++) {
		const struct aarch64_stored *stored = &path->stored[reg - AARCH64_FIRST_SAVED];

		if (stored->to.base == TRACKED_SP && stored->content.holds == AARCH64_HOLDS_OWN)
			out->saved[out->saved_count++] =
				(struct arch_saved){(int8_t)reg,
						    {!by_sp, stored->to.offset - now}};
	}
	return true;
}

/* NOP when there is none. */
static uint32_t code_before(struct bytes text, size_t at)
{
	struct reader r = reader_at(text, at - 4);
	uint32_t code = read_u32(&r);

	return at < 4 || reader_failed(&r) ? NOP : code;
}

static bool may_be_entry(struct bytes text, size_t at)
{
	uint32_t before = code_before(text, at);

	return at == 0 || before == NOP || aarch64_may_end_function(before);
}

static bool runs_to(struct bytes text, size_t entry, size_t at, struct arch_frame *out)
{
	struct search search;
	struct aarch64_path path = aarch64_path_begin(entry, false);

	search_begin(&search, text, at);
	return any_path_runs(&search, &path) && frame_of_entry(&path, out);
}

bool aarch64_frame_by_entry(struct bytes text, size_t at, bool called, size_t *entry,
			    struct arch_frame *out)
{
	(void)called;
	while (*entry >= 4 && at <= text.len && at - *entry < LOOK_BACK_MAX) {
		*entry -= 4;
		if (may_be_entry(text, *entry) && runs_to(text, *entry, at, out))
			return true;
	}
	return false;
}

bool aarch64_is_after_call(struct bytes text, size_t at)
{
	return aarch64_is_call(code_before(text, at));
}
