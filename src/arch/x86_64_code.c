/*
 * arch/x86_64_code: where a function's caller is, told by its own code.
 *
 * Code without call frame information (musl, assembler) still gives its frame back before it returns.
 * So the code is run forward from the pc to `ret`, with nothing but SP, the frame pointer and where
 * registers are loaded from being followed: what SP points at then is the return address. Calls leave
 * all that as it was, and every way to a return gives back the same frame, so that any will do: of a
 * conditional jump first the way straight on, then the other one if that leads nowhere.
 *
 * A function that never returns (the first one of a thread, a loop without an end) has no such way.
 * It is run from its beginning to the pc instead, with what is pushed being followed. Where it begins
 * nobody says: every place before the pc that looks like a beginning is tried, the nearest first, and
 * whoever asks must see whether a return address is there.
 *
 * The way straight on may lead past a call that does not return into the next function, whose return
 * gives back its own frame only: a return address right at SP. The psABI (3.2.2) tells such a frame:
 * SP is a multiple of 16 at every call, so that at a return to the pc, return addresses are 8 off.
 * What breaks that rule is doubtful, and counts only if no other way is better.
 */
#include "arch/x86_64_code.h"

#include "arch/x86_64_decode.h"

/* Of one search: instructions that are run in all (to a return, and from a beginning), jumps, and jumps
 * whose other way is still open. */
#define INSTRUCTIONS_MAX 1024
#define INSTRUCTIONS_FROM_ENTRY_MAX 256
#define JUMPS_MAX 128
#define OPEN_MAX 32
/* How far before the pc the beginning of its function is looked for. */
#define LOOK_BACK_MAX 2048

/* What is known of SP or the frame pointer: as it is where the run begins, plus an offset. */
enum base { BASE_NONE, BASE_SP, BASE_FP };

struct value {
	enum base base;
	int64_t offset;
};

/* One way through the code. A register is `away` when its caller's value is not in it but in memory, at
 * `where`: when running to a return, where it was loaded from; when running to the pc, where it was
 * saved. */
struct way {
	size_t at;
	struct value sp, fp;
	uint32_t away;
	struct value where[X86_R15 + 1];
	/* When running to a return: saved on the way, at `kept_at`, and where it was away to then. */
	uint32_t kept, kept_away;
	struct value kept_at[X86_R15 + 1], kept_where[X86_R15 + 1];
	uint64_t released; /* by `ret`, besides the return address */
	bool by_jump;      /* the end is no `ret` */
};

struct search {
	struct bytes text;
	bool to_pc; /* else to a return */
	size_t goal;
	unsigned instructions_left;
	size_t seen[JUMPS_MAX];
	size_t seen_count;
	struct way open[OPEN_MAX];
	size_t open_count;
};

enum went { WENT_ON, WENT_THERE, WENT_ASTRAY };

typedef enum went run_fn(struct search *search, struct way *way,
			 const struct x86_64_instruction *i);

/* --- SP and the frame pointer --- */

static struct value *tracked(struct way *way, uint8_t reg)
{
	return reg == X86_RSP ? &way->sp : reg == X86_RBP ? &way->fp : NULL;
}

static struct value moved(struct value value, int64_t distance)
{
	value.offset += distance;
	return value;
}

static bool is_callee_saved(uint8_t reg)
{
	return reg == X86_RBX || reg == X86_RBP || (reg >= X86_R12 && reg <= X86_R15);
}

/* The register is written with a value that nobody knows. */
static void lose(struct way *way, uint8_t reg)
{
	struct value *value = tracked(way, reg);

	if (value)
		value->base = BASE_NONE;
}

/* The address of an operand in memory, as far as it is on the stack. */
static struct value address(struct way *way, const struct x86_64_instruction *i)
{
	const struct value *base = tracked(way, i->base);

	if (!base || i->has_index)
		return (struct value){BASE_NONE, 0};
	return moved(*base, i->displacement);
}

static bool is_same(struct value a, struct value b)
{
	return a.base == b.base && a.offset == b.offset;
}

