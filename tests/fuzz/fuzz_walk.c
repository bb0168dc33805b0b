/*
 * Fuzzing of the walk by machine code, frame pointers and stack words: core-like pictures of a thread.
 *
 * One choice byte, a 16-bit length of the code, the code, then registers and stack words; each word's
 * lowest byte says whether it is a number, an address of the code or one of the stack.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "scene.h"

#define WORDS_MAX 256

static uint64_t word_of(uint64_t value)
{
	switch (value % 4) {
	case 0:
		return CODE_AT(value / 4 % 0x1000);
	case 1:
		return SCENE_STACK + value / 4 % (8 * WORDS_MAX) / 8 * 8;
	case 2:
		return SCENE_ALT_STACK + value / 4 % 512 / 8 * 8;
	default:
		return value / 4;
	}
}

static void take_registers(struct scene *s, struct reader *r)
{
	const struct arch *arch = s->snapshot.arch;

	for (size_t i = 0; i < arch->slot_count; i++)
		s->thread.registers.at[i] = word_of(read_u16(r));
	s->thread.registers.at[arch->pc_slot] = CODE_AT(read_u16(r) % 0x1000);
	s->thread.registers.at[arch->sp_slot] = SCENE_STACK;
}

static size_t take_words(struct reader *r, uint64_t *words)
{
	size_t count = 0;

	while (count < WORDS_MAX && reader_left(r) >= 3)
		words[count++] = word_of(read_uint(r, 3));
	return count;
}

static void take_code(struct scene *s, struct reader *r)
{
	uint64_t size = read_u16(r) % 0x1000, left = reader_left(r);

	scene_code(s, 0, read_block(r, size < left ? size : left));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scene s;
	struct reader r = reader_over((struct bytes){data, size});
	uint64_t words[WORDS_MAX];
	uint8_t choice = read_u8(&r);
	size_t count;

	if (size < 64 || size > 8192)
		return 0;
	scene_begin(&s, choice & 1 ? &arch_aarch64 : &arch_x86_64);
	take_code(&s, &r);
	take_registers(&s, &r);
	if (choice & 2) /* CFA = SP + 16, for a part of the code */
		scene_cfi(&s, 0x20, 0x20,
			  choice & 1 ? BYTES("\x0e\x10\x9e\x02") : BYTES("\x0e\x10"));
	count = take_words(&r, words);
	scene_stack(&s, SCENE_STACK, words, count);
	scene_stack(&s, SCENE_ALT_STACK, words, count / 2);
	if (scene_walk(&s)->count == 0)
		abort();
	scene_end(&s);
	return 0;
}
