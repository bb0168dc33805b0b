#include "arch/x86_64_path.h"

typedef enum path_step run_fn(struct x86_64_path *path, const struct x86_64_instruction *i);

/* --- SP and the frame pointer --- */

static struct tracked *tracked_of(struct x86_64_path *path, uint8_t reg)
{
	return reg == X86_RSP ? &path->base.sp : reg == X86_RBP ? &path->base.fp : NULL;
}

static bool is_callee_saved(uint8_t reg)
{
	return reg == X86_RBX || reg == X86_RBP || (reg >= X86_R12 && reg <= X86_R15);
}

/* The register is written with a value that nobody knows. */
static void lose(struct x86_64_path *path, uint8_t reg)
{
	struct tracked *value = tracked_of(path, reg);

	if (value)
		value->base = TRACKED_NONE;
}

/* The address of an operand in memory, as far as it is on the stack. */
static struct tracked address(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	const struct tracked *base = tracked_of(path, i->base);

	if (!base || i->has_index)
		return (struct tracked){TRACKED_NONE, 0};
	return tracked_moved(*base, i->displacement);
}

static bool is_same(struct tracked a, struct tracked b)
{
	return a.base == b.base && a.offset == b.offset;
}

/* Whether a register is loaded from where it was saved on this path. */
static bool is_own(const struct x86_64_path *path, uint8_t reg, struct tracked from)
{
	if (path->from_entry)
		return (path->away >> reg & 1) && is_same(path->where[reg], from);
	return (path->kept >> reg & 1) && is_same(path->kept_at[reg], from);
}

/* What was saved on the path is as it was then. */
static void load_own(struct x86_64_path *path, uint8_t reg)
{
	uint32_t bit = UINT32_C(1) << reg;

	path->away &= ~bit;
	if (path->from_entry)
		return;
	path->away |= path->kept_away & bit;
	path->where[reg] = path->kept_where[reg];
}

static void load_callee_saved(struct x86_64_path *path, uint8_t reg, struct tracked from)
{
	if (is_own(path, reg, from)) {
		load_own(path, reg);
	} else if (!path->from_entry) {
		path->away |= UINT32_C(1) << reg;
		path->where[reg] = from;
	}
}

static void load(struct x86_64_path *path, uint8_t reg, struct tracked from)
{
	struct tracked *value = tracked_of(path, reg);

	if (value)
		value->base =
			reg == X86_RBP && is_own(path, reg, from) ? TRACKED_FP : TRACKED_NONE;
	if (value)
		value->offset = 0;
	if (is_callee_saved(reg))
		load_callee_saved(path, reg, from);
}

/* To the pc: of what is saved more than once, the first time has the caller's value. */
static void save(struct x86_64_path *path, uint8_t reg, struct tracked to)
{
	uint32_t bit = UINT32_C(1) << reg;

	if (!is_callee_saved(reg) || to.base == TRACKED_NONE)
		return;
	if (!path->from_entry) {
		path->kept |= bit;
		path->kept_at[reg] = to;
		path->kept_away = (path->kept_away & ~bit) | (path->away & bit);
		path->kept_where[reg] = path->where[reg];
	} else if (!(path->away & bit)) {
		path->away |= bit;
		path->where[reg] = to;
	}
}

static enum path_step push_register(struct x86_64_path *path,
				    const struct x86_64_instruction *i)
{
	path->base.sp = tracked_moved(path->base.sp, -8);
	save(path, i->rm, path->base.sp);
	return PATH_ON;
}

static enum path_step pop_register(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	struct tracked from = path->base.sp;

	path->base.sp = tracked_moved(path->base.sp, 8);
	load(path, i->rm, from);
	return PATH_ON;
}

static enum path_step push_other(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	(void)i;
	path->base.sp = tracked_moved(path->base.sp, -8);
	return PATH_ON;
}

static enum path_step pop_other(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	(void)i;
	path->base.sp = tracked_moved(path->base.sp, 8);
	return PATH_ON;
}

/* add, sub and their kin with an immediate; alignment loses SP. */
static enum path_step compute_immediate(struct x86_64_path *path,
					const struct x86_64_instruction *i)
{
	enum { ADD = 0, SUB = 5, CMP = 7 };
	struct tracked *to = i->is_memory ? NULL : tracked_of(path, i->rm);

	if (!to || x86_64_extension(i) == CMP)
		return PATH_ON;
	if (i->wide && x86_64_extension(i) == ADD)
		*to = tracked_moved(*to, i->immediate);
	else if (i->wide && x86_64_extension(i) == SUB)
		*to = tracked_moved(*to, -i->immediate);
	else
		to->base = TRACKED_NONE;
	return PATH_ON;
}