/* Whether a register is loaded from where it was saved on this way. */
static bool is_own(const struct search *search, const struct way *way, uint8_t reg,
		   struct value from)
{
	if (search->to_pc)
		return (way->away >> reg & 1) && is_same(way->where[reg], from);
	return (way->kept >> reg & 1) && is_same(way->kept_at[reg], from);
}

/* What was saved on the way is as it was then. */
static void load_own(struct way *way, const struct search *search, uint8_t reg)
{
	uint32_t bit = UINT32_C(1) << reg;

	way->away &= ~bit;
	if (search->to_pc)
		return;
	way->away |= way->kept_away & bit;
	way->where[reg] = way->kept_where[reg];
}

static void load_callee_saved(const struct search *search, struct way *way, uint8_t reg,
			      struct value from)
{
	if (is_own(search, way, reg, from)) {
		load_own(way, search, reg);
	} else if (!search->to_pc) {
		way->away |= UINT32_C(1) << reg;
		way->where[reg] = from;
	}
}

static void load(const struct search *search, struct way *way, uint8_t reg, struct value from)
{
	struct value *value = tracked(way, reg);

	if (value)
		value->base =
			reg == X86_RBP && is_own(search, way, reg, from) ? BASE_FP : BASE_NONE;
	if (value)
		value->offset = 0;
	if (is_callee_saved(reg))
		load_callee_saved(search, way, reg, from);
}

/* To the pc: of what is saved more than once, the first time has the caller's value. */
static void save(const struct search *search, struct way *way, uint8_t reg, struct value to)
{
	uint32_t bit = UINT32_C(1) << reg;

	if (!is_callee_saved(reg) || to.base == BASE_NONE)
		return;
	if (!search->to_pc) {
		way->kept |= bit;
		way->kept_at[reg] = to;
		way->kept_away = (way->kept_away & ~bit) | (way->away & bit);
		way->kept_where[reg] = way->where[reg];
	} else if (!(way->away & bit)) {
		way->away |= bit;
		way->where[reg] = to;
	}
}

static enum went push_register(struct search *search, struct way *way,
			       const struct x86_64_instruction *i)
{
	way->sp = moved(way->sp, -8);
	save(search, way, i->rm, way->sp);
	return WENT_ON;
}

static enum went pop_register(struct search *search, struct way *way,
			      const struct x86_64_instruction *i)
{
	struct value from = way->sp;

	way->sp = moved(way->sp, 8);
	load(search, way, i->rm, from);
	return WENT_ON;
}

static enum went push_other(struct search *search, struct way *way,
			    const struct x86_64_instruction *i)
{
	(void)search, (void)i;
	way->sp = moved(way->sp, -8);
	return WENT_ON;
}

static enum went pop_other(struct search *search, struct way *way,
			   const struct x86_64_instruction *i)
{
	(void)search, (void)i;
	way->sp = moved(way->sp, 8);
	return WENT_ON;
}

/* add, sub and their kin with an immediate; alignment loses SP. */
static enum went compute_immediate(struct search *search, struct way *way,
				   const struct x86_64_instruction *i)
{
	enum { ADD = 0, SUB = 5, CMP = 7 };
	struct value *to = i->is_memory ? NULL : tracked(way, i->rm);

	(void)search;
	if (!to || x86_64_extension(i) == CMP)
		return WENT_ON;
	if (i->wide && x86_64_extension(i) == ADD)
		*to = moved(*to, i->immediate);
	else if (i->wide && x86_64_extension(i) == SUB)
		*to = moved(*to, -i->immediate);
	else
		to->base = BASE_NONE;
	return WENT_ON;
}

/* Frames of variable size. */
static enum went compute_to_rm(struct search *search, struct way *way,
			       const struct x86_64_instruction *i)
{
	(void)search;
	if (!i->is_memory)
		lose(way, i->rm);
	return WENT_ON;
}

static enum went compute_to_reg(struct search *search, struct way *way,
				const struct x86_64_instruction *i)
{
	(void)search;
	lose(way, i->reg);
	return WENT_ON;
}

static enum went exchange(struct search *search, struct way *way,
			  const struct x86_64_instruction *i)
{
	compute_to_reg(search, way, i);
	return compute_to_rm(search, way, i);
}

