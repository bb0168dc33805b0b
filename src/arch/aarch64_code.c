/*
 * arch/aarch64_code: where a function's caller is, told by its own code.
 *
 * Code without call frame information (musl, assembler) still gives its frame back before it returns.
 * So the code is run forward from the pc to `ret`, with nothing but SP, the frame pointer and where
 * registers are loaded from being followed: what has become of SP then is the caller's, and x30 and
 * the callee-saved registers come from where they were loaded. Calls leave all that as it was, and
 * every way to a return gives back the same frame, so that any will do: of a conditional branch first
 * the way straight on, then the other one if that leads nowhere (into a call that does not return).
 *
 * Functions that never return (the outermost ones of libcs) are run from what may be their beginning to
 * the pc instead.
 *
 * Instructions: Arm Architecture Reference Manual, C4.1 and C6.2. What is not recognized has no part
 * in this: it does not touch SP, and if it loads a register, the old value is loaded later.
 */
#include "arch/aarch64_code.h"

enum { FP = 29, LR = 30, SP = 31 };

#define NOP 0xd503201f
#define NOWHERE SIZE_MAX

/* Of one search: code that is run in all, branches, and branches whose other way is still open. Most
 * functions need a few dozen instructions; the worst one of musl a few hundred. */
#define INSTRUCTIONS_MAX 4096
#define INSTRUCTIONS_FROM_ENTRY_MAX 512
/* How far back the beginning of a function is looked for, in bytes. */
#define LOOK_BACK_MAX 2048
#define BRANCHES_MAX 128
#define OPEN_MAX 16

/* What is known of SP or FP: as it is at the pc, plus an offset. */
enum base { BASE_NONE, BASE_SP, BASE_FP };

struct value {
	enum base base;
	int64_t offset;
};

/* What a register holds: what it does at the pc, what lies somewhere in the stack, or nobody knows. */
enum holds { HOLDS_OWN, HOLDS_LOADED, HOLDS_UNKNOWN };

struct content {
	enum holds holds;
	struct value from; /* HOLDS_LOADED */
};

/* Where a register was stored last on the way, and what it held then. */
struct stored {
	struct value to; /* BASE_NONE: not at all, or nobody knows where */
	struct content content;
};

#define SAVED_COUNT (SP - ARCH_AARCH64_FIRST_SAVED)

/* One way through the code. */
struct way {
	size_t at;
	struct value sp, fp;
	struct value top; /* the highest that SP has been */
	struct content now[SAVED_COUNT];
	struct stored stored[SAVED_COUNT];
	bool strayed; /* into another function */
};

struct search {
	struct bytes text;
	unsigned instructions_left;
	size_t seen[BRANCHES_MAX];
	size_t seen_count;
	struct way open[OPEN_MAX];
	size_t open_count;
};

enum went { WENT_ON, WENT_BACK, WENT_ASTRAY };

static uint32_t field(uint32_t code, unsigned low, unsigned width)
{
	return code >> low & ((UINT32_C(1) << width) - 1);
}

static int64_t signed_field(uint32_t code, unsigned low, unsigned width)
{
	int64_t value = field(code, low, width);

	return value < INT64_C(1) << (width - 1) ? value : value - (INT64_C(1) << width);
}

/* --- SP and FP --- */

static struct value *tracked(struct way *way, uint32_t reg)
{
	return reg == SP ? &way->sp : reg == FP ? &way->fp : NULL;
}

static bool is_saved(uint32_t reg)
{
	return reg >= ARCH_AARCH64_FIRST_SAVED && reg <= LR;
}

/* NULL for other registers than those that are saved. */
static struct content *content_of(struct way *way, uint32_t reg)
{
	return is_saved(reg) ? &way->now[reg - ARCH_AARCH64_FIRST_SAVED] : NULL;
}

static struct stored *stored_of(struct way *way, uint32_t reg)
{
	return is_saved(reg) ? &way->stored[reg - ARCH_AARCH64_FIRST_SAVED] : NULL;
}

static struct value moved(struct value value, int64_t distance)
{
	value.offset += distance;
	return value;
}

static void raise_top(struct way *way)
{
	/* There is a way. NOLINTNEXTLINE(clang-analyzer-core.*) */
	if (way->sp.base != way->top.base || way->sp.offset > way->top.offset)
		way->top = way->sp;
}

/* add, sub with an immediate; `mov` to and from SP is one. */
static enum went add_immediate(struct search *search, struct way *way, uint32_t code)
{
	struct value *to = tracked(way, field(code, 0, 5));
	const struct value *from = tracked(way, field(code, 5, 5));
	int64_t distance = (int64_t)field(code, 10, 12) << (field(code, 22, 1) ? 12 : 0);

