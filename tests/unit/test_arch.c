/* What the architectures' tables say, beside the headers of the one that this is built for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "arch/arch.h"

#define CALL(name)                \
	{                         \
		SYS_##name, #name \
	}

static void test_syscall_names(void **state)
{
	static const struct {
		int64_t number;
		const char *name;
	} calls[] = {
		CALL(read),
		CALL(write),
		CALL(close),
		CALL(ioctl),
		CALL(ppoll),
		CALL(pselect6),
		CALL(epoll_pwait),
		CALL(futex),
		CALL(nanosleep),
		CALL(wait4),
		CALL(waitid),
		CALL(accept4),
		CALL(recvfrom),
		CALL(recvmsg),
		CALL(semtimedop),
		CALL(rt_sigtimedwait),
		CALL(io_getevents),
		CALL(fsync),
		CALL(fcntl),
		CALL(restart_syscall),
		CALL(clock_nanosleep),
		CALL(msgrcv),
		CALL(rt_sigsuspend),
		CALL(io_uring_enter),
		CALL(openat2),

		CALL(process_madvise),
		CALL(execve),
	};

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		assert_string_equal(arch_syscall_name(arch_host(), calls[i].number),
				    calls[i].name);
}

static void test_syscall_without_name(void **state)
{
	static const int64_t numbers[] = {-1, INT64_MIN, 400, 100000, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		assert_null(arch_syscall_name(&arch_x86_64, numbers[i]));
		assert_null(arch_syscall_name(&arch_aarch64, numbers[i]));
	}
	assert_string_equal(arch_syscall_name(&arch_x86_64, 202), "futex");
	assert_string_equal(arch_syscall_name(&arch_aarch64, 98), "futex");
}

static void test_strip_pointer(void **state)
{
	static const struct {
		const char *name;
		uint64_t mask, va, want;
	} cases[] = {
		{"48 bits", 0x007f000000000000, 0x0035ffff9c2e1f44, 0x0000ffff9c2e1f44},
		{"48 bits, not told", 0, 0x0035ffff9c2e1f44, 0x0000ffff9c2e1f44},
		{"52 bits", 0x0070000000000000, 0x005fabcd9c2e1f44, 0x000fabcd9c2e1f44},
		{"52 bits, address of 48", 0x0070000000000000, 0x0050abcd9c2e1f44,
		 0x0000abcd9c2e1f44},
		{"39 bits", 0x007fff8000000000, 0x0035abcd9c2e1f44, 0x0000004d9c2e1f44},
		{"tag and signature", 0x0070000000000000, 0xab5fabcd9c2e1f44,
		 0x000fabcd9c2e1f44},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (arch_aarch64.strip_pointer(cases[i].va, cases[i].mask) != cases[i].want)
			fail_msg("%s", cases[i].name);
	/* Whatever the machine's is, the addresses of its programs are not touched. */
	assert_int_equal(arch_host()->strip_pointer((uint64_t)(uintptr_t)test_strip_pointer,
						    arch_host_pac_mask()),
			 (uintptr_t)test_strip_pointer);
	assert_int_equal(arch_host_pac_mask() & ((UINT64_C(1) << 36) - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syscall_names),
		cmocka_unit_test(test_strip_pointer),
		cmocka_unit_test(test_syscall_without_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
