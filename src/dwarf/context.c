#include "dwarf/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/budget.h"

/* Honest files need about 3: unit ranges once for all units, a unit's lines and entries once, its
 * entries once more when an address is in no function. References within link-time optimized
 * programs add to that. The constant lets tiny files do anything. */
#define WORK_PER_BYTE 64
#define WORK_MIN (UINT64_C(1) << 24)
/* And for each address: its frames and what is read for their names. */
#define WORK_PER_ADDRESS (UINT64_C(1) << 16)
/* Of what the run has left: others come after. */
#define WORK_SHARE 2
#define SCOPE_WORK_SHARE 4

void dwarf_note(struct dwarf *dwarf, const char *fmt, ...)
{
	char text[256];
	va_list args;

	if (dwarf->problem)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	dwarf->problem = arena_string(dwarf->arena, text);
}

bool dwarf_work(struct dwarf *dwarf, uint64_t amount)
{
	if (dwarf->work_left >= amount) {
		dwarf->work_left -= amount;
		return true;
	}
	dwarf->work_left = 0;
	budget_refuse();
	dwarf_note(dwarf, "%s: debug information needs unreasonable work",
		   dwarf->main.elf->name);
	return false;
}

void dwarf_work_begin(struct dwarf *dwarf, size_t asked)
{
	uint64_t size = sections_size(&dwarf->main);
	uint64_t limit, share;

	if (dwarf->package)
		size += sections_size(dwarf->package);
	if (__builtin_mul_overflow(size, WORK_PER_BYTE, &limit))
		limit = UINT64_MAX / 2;
	limit += WORK_MIN + asked * WORK_PER_ADDRESS;
	share = budget_work_left() / WORK_SHARE;
	dwarf->work_left = dwarf->work_given = limit < share ? limit : share;
	dwarf_scope_work_begin(dwarf);
}

void dwarf_scope_work_begin(struct dwarf *dwarf)
{
	dwarf->scope_work_left = dwarf->qualifies ? dwarf->work_left / SCOPE_WORK_SHARE : 0;
}

void dwarf_work_end(struct dwarf *dwarf)
{
	budget_work(dwarf->work_given - dwarf->work_left);
	dwarf->work_given = dwarf->work_left;
}

static int span_compare(const void *a, const void *b)
{
	const struct code_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* In place: sorted, and spans that touch become one. */
static size_t spans_merge(struct code_span *spans, size_t count)
{
	size_t kept = 0;

	qsort(spans, count, sizeof *spans, span_compare);
	for (size_t i = 0; i < count; i++) {
		if (kept && spans[i].start <= spans[kept - 1].end) {
			if (spans[i].end > spans[kept - 1].end)
				spans[kept - 1].end = spans[i].end;
		} else {
			spans[kept++] = spans[i];
		}
	}
	return kept;
}

void dwarf_code_map(struct dwarf *dwarf)
{
	const struct elf *elf = dwarf->main.elf;
	size_t count = 0;

	dwarf->code = arena_array(dwarf->arena, struct code_span, elf->section_count);
	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *section = &elf->sections[i];
		uint64_t end;

		if (!(section->flags & SHF_EXECINSTR) || !(section->flags & SHF_ALLOC) ||
		    __builtin_add_overflow(section->ea, section->size, &end))
			continue;
		dwarf->code[count++] = (struct code_span){section->ea, end};
	}
	dwarf->code_count = count ? spans_merge(dwarf->code, count) : 0;
}

bool dwarf_is_code(const struct dwarf *dwarf, uint64_t ea)
{
	size_t low = 0, high = dwarf->code_count;

	if (high == 0)
		return ea > 1 && ea < UINT64_MAX - 1;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ea >= dwarf->code[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	return low < dwarf->code_count && ea >= dwarf->code[low].start;
}
