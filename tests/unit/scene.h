/*
 * A process made up for tests of the walk: one module with code, call frame information and an entry
 * point, one thread, stacks as arrays. For either architecture on either host.
 */
#ifndef STACKER_TESTS_SCENE_H
#define STACKER_TESTS_SCENE_H

#include "cfi_maker.h"
#include "elf_image.h"
#include "unwind/unwind.h"

#define SCENE_TEXT 0x1000u /* ea of .text, 4 KiB */
#define SCENE_EH_FRAME 0x4000u
#define SCENE_BIAS UINT64_C(0x555555000000)
#define SCENE_STACK UINT64_C(0x7ffe00100000)     /* the stack's mapping: 64 KiB */
#define SCENE_ALT_STACK UINT64_C(0x7f0000100000) /* another one below it: 64 KiB */
#define SCENE_JIT UINT64_C(0x7f0000200000)       /* executable memory without a file */
#define SCENE_DATA UINT64_C(0x7f0000300000)      /* memory that is not captured */
#define SCENE_PIECES 2

/* The va of code at this offset in .text. */
#define CODE_AT(off) (SCENE_BIAS + SCENE_TEXT + (off))

struct scene {
	struct arena arena;
	struct maker cfi;
	size_t cie, signal_cie;
	uint8_t text[0x1000];
	struct image_section sections[2];
	struct elf elf;
	struct module module;
	struct modules modules;
	struct module_range ranges[1];
	struct map maps[5];
	struct snapshot snapshot;
	struct thread thread;
	struct memory_piece pieces[SCENE_PIECES];
	struct unwind_options options;
};

/* Nothing in it yet but mappings; text is full of instructions that say nothing. */
void scene_begin(struct scene *s, const struct arch *arch);
void scene_end(struct scene *s);

/* Code at an offset in .text. */
void scene_code(struct scene *s, size_t off, struct bytes code);
/* An FDE over [off, off + size) of .text. */
void scene_cfi(struct scene *s, size_t off, size_t size, struct bytes program);
void scene_signal_cfi(struct scene *s, size_t off, size_t size, struct bytes program);

/* The words that are captured from va on. */
void scene_stack(struct scene *s, uint64_t va, const uint64_t *words, size_t count);

void scene_register(struct scene *s, int dwarf, uint64_t value);

/* Walks the thread. */
const struct stack *scene_walk(struct scene *s);

/* The walk in words: "OFF KIND FOUND_BY; ...; STOP [DETAIL]", where OFF is `+0xN` in .text or an
 * address, KIND is `=` (exact) or `<` (return address). Elided frames are `... N elided`. */
const char *scene_text(struct scene *s);

#endif
