/*
 * arch/x86_64_decode: the format of instructions in 64-bit mode, as far as their length goes.
 *
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: chapter 2 (instruction
 * format, VEX, EVEX) and appendix A (opcode maps); AMD64 Architecture Programmer's Manual, volume 3
 * (XOP, 3DNow!, SSE4a).
 *
 *     [prefixes] [REX] opcode [ModRM [SIB] [displacement]] [immediate]
 *     [prefixes] VEX, EVEX or XOP, opcode, ModRM [SIB] [displacement] [immediate]
 */
#include "arch/x86_64_decode.h"

/*
 * What follows an opcode, one letter each:
 *   .  nothing        m  ModRM                     x  no instruction
 *   b  1 byte         B  ModRM, 1 byte             w  2 bytes     e  3 bytes
 *   z  4 bytes (2)    Z  ModRM, 4 bytes (2)        j  4 bytes, a branch
 *   v  8, 4 or 2      o  an address                g  ModRM, 1 byte for test   G  4 bytes (2) for test
 *   p  a prefix       r  REX                       0  opcodes of two bytes
 *   V  VEX            E  EVEX                      X  pop, or XOP
 *   8  map 0F38       a  map 0F3A                  s  ModRM, 2 bytes with the prefixes 66 and F2
 */
/* clang-format off */
static const char *const map_one[16] = {
	"mmmmbzxxmmmmbzx0", "mmmmbzxxmmmmbzxx", "mmmmbzpxmmmmbzpx", "mmmmbzpxmmmmbzpx",
	"rrrrrrrrrrrrrrrr", "................", "xxEmppppzZbB....", "bbbbbbbbbbbbbbbb",
	"BZxBmmmmmmmmmmmX", "..........x.....", "oooo....bz......", "bbbbbbbbvvvvvvvv",
	"BBw.VVBZe.w..bx.", "mmmmxxx.mmmmmmmm", "bbbbbbbbjjxb....", "p.pp..gG......mm",
};
static const char *const map_0f[16] = {
	"mmmmx.....x.xm.B", "mmmmmmmmmmmmmmmm", "mmmmxxxxmmmmmmmm", "......x.8xaxxxxx",
	"mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "BBBBmmm.smxxmmmm",
	"jjjjjjjjjjjjjjjj", "mmmmmmmmmmmmmmmm", "...mBmxx...mBmmm", "mmmmmmmmmmBmmmmm",
	"mmBmBBBm........", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm",
};
/* clang-format on */

static char letter(const char *const *map, uint8_t opcode)
{
	return map[opcode >> 4][opcode & 15];
}

struct decoder {
	struct reader r;
	struct x86_64_instruction *out;
	uint8_t rex;
	bool has_67, has_f2;
};

enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };

/* --- Before the opcode --- */

static void note_prefix(struct decoder *d, uint8_t prefix)
{
	d->out->has_66 |= prefix == 0x66;
	d->has_67 |= prefix == 0x67;
	d->has_f2 |= prefix == 0xf2;
}

/* Counts only right before the opcode. */
static char read_prefixes(struct decoder *d)
{
	char what;

	for (;;) {
		d->out->opcode = read_u8(&d->r);
		what = letter(map_one, d->out->opcode);
		if (reader_failed(&d->r) || (what != 'p' && what != 'r'))
			return what;
		d->rex = what == 'r' ? d->out->opcode : 0;
		if (what == 'p')
			note_prefix(d, d->out->opcode);
	}
}

static char read_second(struct decoder *d)
{
	char what;

	d->out->opcode = read_u8(&d->r);
	what = letter(map_0f, d->out->opcode);
	d->out->map = X86_MAP_0F;
	if (what != '8' && what != 'a')
		return what;
	d->out->map = what == '8' ? X86_MAP_0F38 : X86_MAP_0F3A;
	d->out->opcode = read_u8(&d->r);
	return what == '8' ? 'm' : 'B';
}

/* --- Vector instructions --- */

/* Maps 5 and 6 hold arithmetic of 16-bit floats. */
static char vector_letter(unsigned map, uint8_t opcode)
{
	char what = letter(map_0f, opcode);

	switch (map) {
	case 1:
		return what == 'm' || what == 'B' || opcode == 0x77 ? what : 'x';
	case 2:
	case 5:
	case 6:
		return 'm';
	case 3:
		return 'B';
	default:
		return 'x';
	}
}

static char xop_letter(unsigned map)
{
	return map == 8 ? 'B' : map == 9 ? 'm' : map == 10 ? 'Z' : 'x';
}

