#include "arch/aarch64_path.h"

enum { FP = 29, SP = 31 };

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

static struct tracked *tracked_of(struct aarch64_path *path, uint32_t reg)
{
	return reg == SP ? &path->base.sp : reg == FP ? &path->base.fp : NULL;
}

static bool is_saved(uint32_t reg)
{
	return reg >= AARCH64_FIRST_SAVED && reg <= AARCH64_LR;
}

/* NULL for other registers than those that are saved. */
static struct aarch64_content *content_of(struct aarch64_path *path, uint32_t reg)
{
	return is_saved(reg) ? &path->now[reg - AARCH64_FIRST_SAVED] : NULL;
}

static struct aarch64_stored *stored_of(struct aarch64_path *path, uint32_t reg)
{
	return is_saved(reg) ? &path->stored[reg - AARCH64_FIRST_SAVED] : NULL;
}

static void raise_top(struct aarch64_path *path)
{
	/* There is a path. NOLINTNEXTLINE(clang-analyzer-core.*) */
	if (path->base.sp.base != path->top.base || path->base.sp.offset > path->top.offset)
		path->top = path->base.sp;
}

/* add, sub with an immediate; `mov` to and from SP is one. */
static enum path_step add_immediate(struct aarch64_path *path, uint32_t code)
{
	struct tracked *to = tracked_of(path, field(code, 0, 5));
	const struct tracked *from = tracked_of(path, field(code, 5, 5));
	int64_t distance = (int64_t)field(code, 10, 12) << (field(code, 22, 1) ? 12 : 0);

	if (to && from)
		*to = tracked_moved(*from, field(code, 30, 1) ? -distance : distance);
	else if (to)
		to->base = TRACKED_NONE;
	raise_top(path);
	return PATH_ON;
}

/* Alignment, frames of variable size. What sets flags writes no SP: 31 is the zero register
 * there. */
static enum path_step compute(struct aarch64_path *path, uint32_t code)
{
	struct tracked *to = tracked_of(path, field(code, 0, 5));

	if (to && !(to == &path->base.sp && field(code, 29, 1)))
		to->base = TRACKED_NONE;
	return PATH_ON;
}

/* mov between registers: 31 is no SP here. x30 from elsewhere: nobody knows. */
static enum path_step move_register(struct aarch64_path *path, uint32_t code)
{
	uint32_t to = field(code, 0, 5);

	if (to == FP)
		path->base.fp.base = TRACKED_NONE;
	return to == AARCH64_LR ? PATH_ASTRAY : PATH_ON;
}

/* --- Loads and stores --- */

/* What was written on the path, by a prologue after the pc: where the register itself was
 * stored, and all that lies below the highest SP (the frame of another function, which a jump
 * went into). */
static bool is_written_on_path(const struct aarch64_path *path,
			       const struct aarch64_stored *stored, struct tracked at)
{
	return (at.base == path->top.base && at.offset < path->top.offset) ||
	       (at.base == stored->to.base && at.offset == stored->to.offset);
}

static void load(struct aarch64_path *path, uint32_t reg, struct tracked from)
{
	struct aarch64_content *now = content_of(path, reg);
	const struct aarch64_stored *stored = stored_of(path, reg);

	if (!now)
		return;
	if (from.base == TRACKED_NONE)
		now->holds = AARCH64_HOLDS_UNKNOWN;
	else if (is_written_on_path(path, stored, from))
		*now = stored->content;
	else
		*now = (struct aarch64_content){AARCH64_HOLDS_LOADED, from};
	if (reg == FP)
		path->base.fp = (struct tracked){now->holds == AARCH64_HOLDS_OWN ? TRACKED_FP
										 : TRACKED_NONE,
						 0};
}

/* After a call nobody saves LR: what does is the beginning of the next function, behind a call
 * that does not return. */
static void store(struct aarch64_path *path, uint32_t reg, struct tracked to)
{
	const struct aarch64_content *now = content_of(path, reg);

	if (reg == AARCH64_LR && now->holds == AARCH64_HOLDS_UNKNOWN)
		path->strayed = true;
	if (now)
		*stored_of(path, reg) = (struct aarch64_stored){to, *now};
}

/* The address of an access and what it leaves in its base register; `index` as the instructions
 * have it: 1 the offset is added after, 3 before, else not at all. */
static struct tracked access(struct aarch64_path *path, uint32_t base_reg, uint32_t index,
			     int64_t offset)
{
	struct tracked *base = tracked_of(path, base_reg);
	struct tracked address = {TRACKED_NONE, 0};

	if (!base)
		return address;
	address = index == 1 ? *base : tracked_moved(*base, offset);
	if (index == 1 || index == 3)
		*base = tracked_moved(*base, offset);
	return address;
}

