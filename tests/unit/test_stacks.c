/*
 * Copies of stacks that are forgotten again: what stays, and where.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/stacks.h"

#define THREADS 3

/* `owner`: the thread of each copy; `size`: its bytes, which are all its own letter. */
static const struct {
	const char *name;
	uint32_t owner[4];
	uint64_t size[4];
	size_t count;
	bool forget[THREADS];
	const char *left; /* the buffer, padded to 8 bytes for each copy */
} cases[] = {
	{"none", {0, 1, 2}, {8, 8, 8}, 3, {false, false, false}, "aaaaaaaabbbbbbbbcccccccc"},
	{"all", {0, 1, 2}, {8, 8, 8}, 3, {true, true, true}, ""},
	{"the first", {0, 1, 2}, {16, 8, 8}, 3, {true, false, false}, "bbbbbbbbcccccccc"},
	{"the last", {0, 1, 2}, {8, 8, 16}, 3, {false, false, true}, "aaaaaaaabbbbbbbb"},
	{"two of one thread",
	 {0, 1, 0, 2},
	 {8, 16, 8, 8},
	 4,
	 {true, false, false},
	 "bbbbbbbbbbbbbbbbdddddddd"},
	{"one that came short", {0, 1}, {3, 5}, 2, {false, false, false}, "aaa.....bbbbb..."},
	{"one that is empty", {0, 1, 2}, {0, 8, 8}, 3, {false, true, false}, "cccccccc"},
};

static void fill(struct stacks *stacks, size_t number)
{
	for (size_t i = 0; i < cases[number].count; i++) {
		stacks->copies[i] = (struct stack_copy){
			.thread = cases[number].owner[i],
			.got = cases[number].size[i],
			.at = stacks->buffer + stacks->used,
		};
		memset(stacks->copies[i].at, 'a' + (int)i, cases[number].size[i]);
		stacks->used += 16;
	}
	stacks->count = cases[number].count;
}

/* What the copies hold, in order. */
static void left_of(const struct stacks *stacks, char *text)
{
	for (size_t i = 0; i < stacks->count; i++) {
		size_t size = stacks->copies[i].got, room = (size + 7) & ~(size_t)7;

		memset(text, '.', room);
		memcpy(text, stacks->copies[i].at, size);
		text += room;
	}
	*text = '\0';
}

static void copies_are_forgotten(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t buffer[64] = {0};
		struct stack_copy copies[4];
		uint64_t unplanned[THREADS] = {0};
		struct stacks stacks = {.buffer = buffer,
					.copies = copies,
					.unplanned = unplanned,
					.thread_count = THREADS};
		struct registers registers = {0};
		struct stack_owner owners[THREADS] = {0};
		char left[65];

		for (size_t t = 0; t < THREADS; t++)
			owners[t].registers = cases[i].forget[t] ? &registers : NULL;
		fill(&stacks, i);
		stacks_forget(&stacks, owners);
		left_of(&stacks, left);
		if (strcmp(left, cases[i].left) != 0 || stacks.used != strlen(left))
			fail_msg("%s: '%s' and %ju used", cases[i].name, left,
				 (uintmax_t)stacks.used);
	}
}

/* Two threads and room for one copy: what the other lacks is counted, until it is read anew. */
static void stacks_without_room_are_counted(void **state)
{
	static uint64_t memory[2][64];
	struct map map = {.start = (uintptr_t)memory,
			  .end = (uintptr_t)(memory + 2),
			  .permissions = "rw-p",
			  .path = ""};
	struct snapshot snapshot = {.arch = arch_host(), .maps = &map, .map_count = 1};
	struct capture_request request = {.stack_limit = 4096, .stack_total = 65536};
	struct registers registers[2] = {0};
	struct stack_owner owners[2] = {{&registers[0], 0}, {&registers[1], 0}};
	struct arena arena = {0};
	struct stacks stacks;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		registers[i].at[arch_host()->sp_slot] = (uintptr_t)&memory[i][32];
	assert_true(stacks_reserve(&stacks, &arena, &snapshot, &request, 2, NULL));
	stacks.tid = (uint32_t)getpid();
	stacks.capacity = 1;
	stacks_copy(&stacks, owners, 0, 2);
	assert_int_equal(stacks.count, 1);
	assert_int_equal(stacks.unplanned[0], 0);
	assert_int_equal(stacks.unplanned[1], 32 * sizeof memory[0][0] + arch_host()->red_zone);
	owners[0].registers = NULL;
	stacks_forget(&stacks, owners);
	assert_int_equal(stacks.unplanned[1], 0);
	stacks_release(&stacks);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_forgotten),
		cmocka_unit_test(stacks_without_room_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