static char read_vector(struct decoder *d, char what)
{
	bool is_short = what == 'V' && d->out->opcode == 0xc5;
	uint8_t first = read_u8(&d->r);
	unsigned map = is_short ? 1 : first & (what == 'E' ? 7u : 31u);

	/* R, X and B, inverted; the short form has only R. */
	d->rex = (uint8_t)(~(is_short ? first | 0x60u : first) >> 5 & 7);
	reader_skip(&d->r, is_short ? 0 : what == 'E' ? 2 : 1);
	d->out->map = X86_MAP_VECTOR;
	d->out->opcode = read_u8(&d->r);
	return what == 'X' ? xop_letter(map) : vector_letter(map, d->out->opcode);
}

/* pop has 0 in the field where XOP has a map number of 8 and more. */
static bool is_xop(const struct decoder *d)
{
	struct reader r = d->r;

	return (read_u8(&r) & 31) >= 8;
}

/* --- After the opcode --- */

static void read_sib(struct decoder *d, unsigned mod)
{
	struct x86_64_instruction *out = d->out;
	uint8_t sib = read_u8(&d->r);
	unsigned index = (sib >> 3 & 7) | (d->rex & REX_X ? 8 : 0);

	out->has_index = index != X86_RSP;
	out->base = (uint8_t)((sib & 7) | (d->rex & REX_B ? 8 : 0));
	if ((sib & 7) == X86_RBP && mod == 0) {
		out->base = X86_NONE;
		out->displacement = (int32_t)read_sint(&d->r, 4);
	}
}

static void read_modrm(struct decoder *d)
{
	struct x86_64_instruction *out = d->out;
	uint8_t modrm = read_u8(&d->r);
	unsigned mod = modrm >> 6, rm = modrm & 7;

	out->has_modrm = true;
	out->is_memory = mod != 3;
	out->reg = (uint8_t)((modrm >> 3 & 7) | (d->rex & REX_R ? 8 : 0));
	out->rm = out->base = (uint8_t)(rm | (d->rex & REX_B ? 8 : 0));
	if (!out->is_memory)
		return;
	if (rm == X86_RSP) {
		read_sib(d, mod);
	} else if (rm == X86_RBP && mod == 0) {
		out->base = X86_NONE;
		out->rip_relative = true;
		out->displacement = (int32_t)read_sint(&d->r, 4);
	}
	if (mod)
		out->displacement = (int32_t)read_sint(&d->r, mod == 1 ? 1 : 4);
}

static unsigned operand_size(const struct decoder *d)
{
	return d->rex & REX_W ? 8 : d->out->has_66 ? 2 : 4;
}

static unsigned immediate_size(const struct decoder *d, char what)
{
	unsigned size = operand_size(d);
	bool is_test = x86_64_extension(d->out) < 2;

	switch (what) {
	case 'b':
	case 'B':
		return 1;
	case 'w':
		return 2;
	case 'e':
		return 3;
	case 'j':
		return 4;
	case 'z':
	case 'Z':
		return size == 8 ? 4 : size;
	case 'v':
		return size;
	case 'o':
		return d->has_67 ? 4 : 8;
	case 'g':
		return is_test;
	case 'G':
		return !is_test ? 0 : size == 8 ? 4 : size;
	case 's':
		return d->out->has_66 || d->has_f2 ? 2 : 0;
	default:
		return 0;
	}
}

static void read_operands(struct decoder *d, char what)
{
	unsigned size;

	if (strchr("mBZgGsX", what))
		read_modrm(d);
	size = immediate_size(d, what);
	if (size)
		d->out->immediate = read_sint(&d->r, size);
}

bool x86_64_decode(struct bytes text, size_t at, struct x86_64_instruction *out)
{
	struct bytes rest = bytes_from(text, at);
	struct decoder d = {.out = out};
	char what;

	*out = (struct x86_64_instruction){.base = X86_NONE};
	if (rest.len > X86_64_SIZE_MAX)
		rest.len = X86_64_SIZE_MAX;
	d.r = reader_over(rest);
	what = read_prefixes(&d);
	if (what == '0')
		what = read_second(&d);
	else if (what == 'V' || what == 'E' || (what == 'X' && is_xop(&d)))
		what = read_vector(&d, what);
	if (what == 'x')
		return false;
	out->rm = (uint8_t)((out->opcode & 7) | (d.rex & REX_B ? 8 : 0));
	read_operands(&d, what);
	out->wide = d.rex & REX_W;
	out->size = (uint8_t)reader_offset(&d.r);
	return !reader_failed(&d.r);
}
