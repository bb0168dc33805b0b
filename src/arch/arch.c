#include "arch/arch.h"

#include <string.h>

#include "arch/syscalls.h"

static const struct arch *const arches[] = {&arch_x86_64, &arch_aarch64};

const struct arch *arch_of_machine(uint16_t elf_machine)
{
	for (size_t i = 0; i < sizeof arches / sizeof arches[0]; i++)
		if (arches[i]->elf_machine == elf_machine)
			return arches[i];
	return NULL;
}

const struct arch *arch_named(const char *name)
{
	for (size_t i = 0; i < sizeof arches / sizeof arches[0]; i++)
		if (strcmp(arches[i]->name, name) == 0)
			return arches[i];
	return NULL;
}

const char *arch_names(struct arena *arena)
{
	const char *names = arches[0]->name;

	for (size_t i = 1; i < sizeof arches / sizeof arches[0]; i++)
		names = arena_printf(arena, "%s, %s", names, arches[i]->name);
	return names;
}

const char *arch_syscall_name(const struct arch *arch, int64_t number)
{
	if (number < 0 || (uint64_t)number >= arch->syscalls->count)
		return NULL;
	return arch->syscalls->at[number];
}

const struct arch *arch_host(void)
{
#if defined(__x86_64__)
	return &arch_x86_64;
#elif defined(__aarch64__)
	return &arch_aarch64;
#else
#error "Stacker runs on x86_64 and aarch64"
#endif
}

/* XPACLRI (a hint, so that it does nothing on processors without signatures) strips what this process
 * would sign, which is what all do. */
uint64_t arch_host_pac_mask(void)
{
#if defined(__aarch64__)
	const uint64_t all = UINT64_C(0x007fffffffffffff);
	register uint64_t lr __asm__("x30") = all;

	__asm__("hint #7" : "+r"(lr));
	return all & ~lr;
#else
	return 0;
#endif
}
