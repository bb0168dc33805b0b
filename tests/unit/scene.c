#include "scene.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void scene_map(struct scene *s, uint64_t start, const char *permissions,
		      const char *path)
{
	struct map *map = &s->maps[s->snapshot.map_count++];

	*map = (struct map){.start = start, .end = start + 0x10000, .path = path, .module = -1};
	memcpy(map->permissions, permissions, 5);
}

void scene_begin(struct scene *s, const struct arch *arch)
{
	memset(s, 0, sizeof *s);
	s->snapshot.arch = arch;
	s->snapshot.maps = s->maps;
	scene_map(s, SCENE_BIAS, "r-xp", "/bin/prog");
	scene_map(s, SCENE_ALT_STACK, "rw-p", "");
	scene_map(s, SCENE_JIT, "rwxp", "");
	scene_map(s, SCENE_DATA, "rw-p", "[heap]");
	scene_map(s, SCENE_STACK, "rw-p", "[stack]");
	s->cfi = (struct maker){.arena = &s->arena, .ea = SCENE_EH_FRAME, .is_eh = true};
	if (arch == &arch_x86_64) {
		s->cie = make_cie_x86_64(&s->cfi, "zR");
		s->signal_cie = make_cie_x86_64(&s->cfi, "zRS");
		memset(s->text, 0x90, sizeof s->text); /* nop */
	} else {
		s->cie = make_cie_aarch64(&s->cfi, "zR");
		s->signal_cie = make_cie_aarch64(&s->cfi, "zRS");
		for (size_t i = 0; i < sizeof s->text; i += 4) /* nop */
			memcpy(s->text + i, "\x1f\x20\x03\xd5", 4);
	}
	s->thread = (struct thread){.tid = 1, .has_registers = true, .pieces = s->pieces};
}

void scene_end(struct scene *s)
{
	for (size_t i = 0; i < s->thread.piece_count; i++)
		free((void *)(uintptr_t)s->pieces[i].bytes.at);
	arena_free(&s->arena);
}

void scene_code(struct scene *s, size_t off, struct bytes code)
{
	memcpy(s->text + off, code.at, code.len);
}

void scene_cfi(struct scene *s, size_t off, size_t size, struct bytes program)
{
	make_fde(&s->cfi, s->cie, SCENE_TEXT + off, size, program);
}

void scene_signal_cfi(struct scene *s, size_t off, size_t size, struct bytes program)
{
	make_fde(&s->cfi, s->signal_cie, SCENE_TEXT + off, size, program);
}

/* In memory of its own and of its exact size, for the sanitizer to watch. */
void scene_stack(struct scene *s, uint64_t va, const uint64_t *words, size_t count)
{
	uint64_t *copy = malloc(count * sizeof *words + !count);

	memcpy(copy, words, count * sizeof *words);
	s->pieces[s->thread.piece_count++] =
		(struct memory_piece){va, {(const uint8_t *)copy, count * sizeof *words}};
}

void scene_register(struct scene *s, int dwarf, uint64_t value)
{
	const struct arch *arch = s->snapshot.arch;

	for (size_t i = 0; i < arch->register_count; i++)
		if (arch->registers[i].dwarf == dwarf)
			s->thread.registers.at[arch->registers[i].slot] = value;
}

static void open_module(struct scene *s)
{
	struct image image = {.machine = s->snapshot.arch->elf_machine,
			      .sections = s->sections,
			      .section_count = 2};
	struct err e;

	s->sections[0] = image_code(".text", SCENE_TEXT, 0);
	s->sections[0].type = SHT_PROGBITS;
	s->sections[0].contents = (struct bytes){s->text, sizeof s->text};
	s->sections[1] = (struct image_section){.name = ".eh_frame",
						.type = SHT_PROGBITS,
						.flags = SHF_ALLOC,
						.ea = SCENE_EH_FRAME,
						.contents = made(&s->cfi)};
	if (!elf_open(&s->elf, &s->arena, image_make(&s->arena, &image), "prog", &e))
		abort();
	s->elf.entry = SCENE_TEXT + 0xf00;
	s->module = (struct module){.name = "prog", .elf = &s->elf};
	s->ranges[0] = (struct module_range){
		SCENE_BIAS, SCENE_BIAS + 0x10000, SCENE_BIAS, &s->module, true, false,
	};
	s->modules = (struct modules){.arena = &s->arena,
				      .at = &s->module,
				      .count = 1,
				      .ranges = s->ranges,
				      .range_count = 1};
}

const struct stack *scene_walk(struct scene *s)
{
	struct unwinder *unwinder;

	open_module(s);
	unwinder = unwinder_new(&s->arena, &s->snapshot, &s->modules, &s->options);
	unwind_thread(unwinder, &s->thread);
	return &s->thread.stack;
}

static void print_frame(FILE *out, const struct frame *frame)
{
	uint64_t off = frame->pc.va - CODE_AT(0);

	if (off < 0x1000)
		fprintf(out, "+0x%" PRIx64, off);
	else
		fprintf(out, "0x%" PRIx64, frame->pc.va);
	fprintf(out, "%c%s; ", frame->pc.kind == PC_EXACT ? '=' : '<',
		found_by_text(frame->found_by));
}

const char *scene_text(struct scene *s)
{
	const struct stack *stack = scene_walk(s);
	char *text = NULL, *copy;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < stack->count; i++) {
		if (stack->elided && i == stack->elided_at)
			fprintf(out, "... %" PRIu64 " elided; ", stack->elided);
		print_frame(out, &stack->frames[i]);
	}
	fputs(stop_text(stack->stop), out);
	if (stack->stop_detail)
		fprintf(out, " [%s]", stack->stop_detail);
	fclose(out);
	copy = arena_string(&s->arena, text);
	free(text);
	return copy;
}