	(void)search;
	if (to && from)
		*to = moved(*from, field(code, 30, 1) ? -distance : distance);
	else if (to)
		to->base = BASE_NONE;
	raise_top(way);
	return WENT_ON;
}

/* Alignment, frames of variable size. What sets flags writes no SP: 31 is the zero register there. */
static enum went compute(struct search *search, struct way *way, uint32_t code)
{
	struct value *to = tracked(way, field(code, 0, 5));

	(void)search;
	if (to && !(to == &way->sp && field(code, 29, 1)))
		to->base = BASE_NONE;
	return WENT_ON;
}

/* mov between registers: 31 is no SP here. x30 from elsewhere: nobody knows. */
static enum went move_register(struct search *search, struct way *way, uint32_t code)
{
	uint32_t to = field(code, 0, 5);

	(void)search;
	if (to == FP)
		way->fp.base = BASE_NONE;
	return to == LR ? WENT_ASTRAY : WENT_ON;
}

/* --- Loads and stores --- */

/* What was written on the way, by a prologue after the pc: where the register itself was stored, and all
 * that lies below the highest SP (the frame of another function, which a jump went into). */
static bool is_written_on_way(const struct way *way, const struct stored *stored,
			      struct value at)
{
	return (at.base == way->top.base && at.offset < way->top.offset) ||
	       (at.base == stored->to.base && at.offset == stored->to.offset);
}

static void load(struct way *way, uint32_t reg, struct value from)
{
	struct content *now = content_of(way, reg);
	const struct stored *stored = stored_of(way, reg);

	if (!now)
		return;
	if (from.base == BASE_NONE)
		now->holds = HOLDS_UNKNOWN;
	else if (is_written_on_way(way, stored, from))
		*now = stored->content;
	else
		*now = (struct content){HOLDS_LOADED, from};
	if (reg == FP)
		way->fp = (struct value){now->holds == HOLDS_OWN ? BASE_FP : BASE_NONE, 0};
}

/* After a call nobody saves LR: what does is the beginning of the next function, behind a call that
 * does not return. */
static void store(struct way *way, uint32_t reg, struct value to)
{
	const struct content *now = content_of(way, reg);

	if (reg == LR && now->holds == HOLDS_UNKNOWN)
		way->strayed = true;
	if (now)
		*stored_of(way, reg) = (struct stored){to, *now};
}

/* The address of an access and what it leaves in its base register; `index` as the instructions have
 * it: 1 the offset is added after, 3 before, else not at all. */
static struct value access(struct way *way, uint32_t base_reg, uint32_t index, int64_t offset)
{
	struct value *base = tracked(way, base_reg);
	struct value address = {BASE_NONE, 0};

	if (!base)
		return address;
	address = index == 1 ? *base : moved(*base, offset);
	if (index == 1 || index == 3)
		*base = moved(*base, offset);
	return address;
}

/* ldp, stp of general and of vector registers. What is loaded is read before SP is moved. */
static enum went pair(struct search *search, struct way *way, uint32_t code)
{
	uint32_t size = field(code, 30, 2), vector = field(code, 26, 1);
	int64_t scale = vector ? INT64_C(4) << size : size == 2 ? 8 : 4;
	struct value address = access(way, field(code, 5, 5), field(code, 23, 2),
				      signed_field(code, 15, 7) * scale);

	(void)search;
	if (!vector && size == 2 && field(code, 22, 1)) {
		load(way, field(code, 0, 5), address);
		load(way, field(code, 10, 5), moved(address, 8));
	} else if (!vector && size == 2) {
		store(way, field(code, 0, 5), address);
		store(way, field(code, 10, 5), moved(address, 8));
	}
	raise_top(way);
	return WENT_ON;
}

/* ldr, str: size 3, no vector and opc 1 is a load of an x register, opc 0 a store. */
static enum went single(struct way *way, uint32_t code, struct value address)
{
	bool whole = field(code, 30, 2) == 3 && !field(code, 26, 1);

	if (whole && field(code, 22, 2) == 1)
		load(way, field(code, 0, 5), address);
	else if (whole && field(code, 22, 2) == 0)
		store(way, field(code, 0, 5), address);
	raise_top(way);
	return WENT_ON;
}

static enum went single_indexed(struct search *search, struct way *way, uint32_t code)
{
	struct value address =
		access(way, field(code, 5, 5), field(code, 10, 2), signed_field(code, 12, 9));

	(void)search;
	return single(way, code, address);
}

static enum went single_offset(struct search *search, struct way *way, uint32_t code)
{
	struct value address = access(way, field(code, 5, 5), 2,
				      (int64_t)field(code, 10, 12) << field(code, 30, 2));

	(void)search;
	return single(way, code, address);
}

/* --- Branches --- */

