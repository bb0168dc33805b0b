/*
 * arch/syscalls: the names of system calls, one table per architecture.
 */
#ifndef STACKER_ARCH_SYSCALLS_H
#define STACKER_ARCH_SYSCALLS_H

#include <stddef.h>

/* By number; NULL where there is none. */
struct syscall_names {
	const char *const *at;
	size_t count;
};

extern const struct syscall_names x86_64_syscalls;
extern const struct syscall_names aarch64_syscalls;

#endif