/* ldp, stp of general and of vector registers. What is loaded is read before SP is moved. */
static enum path_step pair(struct aarch64_path *path, uint32_t code)
{
	uint32_t size = field(code, 30, 2), vector = field(code, 26, 1);
	int64_t scale = vector ? INT64_C(4) << size : size == 2 ? 8 : 4;
	struct tracked address = access(path, field(code, 5, 5), field(code, 23, 2),
					signed_field(code, 15, 7) * scale);

	if (!vector && size == 2 && field(code, 22, 1)) {
		load(path, field(code, 0, 5), address);
		load(path, field(code, 10, 5), tracked_moved(address, 8));
	} else if (!vector && size == 2) {
		store(path, field(code, 0, 5), address);
		store(path, field(code, 10, 5), tracked_moved(address, 8));
	}
	raise_top(path);
	return PATH_ON;
}

/* ldr, str: size 3, no vector and opc 1 is a load of an x register, opc 0 a store. */
static enum path_step single(struct aarch64_path *path, uint32_t code, struct tracked address)
{
	bool whole = field(code, 30, 2) == 3 && !field(code, 26, 1);

	if (whole && field(code, 22, 2) == 1)
		load(path, field(code, 0, 5), address);
	else if (whole && field(code, 22, 2) == 0)
		store(path, field(code, 0, 5), address);
	raise_top(path);
	return PATH_ON;
}

static enum path_step single_indexed(struct aarch64_path *path, uint32_t code)
{
	struct tracked address =
		access(path, field(code, 5, 5), field(code, 10, 2), signed_field(code, 12, 9));

	return single(path, code, address);
}

static enum path_step single_offset(struct aarch64_path *path, uint32_t code)
{
	struct tracked address = access(path, field(code, 5, 5), 2,
					(int64_t)field(code, 10, 12) << field(code, 30, 2));

	return single(path, code, address);
}

/* --- Branches, calls and returns --- */

static enum path_step branch_to(struct aarch64_path *path, int64_t words, enum path_step step)
{
	path->base.target = path->base.at - 4 + (size_t)(4 * words);
	return step;
}

static enum path_step branch(struct aarch64_path *path, uint32_t code)
{
	return branch_to(path, signed_field(code, 0, 26), PATH_JUMP);
}

static enum path_step branch_if_19(struct aarch64_path *path, uint32_t code)
{
	return branch_to(path, signed_field(code, 5, 19), PATH_BRANCH);
}

static enum path_step branch_if_14(struct aarch64_path *path, uint32_t code)
{
	return branch_to(path, signed_field(code, 5, 14), PATH_BRANCH);
}

static enum path_step call(struct aarch64_path *path, uint32_t code)
{
	(void)code;
	content_of(path, AARCH64_LR)->holds = AARCH64_HOLDS_UNKNOWN;
	return PATH_ON;
}

static enum path_step go_back(struct aarch64_path *path, uint32_t code)
{
	(void)code;
	if (content_of(path, AARCH64_LR)->holds == AARCH64_HOLDS_UNKNOWN ||
	    path->base.sp.base == TRACKED_NONE ||
	    (path->base.sp.base == TRACKED_SP && path->base.sp.offset < 0))
		return PATH_ASTRAY;
	return PATH_RETURN;
}

static enum path_step go_astray(struct aarch64_path *path, uint32_t code)
{
	(void)path, (void)code;
	return PATH_ASTRAY;
}

/* --- All instructions --- */

/* clang-format off */
static const struct instruction {
	uint32_t mask, value;
	enum path_step (*run)(struct aarch64_path *path, uint32_t code);
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

struct aarch64_path aarch64_path_begin(size_t at, bool called)
{
	struct aarch64_path path = {
		.base = {.at = at, .sp = {TRACKED_SP, 0}, .fp = {TRACKED_FP, 0}},
		.top = {TRACKED_SP, 0},
	};

	if (called)
		content_of(&path, AARCH64_LR)->holds = AARCH64_HOLDS_UNKNOWN;
	for (size_t i = 0; i < AARCH64_SAVED_COUNT; i++)
		path.stored[i].content = path.now[i];
	return path;
}

static enum path_step path_step(struct bytes text, struct path *base)
{
	struct aarch64_path *path = (struct aarch64_path *)base;
	struct reader r = reader_at(text, base->at);
	uint32_t code = read_u32(&r);
	const struct instruction *instruction = instruction_of(code);
	enum path_step step = PATH_ON;

	if (reader_failed(&r) || base->at % 4)
		return PATH_ASTRAY;
	base->at += 4;
	if (instruction)
		step = instruction->run(path, code);
	return path->strayed ? PATH_ASTRAY : step;
}

const struct path_rules aarch64_path_rules = {sizeof(struct aarch64_path), path_step};

bool aarch64_is_call(uint32_t code)
{
	const struct instruction *instruction = instruction_of(code);

	return instruction && instruction->run == call;
}

bool aarch64_may_end_function(uint32_t code)
{
	const struct instruction *i = instruction_of(code);

	return i &&
	       (i->run == go_back || i->run == go_astray || i->run == branch || i->run == call);
}
