/*
 * What is learned from a step that did not answer, and what may be asked then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process/avoid.h"

static struct map maps[] = {
	{.start = 0x1000,
	 .end = 0x3000,
	 .device_major = 8,
	 .device_minor = 1,
	 .path = "/bin/a"},
	{.start = 0x3000, .end = 0x4000, .device_minor = 45, .path = "/mnt/b"},
	{.start = 0x8000, .end = 0x9000, .path = ""},
};
static const struct snapshot snapshot = {.maps = maps, .map_count = 3};

static const struct {
	const char *name;
	struct step_at stuck[3];
	size_t count;
	bool by_bpf, goes_on;
	bool file[2];   /* may maps[0], maps[1] be looked at? */
	bool memory[3]; /* may memory at 0x1800, 0x3000, 0x8800 be read? */
} cases[] = {
	{"nothing", {{0}}, 0, false, true, {true, true}, {true, true, true}},
	{"a file",
	 {{.what = STEP_FILE, .number = 45}},
	 1,
	 false,
	 true,
	 {true, false},
	 {true, true, true}},
	{"memory", {{.what = STEP_SPACE}}, 1, false, true, {true, true}, {false, false, false}},
	{"maps", {{.what = STEP_MAPS}}, 1, false, true, {true, true}, {false, false, false}},
	{"a stack once",
	 {{.what = STEP_STACKS, .number = 0x8000}},
	 1,
	 false,
	 true,
	 {true, true},
	 {true, true, true}},
	{"a stack, found",
	 {{.what = STEP_STACKS, .number = 0x1000}, {.what = STEP_STACKS, .number = 0x8010}},
	 2,
	 false,
	 true,
	 {true, true},
	 {true, true, false}},
	{"to attach by ptrace",
	 {{.what = STEP_ATTACH}},
	 1,
	 false,
	 false,
	 {true, true},
	 {true, true, true}},
	{"to attach after BPF",
	 {{.what = STEP_ATTACH}},
	 1,
	 true,
	 true,
	 {true, true},
	 {true, true, true}},
	{"the process",
	 {{.what = STEP_PROCESS}},
	 1,
	 true,
	 false,
	 {true, true},
	 {true, true, true}},
};

static void what_did_not_answer_is_avoided(void **state)
{
	static const uint64_t addresses[] = {0x1800, 0x3000, 0x8800};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct avoid avoid = {.program = false};
		bool goes_on = true, same = true;

		for (size_t s = 0; s < cases[i].count; s++)
			goes_on = avoid_learn(&avoid, &cases[i].stuck[s], cases[i].by_bpf);
		for (size_t f = 0; f < 2; f++)
			same &= avoid_permits_file(&avoid, &maps[f]) == cases[i].file[f];
		for (size_t m = 0; m < 3; m++)
			same &= avoid_permits_memory(&avoid, &snapshot, addresses[m]) ==
				cases[i].memory[m];
		if (!same || goes_on != cases[i].goes_on)
			fail_msg("%s", cases[i].name);
	}
}

/* More file systems than there is room for: no file at all. */
static void lists_have_an_end(void **state)
{
	struct avoid avoid = {.program = false};
	struct step_at stuck = {.what = STEP_FILE};

	(void)state;
	for (uint64_t i = 0; i <= AVOID_DEVICES; i++) {
		stuck.number = 100 + i;
		assert_true(avoid_permits_file(&avoid, &maps[0]));
		assert_true(avoid_learn(&avoid, &stuck, false));
	}
	assert_false(avoid_permits_file(&avoid, &maps[0]));
	stuck.what = STEP_STACKS;
	for (uint64_t i = 0; i <= AVOID_STACKS + 1; i++) {
		assert_true(avoid_permits_memory(&avoid, &snapshot, 0x1000));
		stuck.number = 0x100000 * (i + 1);
		assert_true(avoid_learn(&avoid, &stuck, false));
	}
	assert_false(avoid_permits_memory(&avoid, &snapshot, 0x1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_did_not_answer_is_avoided),
		cmocka_unit_test(lists_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
