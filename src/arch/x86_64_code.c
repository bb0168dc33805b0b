/*
 * arch/x86_64_code: where a function's caller is, told by its own code.
 *
 * Code without call frame information (musl, assembler) still gives its frame back before it
 * returns. So the code is run forward from the pc to `ret`, with nothing but SP, the frame
 * pointer and where registers are loaded from being followed (arch/x86_64_path): what SP points
 * at then is the return address. Calls leave all that as it was, and every path to a return
 * gives back the same frame, so that any will do: of a conditional jump first the path straight
 * on, then the other one if that leads nowhere.
 *
 * A function that never returns (the first one of a thread, a loop without an end) has no such
 * path. It is run from its beginning to the pc instead, with what is pushed being followed.
 * Where it begins nobody says: every place before the pc that looks like a beginning is tried,
 * the nearest first, and whoever asks must see whether a return address is there.
 *
 * The path straight on may lead past a call that does not return into the next function, whose
 * return gives back its own frame only: a return address right at SP. The psABI (3.2.2) tells
 * such a frame: SP is a multiple of 16 at every call, so that at a return to the pc, return
 * addresses are 8 off. What breaks that rule is doubtful, and counts only if no other path is
 * better.
 */
#include "arch/x86_64_code.h"

#include "arch/x86_64_path.h"

/* Of one search: instructions that are run in all (to a return, and from a beginning), and
 * jumps whose other path is still open. */
#define INSTRUCTIONS_MAX 1024
#define INSTRUCTIONS_FROM_ENTRY_MAX 256
#define OPEN_MAX 32
/* How far before the pc the beginning of its function is looked for. */
#define LOOK_BACK_MAX 2048

struct search {
	struct path_search paths;
	struct x86_64_path open[OPEN_MAX];
};

static void search_begin(struct search *search, struct bytes text, size_t goal)
{
	search->paths = (struct path_search){
		.rules = &x86_64_path_rules,
		.text = text,
		.goal = goal,
		.instructions_left =
			goal == PATH_TO_RETURN ? INSTRUCTIONS_MAX : INSTRUCTIONS_FROM_ENTRY_MAX,
		.open = (uint8_t *)search->open,
		.open_max = OPEN_MAX,
	};
}

/* --- The frame at the end of a path --- */

static bool is_aligned(const struct arch_place *ra)
{
	return ra->from_fp || (uint64_t)ra->offset % 16 == 8;
}

/* DWARF numbers of rbx and r12 to r15 are the same. */
static void add_away(const struct x86_64_path *path, struct tracked origin,
		     struct arch_frame *out)
{
	for (unsigned reg = 0; reg <= X86_R15; reg++) {
		struct tracked where = path->where[reg];

		if (!(path->away >> reg & 1) || where.base == TRACKED_NONE)
			continue;
		if (origin.base != TRACKED_NONE)
			where = (struct tracked){origin.base, where.offset + origin.offset};
		out->saved[out->saved_count++] =
			(struct arch_saved){(int8_t)(reg == X86_RBP ? 6 : reg),
					    tracked_place(where)};
	}
}

static void frame_of_return(const struct x86_64_path *path, struct arch_frame *out)
{
	*out = (struct arch_frame){
		.sp = tracked_place(tracked_moved(path->base.sp, 8 + (int64_t)path->released)),
		.ra = tracked_place(path->base.sp),
		.by_jump = path->by_jump,
	};
	add_away(path, (struct tracked){TRACKED_NONE, 0}, out);
}

/* The path began with SP at the return address. */
static bool frame_of_entry(const struct x86_64_path *path, struct arch_frame *out)
{
	struct tracked origin = {TRACKED_SP, -path->base.sp.offset};

	if (path->base.sp.base != TRACKED_SP && path->base.fp.base == TRACKED_SP)
		origin = (struct tracked){TRACKED_FP, -path->base.fp.offset};
	else if (path->base.sp.base != TRACKED_SP || path->base.sp.offset > 0)
		return false;
	*out = (struct arch_frame){
		.sp = tracked_place(tracked_moved(origin, 8)),
		.ra = tracked_place(origin),
	};
	add_away(path, origin, out);
	return true;
}

/* --- From the pc to a return --- */

bool x86_64_frame_by_code(struct bytes text, size_t at, bool called, struct arch_frame *out)
{
	struct search search;
	struct x86_64_path path = x86_64_path_begin(at, false);
	struct arch_frame frame;
	bool found = false;

	search_begin(&search, text, PATH_TO_RETURN);
	do {
		if (!path_run(&search.paths, &path.base))
			continue;
		frame_of_return(&path, &frame);
		frame.doubtful = called && !is_aligned(&frame.ra);
		if (!found || !frame.doubtful)
			*out = frame;
		if (!frame.doubtful)
			return true;
		found = true;
	} while (path_next(&search.paths, &path.base));
	return found;
}

/* --- From an entry to the pc --- */

static bool runs_to(struct bytes text, size_t entry, size_t at, bool called,
		    struct arch_frame *out)
{
	struct search search;
	struct x86_64_path path = x86_64_path_begin(entry, true);

	search_begin(&search, text, at);
	do {
		if (path_run(&search.paths, &path.base))
			return frame_of_entry(&path, out) && (!called || is_aligned(&out->ra));
	} while (path_next(&search.paths, &path.base));
	return false;
}

/* Functions are aligned, or come after something that nothing goes on from. */
static bool may_be_entry(struct bytes text, size_t at)
{
	const uint8_t *code = text.at + at;

	return at % 16 == 0 || (at >= 1 && (code[-1] == 0xc3 || code[-1] == 0xf4)) ||
	       (at >= 2 && (code[-2] == 0xeb || (code[-2] == 0x0f && code[-1] == 0x0b))) ||
	       (at >= 5 && (code[-5] == 0xe8 || code[-5] == 0xe9));
}

bool x86_64_frame_by_entry(struct bytes text, size_t at, bool called, size_t *entry,
			   struct arch_frame *out)
{
	while (*entry > 0 && at <= text.len && at - *entry < LOOK_BACK_MAX) {
		--*entry;
		if (may_be_entry(text, *entry) && runs_to(text, *entry, at, called, out))
			return true;
	}
	return false;
}

/* --- Calls --- */

static bool is_call(const struct x86_64_instruction *i)
{
	return i->map == X86_MAP_ONE &&
	       (i->opcode == 0xe8 || (i->opcode == 0xff && x86_64_extension(i) == 2));
}

/* Instructions cannot be read backward: any that is a call and ends here. */
bool x86_64_is_after_call(struct bytes text, size_t at)
{
	struct x86_64_instruction i;

	if (at > text.len)
		return false;
	for (size_t size = 2; size <= 8 && size <= at; size++)
		if (x86_64_decode(text, at - size, &i) && i.size == size && is_call(&i))
			return true;
	return false;
}