static enum went load_address(struct search *search, struct way *way,
			      const struct x86_64_instruction *i)
{
	struct value *to = tracked(way, i->reg);

	(void)search;
	if (to)
		*to = i->wide ? address(way, i) : (struct value){BASE_NONE, 0};
	return WENT_ON;
}

static void move(struct way *way, uint8_t to_reg, uint8_t from_reg, bool wide)
{
	struct value *to = tracked(way, to_reg);
	const struct value *from = tracked(way, from_reg);

	if (to)
		*to = wide && from ? *from : (struct value){BASE_NONE, 0};
}

static enum went move_to_rm(struct search *search, struct way *way,
			    const struct x86_64_instruction *i)
{
	if (!i->is_memory)
		move(way, i->rm, i->reg, i->wide);
	else if (i->wide)
		save(search, way, i->reg, address(way, i));
	return WENT_ON;
}

static enum went move_to_reg(struct search *search, struct way *way,
			     const struct x86_64_instruction *i)
{
	if (!i->is_memory)
		move(way, i->reg, i->rm, i->wide);
	else if (i->wide)
		load(search, way, i->reg, address(way, i));
	else
		lose(way, i->reg);
	return WENT_ON;
}

static enum went leave(struct search *search, struct way *way,
		       const struct x86_64_instruction *i)
{
	struct value from = way->fp;

	(void)i;
	way->sp = moved(from, 8);
	load(search, way, X86_RBP, from);
	return WENT_ON;
}

/* --- Jumps --- */

/* False when this jump was come by before: the way is the same from there. */
static bool is_new(struct search *search, size_t at)
{
	for (size_t i = 0; i < search->seen_count; i++)
		if (search->seen[i] == at)
			return false;
	if (search->seen_count == JUMPS_MAX)
		return false;
	search->seen[search->seen_count++] = at;
	return true;
}

/* `at` is behind the jump. Outside the text it leads nowhere: no code can be read there. */
static enum went jump(struct search *search, struct way *way,
		      const struct x86_64_instruction *i)
{
	if (!is_new(search, way->at))
		return WENT_ASTRAY;
	way->at += (size_t)i->immediate;
	return WENT_ON;
}

static enum went jump_if(struct search *search, struct way *way,
			 const struct x86_64_instruction *i)
{
	if (!is_new(search, way->at))
		return WENT_ASTRAY;
	if (search->open_count < OPEN_MAX) {
		struct way *other = &search->open[search->open_count++];

		*other = *way;
		other->at += (size_t)i->immediate;
	}
	return WENT_ON;
}

static enum went go_astray(struct search *search, struct way *way,
			   const struct x86_64_instruction *i)
{
	(void)search, (void)way, (void)i;
	return WENT_ASTRAY;
}

/* `ret`, or a jump to another function that will return in this one's place. */
static enum went go_back(struct search *search, struct way *way,
			 const struct x86_64_instruction *i)
{
	bool known =
		way->sp.base == BASE_FP || (way->sp.base == BASE_SP && way->sp.offset >= 0);

	way->by_jump = i->opcode == 0xff;
	way->released = (uint64_t)i->immediate & UINT16_MAX;
	return known && !search->to_pc ? WENT_THERE : WENT_ASTRAY;
}

/* inc, dec, call, jmp, push. Jumps by a place that is relative to the pc are those of PLTs; others
 * choose from a table, or cannot be told from such. */
static enum went group_ff(struct search *search, struct way *way,
			  const struct x86_64_instruction *i)
{
	enum { FAR_CALL = 3, JMP = 4, FAR_JMP = 5, PUSH = 6 };

	switch (x86_64_extension(i)) {
	case PUSH:
		return push_other(search, way, i);
	case JMP:
		return i->is_memory && i->rip_relative ? go_back(search, way, i) : WENT_ASTRAY;
	case FAR_CALL:
	case FAR_JMP:
		return WENT_ASTRAY;
	default:
		return WENT_ON;
	}
}

/* Zeros are no code, though they would be an addition. */
static enum went add_byte(struct search *search, struct way *way,
			  const struct x86_64_instruction *i)
{
	(void)search, (void)way;
	return i->is_memory && i->reg == 0 && i->base == 0 ? WENT_ASTRAY : WENT_ON;
}

