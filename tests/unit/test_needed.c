/*
 * Which modules the frames of a capture will ask for, by the words of its stacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process/needed.h"

/* Module 0 has data at 0x2000; 1 and 2 have code only; the last map is of no module. */
static struct map maps[] = {
	{.start = 0x1000, .end = 0x2000, .permissions = "r-xp", .module = 0},
	{.start = 0x2000, .end = 0x3000, .permissions = "rw-p", .module = 0},
	{.start = 0x5000, .end = 0x6000, .permissions = "r-xp", .module = 1},
	{.start = 0x7000, .end = 0x8000, .permissions = "r-xp", .module = 2},
	{.start = 0x9000, .end = 0xa000, .permissions = "r-xp", .module = -1},
};

static const struct {
	const char *name;
	uint64_t pc, words[6];
	uint32_t order[3];
	size_t needed;
} cases[] = {
	{"nothing", 0, {0}, {0, 1, 2}, 0},
	{"a pc", 0x7123, {0}, {2, 0, 1}, 1},
	{"a word", 0, {0x5fff}, {1, 0, 2}, 1},
	{"more words before fewer", 0, {0x1000, 0x7000, 0x7fff}, {2, 0, 1}, 2},
	{"a pc before words", 0x1fff, {0x5000, 0x5008, 0x5010}, {0, 1, 2}, 2},
	{"data is no code", 0, {0x2000, 0x2008, 0x5000}, {1, 0, 2}, 1},
	{"ends of maps", 0, {0xfff, 0x6000, 0x4fff, 0x8000}, {0, 1, 2}, 0},
	{"code of no module", 0x9000, {0x9008, UINT64_MAX}, {0, 1, 2}, 0},
};

static void test_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena arena = {0};
		uint8_t bytes[sizeof cases[i].words + 3] = {0}; /* the last word is cut */
		struct memory_piece piece = {0x100, {bytes, sizeof bytes}};
		struct thread thread = {.has_registers = true,
					.pieces = &piece,
					.piece_count = 1};
		struct snapshot snapshot = {
			.arch = &arch_x86_64,
			.maps = maps,
			.map_count = sizeof maps / sizeof maps[0],
			.module_count = 3,
			.threads = &thread,
			.thread_count = 1,
		};
		size_t needed;
		const uint32_t *order;

		print_message("%s\n", cases[i].name);
		memcpy(bytes, cases[i].words, sizeof cases[i].words);
		thread.registers.at[arch_x86_64.pc_slot] = cases[i].pc;
		order = modules_by_need(&arena, &snapshot, &needed);
		assert_memory_equal(order, cases[i].order, sizeof cases[i].order);
		assert_int_equal(needed, cases[i].needed);
		arena_free(&arena);
	}
}

static void test_no_modules(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = {.arch = &arch_x86_64};
	size_t needed = 1;

	(void)state;
	modules_by_need(&arena, &snapshot, &needed);
	assert_int_equal(needed, 0);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