/* False when this branch was come by before: the way is the same from there. */
static bool is_new(struct search *search, size_t at)
{
	for (size_t i = 0; i < search->seen_count; i++)
		if (search->seen[i] == at)
			return false;
	if (search->seen_count == BRANCHES_MAX)
		return false;
	search->seen[search->seen_count++] = at;
	return true;
}

/* `at` is behind the branch. Outside the text it leads nowhere: no code can be read there. */
static size_t target(const struct way *way, int64_t words)
{
	return way->at - 4 + (size_t)(4 * words);
}

static enum went branch(struct search *search, struct way *way, uint32_t code)
{
	if (!is_new(search, way->at))
		return WENT_ASTRAY;
	way->at = target(way, signed_field(code, 0, 26));
	return WENT_ON;
}

static enum went branch_if(struct search *search, struct way *way, int64_t words)
{
	if (!is_new(search, way->at))
		return WENT_ASTRAY;
	if (search->open_count < OPEN_MAX) {
		struct way *other = &search->open[search->open_count++];

		*other = *way;
		other->at = target(way, words);
	}
	return WENT_ON;
}

static enum went branch_if_19(struct search *search, struct way *way, uint32_t code)
{
	return branch_if(search, way, signed_field(code, 5, 19));
}

static enum went branch_if_14(struct search *search, struct way *way, uint32_t code)
{
	return branch_if(search, way, signed_field(code, 5, 14));
}

static enum went call(struct search *search, struct way *way, uint32_t code)
{
	(void)search, (void)code;
	content_of(way, LR)->holds = HOLDS_UNKNOWN;
	return WENT_ON;
}

static enum went go_back(struct search *search, struct way *way, uint32_t code)
{
	(void)search, (void)code;
	if (content_of(way, LR)->holds == HOLDS_UNKNOWN || way->sp.base == BASE_NONE ||
	    (way->sp.base == BASE_SP && way->sp.offset < 0))
		return WENT_ASTRAY;
	return WENT_BACK;
}

static enum went go_astray(struct search *search, struct way *way, uint32_t code)
{
	(void)search, (void)way, (void)code;
	return WENT_ASTRAY;
}

/* --- The run --- */

/* clang-format off */
static const struct instruction {
	uint32_t mask, value;
	enum went (*run)(struct search *search, struct way *way, uint32_t code);
} instructions[] = {
	{0x3a000000, 0x28000000, pair},
	{0x3b000000, 0x39000000, single_offset},
	{0x3b200000, 0x38000000, single_indexed},
	{0xbf800000, 0x91000000, add_immediate},
	{0xffffffff, 0xd65f03c0, go_back},       /* ret */
	{0xfffffbff, 0xd65f0bff, go_back},       /* retaa, retab */
	{0xfc000000, 0x94000000, call},          /* bl */
	{0xfffffc1f, 0xd63f0000, call},          /* blr */
	{0xfefff800, 0xd63f0800, call},          /* blraa and its kin */
	{0xfc000000, 0x14000000, branch},
	{0xff000000, 0x54000000, branch_if_19},  /* b.cond */
	{0x7e000000, 0x34000000, branch_if_19},  /* cbz, cbnz */
	{0x7e000000, 0x36000000, branch_if_14},  /* tbz, tbnz */
	{0xfe000000, 0xd6000000, go_astray},     /* br, eret ...: a table of targets, or a tail call */
	{0xffff0000, 0x00000000, go_astray},     /* udf, padding */
	{0xffe0001f, 0xd4200000, go_astray},     /* brk */
	{0xffe0ffe0, 0xaa0003e0, move_register},
	{0x1f800000, 0x12000000, compute},       /* and, orr, eor with an immediate */
	{0x1fe00000, 0x0b200000, compute},       /* add, sub with an extended register */
};
/* clang-format on */

static const struct instruction *instruction_of(uint32_t code)
{
	for (size_t i = 0; i < sizeof instructions / sizeof instructions[0]; i++)
		if ((code & instructions[i].mask) == instructions[i].value)
			return &instructions[i];
	return NULL;
}

/* NOP when there is none. */
static uint32_t code_before(struct bytes text, size_t at)
{
	struct reader r = reader_at(text, at - 4);
	uint32_t code = read_u32(&r);

	return at < 4 || reader_failed(&r) ? NOP : code;
}

static const struct instruction *instruction_before(struct bytes text, size_t at)
{
	return instruction_of(code_before(text, at));
}

static enum went run_one(struct search *search, struct way *way)
{
	struct reader r = reader_at(search->text, way->at);
	uint32_t code = read_u32(&r);
	const struct instruction *instruction;