/* Frames of variable size. */
static enum path_step compute_to_rm(struct x86_64_path *path,
				    const struct x86_64_instruction *i)
{
	if (!i->is_memory)
		lose(path, i->rm);
	return PATH_ON;
}

static enum path_step compute_to_reg(struct x86_64_path *path,
				     const struct x86_64_instruction *i)
{
	lose(path, i->reg);
	return PATH_ON;
}

static enum path_step exchange(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	compute_to_reg(path, i);
	return compute_to_rm(path, i);
}

static enum path_step load_address(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	struct tracked *to = tracked_of(path, i->reg);

	if (to)
		*to = i->wide ? address(path, i) : (struct tracked){TRACKED_NONE, 0};
	return PATH_ON;
}

static void move(struct x86_64_path *path, uint8_t to_reg, uint8_t from_reg, bool wide)
{
	struct tracked *to = tracked_of(path, to_reg);
	const struct tracked *from = tracked_of(path, from_reg);

	if (to)
		*to = wide && from ? *from : (struct tracked){TRACKED_NONE, 0};
}

static enum path_step move_to_rm(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	if (!i->is_memory)
		move(path, i->rm, i->reg, i->wide);
	else if (i->wide)
		save(path, i->reg, address(path, i));
	return PATH_ON;
}

static enum path_step move_to_reg(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	if (!i->is_memory)
		move(path, i->reg, i->rm, i->wide);
	else if (i->wide)
		load(path, i->reg, address(path, i));
	else
		lose(path, i->reg);
	return PATH_ON;
}

static enum path_step leave(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	struct tracked from = path->base.fp;

	(void)i;
	path->base.sp = tracked_moved(from, 8);
	load(path, X86_RBP, from);
	return PATH_ON;
}

/* --- Jumps and returns --- */

static enum path_step jump_to(struct x86_64_path *path, const struct x86_64_instruction *i,
			      enum path_step step)
{
	path->base.target = path->base.at + (size_t)i->immediate;
	return step;
}

static enum path_step jump(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	return jump_to(path, i, PATH_JUMP);
}

static enum path_step jump_if(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	return jump_to(path, i, PATH_BRANCH);
}

static enum path_step go_astray(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	(void)path, (void)i;
	return PATH_ASTRAY;
}

/* `ret`, or a jump to another function that will return in this one's place. */
static enum path_step go_back(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	bool known = path->base.sp.base == TRACKED_FP ||
		     (path->base.sp.base == TRACKED_SP && path->base.sp.offset >= 0);

	path->by_jump = i->opcode == 0xff;
	path->released = (uint64_t)i->immediate & UINT16_MAX;
	return known && !path->from_entry ? PATH_RETURN : PATH_ASTRAY;
}

/* inc, dec, call, jmp, push. Jumps by a place that is relative to the pc are those of PLTs;
 * others choose from a table, or cannot be told from such. */
static enum path_step group_ff(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	enum { FAR_CALL = 3, JMP = 4, FAR_JMP = 5, PUSH = 6 };

	switch (x86_64_extension(i)) {
	case PUSH:
		return push_other(path, i);
	case JMP:
		return i->is_memory && i->rip_relative ? go_back(path, i) : PATH_ASTRAY;
	case FAR_CALL:
	case FAR_JMP:
		return PATH_ASTRAY;
	default:
		return PATH_ON;
	}
}

/* Zeros are no code, though they would be an addition. */
static enum path_step add_byte(struct x86_64_path *path, const struct x86_64_instruction *i)
{
	(void)path;
	return i->is_memory && i->reg == 0 && i->base == 0 ? PATH_ASTRAY : PATH_ON;
}

/* --- All instructions --- */

/* Opcodes from `first` to `last`. What is not here has no part in this: it does not touch SP,
 * and if it writes a register, the old value is loaded later. */