/* --- The run --- */

/* Opcodes from `first` to `last`. What is not here has no part in this: it does not touch SP, and if it writes a register, the old value is loaded later. */
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

static enum went run_one(struct search *search, struct way *way)
{
	struct x86_64_instruction i;
	run_fn *run;

	if (search->to_pc && way->at == search->goal)
		return WENT_THERE;
	if (search->instructions_left-- == 0 || !x86_64_decode(search->text, way->at, &i))
		return WENT_ASTRAY;
	way->at += i.size;
	run = run_of(&i);
	return run ? run(search, way, &i) : WENT_ON;
}

static bool run_there(struct search *search, struct way *way)
{
	enum went went;

	do {
		went = run_one(search, way);
	} while (went == WENT_ON);
	return went == WENT_THERE;
}

/* --- The frame at the end of a way --- */

static struct arch_place place_of(struct value value)
{
	return (struct arch_place){value.base == BASE_FP, value.offset};
}

static bool is_aligned(const struct arch_place *ra)
{
	return ra->from_fp || (uint64_t)ra->offset % 16 == 8;
}

/* DWARF numbers of rbx and r12 to r15 are the same. */
static void add_away(const struct way *way, struct value origin, struct arch_frame *out)
{
	for (unsigned reg = 0; reg <= X86_R15; reg++) {
		struct value where = way->where[reg];

		if (!(way->away >> reg & 1) || where.base == BASE_NONE)
			continue;
		if (origin.base != BASE_NONE)
			where = (struct value){origin.base, where.offset + origin.offset};
		out->saved[out->saved_count++] =
			(struct arch_saved){(int8_t)(reg == X86_RBP ? 6 : reg),
					    place_of(where)};
	}
}

static void frame_of_return(const struct way *way, struct arch_frame *out)
{
	*out = (struct arch_frame){
		.sp = place_of(moved(way->sp, 8 + (int64_t)way->released)),
		.ra = place_of(way->sp),
		.by_jump = way->by_jump,
	};
	add_away(way, (struct value){BASE_NONE, 0}, out);
}

/* The way began with SP at the return address. */
static bool frame_of_entry(const struct way *way, struct arch_frame *out)
{
	struct value origin = {BASE_SP, -way->sp.offset};

	if (way->sp.base != BASE_SP && way->fp.base == BASE_SP)
		origin = (struct value){BASE_FP, -way->fp.offset};
	else if (way->sp.base != BASE_SP || way->sp.offset > 0)
		return false;
	*out = (struct arch_frame){
		.sp = place_of(moved(origin, 8)),
		.ra = place_of(origin),
	};
	add_away(way, origin, out);
	return true;
}

static struct way way_from(size_t at)
{
	return (struct way){.at = at, .sp = {BASE_SP, 0}, .fp = {BASE_FP, 0}};
}

/* The other way of the last jump that has one. */
static bool next_way(struct search *search, struct way *way)
{
	if (search->open_count == 0)
		return false;
	*way = search->open[--search->open_count];
	return true;
}

bool x86_64_frame_by_code(struct bytes text, size_t at, bool called, struct arch_frame *out)
{
	struct search search = {.text = text, .instructions_left = INSTRUCTIONS_MAX};
	struct way way = way_from(at);
	struct arch_frame frame;
	bool found = false;

	do {
		if (!run_there(&search, &way))
			continue;
		frame_of_return(&way, &frame);
		frame.doubtful = called && !is_aligned(&frame.ra);
		if (!found || !frame.doubtful)
			*out = frame;
		if (!frame.doubtful)
			return true;
		found = true;
	} while (next_way(&search, &way));
	return found;
}

static bool runs_to(struct bytes text, size_t entry, size_t at, bool called,
		    struct arch_frame *out)
{
	struct search search = {
		.text = text,
		.to_pc = true,
		.goal = at,
		.instructions_left = INSTRUCTIONS_FROM_ENTRY_MAX,
	};
	struct way way = way_from(entry);

	do {
		if (run_there(&search, &way))
			return frame_of_entry(&way, out) && (!called || is_aligned(&out->ra));
	} while (next_way(&search, &way));
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