	if (reader_failed(&r) || way->at % 4 || search->instructions_left == 0)
		return WENT_ASTRAY;
	search->instructions_left--;
	way->at += 4;
	instruction = instruction_of(code);
	return instruction ? instruction->run(search, way, code) : WENT_ON;
}

/* Ends at a return, or at `goal` (NOWHERE: at none). */
static bool run(struct search *search, struct way *way, size_t goal)
{
	enum went went = WENT_ON;

	while (went == WENT_ON && !way->strayed && way->at != goal)
		went = run_one(search, way);
	return goal == NOWHERE ? went == WENT_BACK : way->at == goal && !way->strayed;
}

static bool next_way(struct search *search, struct way *way)
{
	if (search->open_count == 0)
		return false;
	*way = search->open[--search->open_count];
	return true;
}

/* --- To the return --- */

static struct arch_place place_of(struct value value)
{
	return (struct arch_place){value.base == BASE_FP, value.offset};
}

static void frame_of_way(struct way *way, struct arch_frame *out)
{
	const struct content *lr = content_of(way, LR);

	*out = (struct arch_frame){
		.sp = place_of(way->sp),
		.ra_in_lr = lr->holds == HOLDS_OWN,
		.ra = place_of(lr->from),
	};
	for (uint32_t reg = ARCH_AARCH64_FIRST_SAVED; reg < LR; reg++) {
		const struct content *content = content_of(way, reg);

		if (content->holds == HOLDS_LOADED)
			out->saved[out->saved_count++] =
				(struct arch_saved){(int8_t)reg, place_of(content->from)};
	}
}

static struct way way_begin(size_t at, bool called)
{
	struct way way = {
		.at = at,
		.sp = {BASE_SP, 0},
		.fp = {BASE_FP, 0},
		.top = {BASE_SP, 0},
	};

	if (called)
		content_of(&way, LR)->holds = HOLDS_UNKNOWN;
	for (size_t i = 0; i < SAVED_COUNT; i++)
		way.stored[i].content = way.now[i];
	return way;
}

bool aarch64_frame_by_code(struct bytes text, size_t at, bool called, struct arch_frame *out)
{
	struct search search = {.text = text, .instructions_left = INSTRUCTIONS_MAX};
	struct way way = way_begin(at, called);

	while (!run(&search, &way, NOWHERE))
		if (!next_way(&search, &way))
			return false;
	frame_of_way(&way, out);
	return true;
}

/* --- From the beginning: functions that do not return --- */

/* The frame where a way has come to that began a function: all is told from SP there, and is wanted from
 * SP, or else FP, as they are now. */
static bool frame_of_entry(struct way *way, struct arch_frame *out)
{
	const struct stored *lr = stored_of(way, LR);
	bool by_sp = way->sp.base == BASE_SP;
	int64_t now = by_sp ? way->sp.offset : way->fp.offset;

	if ((!by_sp && way->fp.base != BASE_SP) || lr->to.base != BASE_SP ||
	    lr->content.holds != HOLDS_OWN)
		return false;
	*out = (struct arch_frame){
		.sp = {!by_sp, -now},
		.ra = {!by_sp, lr->to.offset - now},
	};
	for (uint32_t reg = ARCH_AARCH64_FIRST_SAVED; reg < LR; reg++) {
		const struct stored *stored = stored_of(way, reg);

		if (stored->to.base == BASE_SP && stored->content.holds == HOLDS_OWN)
			out->saved[out->saved_count++] =
				(struct arch_saved){(int8_t)reg,
						    {!by_sp, stored->to.offset - now}};
	}
	return true;
}

/* Whether the instruction before can be the last of a function: a jump, a call that does not return,
 * padding. */
static bool may_be_entry(struct bytes text, size_t at)
{
	const struct instruction *before = instruction_before(text, at);

	return at == 0 || code_before(text, at) == NOP ||
	       (before && (before->run == go_back || before->run == go_astray ||
			   before->run == branch || before->run == call));
}

bool aarch64_frame_by_entry(struct bytes text, size_t at, bool called, size_t *entry,
			    struct arch_frame *out)
{
	(void)called;
	while (*entry >= 4 && at <= text.len && at - *entry < LOOK_BACK_MAX) {
		struct search search = {.text = text,
					.instructions_left = INSTRUCTIONS_FROM_ENTRY_MAX};
		struct way way;
		bool arrived;

		*entry -= 4;
		if (!may_be_entry(text, *entry))
			continue;
		way = way_begin(*entry, false);
		do {
			arrived = run(&search, &way, at);
		} while (!arrived && next_way(&search, &way));
		if (arrived && frame_of_entry(&way, out))
			return true;
	}
	return false;
}

bool aarch64_is_after_call(struct bytes text, size_t at)
{
	const struct instruction *before = instruction_before(text, at);

	return before && before->run == call;
}
