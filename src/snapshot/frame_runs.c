#include "snapshot/frame_runs.h"

#include <string.h>

static const char *const kind_words[] = {[PC_EXACT] = "exact", [PC_RETURN] = "return"};

const char *pc_kind_text(enum pc_kind kind)
{
	return kind_words[kind == PC_RETURN];
}

bool pc_kind_named(const char *text, enum pc_kind *out)
{
	*out = strcmp(text, kind_words[PC_RETURN]) == 0 ? PC_RETURN : PC_EXACT;
	return strcmp(text, kind_words[*out]) == 0;
}

struct frame frame_usual(size_t index)
{
	return index ? (struct frame){.pc.kind = PC_RETURN, .found_by = FOUND_CFI}
		     : (struct frame){.pc.kind = PC_EXACT, .found_by = FOUND_REGISTERS};
}

static bool frames_alike(const struct frame *a, const struct frame *b)
{
	return a->pc.kind == b->pc.kind && a->found_by == b->found_by;
}

bool frames_are_usual(const struct stack *stack)
{
	for (size_t i = 0; i < stack->count; i++) {
		struct frame usual = frame_usual(i);

		if (!frames_alike(&stack->frames[i], &usual))
			return false;
	}
	return true;
}

size_t frame_run_length(const struct stack *stack, size_t at)
{
	size_t end = at + 1;

	while (end < stack->count && frames_alike(&stack->frames[end], &stack->frames[at]))
		end++;
	return end - at;
}
