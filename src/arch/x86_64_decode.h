/*
 * arch/x86_64_decode: how long an instruction is, and the parts of it that unwinding looks at.
 */
#ifndef STACKER_ARCH_X86_64_DECODE_H
#define STACKER_ARCH_X86_64_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define X86_64_SIZE_MAX 15

/* Numbers of registers in instructions. */
enum {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R12 = 12,
	X86_R15 = 15,
	X86_NONE = 16
};

enum x86_64_map {
	X86_MAP_ONE, /* opcodes of one byte */
	X86_MAP_0F,
	X86_MAP_0F38,
	X86_MAP_0F3A,
	X86_MAP_VECTOR, /* any with a VEX, EVEX or XOP prefix */
};

struct x86_64_instruction {
	uint8_t size;
	uint8_t map; /* enum x86_64_map */
	uint8_t opcode;
	bool wide;      /* REX.W: operands of 64 bits */
	bool has_66;    /* operands of 16 bits, unless wide */
	bool has_modrm; /* and what follows */
	uint8_t reg;    /* the register operand, or more of the opcode (see x86_64_extension) */
	bool is_memory; /* else the other operand is the register `rm` */
	uint8_t rm;     /* without ModRM: the register that the opcode's low bits name */
	uint8_t base;   /* of the address; X86_NONE: none */
	bool has_index, rip_relative;
	int32_t displacement;
	int64_t immediate; /* sign-extended; of branches the distance from the end */
};

/* The opcode's extension in ModRM. */
static inline unsigned x86_64_extension(const struct x86_64_instruction *i)
{
	return i->reg & 7;
}

/* False for what is no instruction, is none that is known, or lies partly outside. */
bool x86_64_decode(struct bytes text, size_t at, struct x86_64_instruction *out);

#endif
