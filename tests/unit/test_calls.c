/*
 * process/calls: the system call of a thread, by its registers or by what was seen before the stop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "process/calls.h"

enum { X8 = 8, SP = 31, PC = 32, ORIG_RAX = 15 };

#define STACK UINT64_C(0xffffd4a3b0c0)
#define AFTER UINT64_C(0xffff9c2e1f44) /* behind the svc */

static void aarch64_must_be_where_it_was_seen(void **state)
{
	static const struct {
		const char *name;
		struct task_call seen;
		uint64_t x8, sp, pc;
		int64_t want;
	} cases[] = {
		{"it will begin again", {98, STACK, AFTER}, 98, STACK, AFTER - 4, 98},
		{"it returns", {22, STACK, AFTER}, 22, STACK, AFTER, 22},
		{"the first of all numbers", {0, STACK, AFTER}, 0, STACK, AFTER, 0},
		{"goes on elsewhere", {98, STACK, AFTER}, 98, STACK, AFTER + 4, -1},
		{"before it", {98, STACK, AFTER}, 98, STACK, AFTER - 8, -1},
		{"of another frame", {98, STACK, AFTER}, 98, STACK - 16, AFTER - 4, -1},
		{"another call there", {98, STACK, AFTER}, 63, STACK, AFTER - 4, -1},
		{"seen in a page fault", {-1, STACK, AFTER}, UINT64_MAX, STACK, AFTER, -1},
		{"not seen", {-1, 0, 0}, 98, STACK, AFTER - 4, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct registers registers = {{0}};

		registers.at[X8] = cases[i].x8;
		registers.at[SP] = cases[i].sp;
		registers.at[PC] = cases[i].pc;
		if (call_number(&arch_aarch64, &registers, &cases[i].seen) != cases[i].want)
			fail_msg("%s: not %jd", cases[i].name, (intmax_t)cases[i].want);
	}
}

static void x86_64_has_it_in_a_register(void **state)
{
	static const struct task_call seen = {202, STACK, AFTER};
	struct registers registers = {{0}};

	(void)state;
	registers.at[ORIG_RAX] = 35;
	assert_int_equal(call_number(&arch_x86_64, &registers, &seen), 35);
	registers.at[ORIG_RAX] = UINT64_MAX;
	assert_int_equal(call_number(&arch_x86_64, &registers, &seen), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_must_be_where_it_was_seen),
		cmocka_unit_test(x86_64_has_it_in_a_register),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