/* clang-format off */
static const struct instruction {
	uint8_t map, first, last;
	run_fn *run;
} instructions[] = {
	{X86_MAP_ONE, 0x50, 0x57, push_register},
	{X86_MAP_ONE, 0x58, 0x5f, pop_register},
	{X86_MAP_ONE, 0x68, 0x68, push_other},        /* an immediate */
	{X86_MAP_ONE, 0x6a, 0x6a, push_other},
	{X86_MAP_ONE, 0x9c, 0x9c, push_other},        /* the flags */
	{X86_MAP_ONE, 0x9d, 0x9d, pop_other},
	{X86_MAP_ONE, 0x8f, 0x8f, pop_other},         /* to memory */
	{X86_MAP_ONE, 0x81, 0x81, compute_immediate},
	{X86_MAP_ONE, 0x83, 0x83, compute_immediate},
	{X86_MAP_ONE, 0x8d, 0x8d, load_address},
	{X86_MAP_ONE, 0x89, 0x89, move_to_rm},
	{X86_MAP_ONE, 0x8b, 0x8b, move_to_reg},
	{X86_MAP_ONE, 0xc9, 0xc9, leave},
	{X86_MAP_ONE, 0xc2, 0xc3, go_back},
	{X86_MAP_ONE, 0xe9, 0xe9, jump},
	{X86_MAP_ONE, 0xeb, 0xeb, jump},
	{X86_MAP_ONE, 0x70, 0x7f, jump_if},
	{X86_MAP_ONE, 0xe0, 0xe3, jump_if},           /* loop, jrcxz */
	{X86_MAP_0F,  0x80, 0x8f, jump_if},
	{X86_MAP_ONE, 0xff, 0xff, group_ff},
	{X86_MAP_ONE, 0x00, 0x00, add_byte},
	{X86_MAP_ONE, 0x01, 0x01, compute_to_rm},     /* add */
	{X86_MAP_ONE, 0x03, 0x03, compute_to_reg},
	{X86_MAP_ONE, 0x21, 0x21, compute_to_rm},     /* and */
	{X86_MAP_ONE, 0x23, 0x23, compute_to_reg},
	{X86_MAP_ONE, 0x29, 0x29, compute_to_rm},     /* sub */
	{X86_MAP_ONE, 0x2b, 0x2b, compute_to_reg},
	{X86_MAP_ONE, 0x31, 0x31, compute_to_rm},     /* xor */
	{X86_MAP_ONE, 0x33, 0x33, compute_to_reg},
	{X86_MAP_0F,  0x40, 0x4f, compute_to_reg},    /* cmov */
	{X86_MAP_ONE, 0x87, 0x87, exchange},
	{X86_MAP_ONE, 0xc8, 0xc8, go_astray},         /* enter */
	{X86_MAP_ONE, 0xca, 0xcc, go_astray},         /* far returns, int3 */
	{X86_MAP_ONE, 0xcf, 0xcf, go_astray},         /* iret */
	{X86_MAP_ONE, 0xf4, 0xf4, go_astray},         /* hlt */
	{X86_MAP_0F,  0x0b, 0x0b, go_astray},         /* ud2 */
	{X86_MAP_0F,  0xb9, 0xb9, go_astray},         /* ud1 */
	{X86_MAP_0F,  0xff, 0xff, go_astray},         /* ud0 */
	{X86_MAP_0F,  0xa0, 0xa0, push_other},        /* %fs, %gs */
	{X86_MAP_0F,  0xa8, 0xa8, push_other},
	{X86_MAP_0F,  0xa1, 0xa1, pop_other},
	{X86_MAP_0F,  0xa9, 0xa9, pop_other},
};
/* clang-format on */

static run_fn *run_of(const struct x86_64_instruction *i)
{
	for (size_t at = 0; at < sizeof instructions / sizeof instructions[0]; at++) {
		const struct instruction *known = &instructions[at];

		if (i->map == known->map && i->opcode >= known->first &&
		    i->opcode <= known->last)
			return known->run;
	}
	return NULL;
}

static enum path_step path_step(struct bytes text, struct path *base)
{
	struct x86_64_path *path = (struct x86_64_path *)base;
	struct x86_64_instruction i;
	run_fn *run;

	if (!x86_64_decode(text, base->at, &i))
		return PATH_ASTRAY;
	run = run_of(&i);
	base->at += i.size;
	return run ? run(path, &i) : PATH_ON;
}

const struct path_rules x86_64_path_rules = {sizeof(struct x86_64_path), path_step};

struct x86_64_path x86_64_path_begin(size_t at, bool from_entry)
{
	return (struct x86_64_path){
		.base = {.at = at, .sp = {TRACKED_SP, 0}, .fp = {TRACKED_FP, 0}},
		.from_entry = from_entry,
	};
}
