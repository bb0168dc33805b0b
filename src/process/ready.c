#include "process/ready.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* Older C libraries' headers lack it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The smallest there is. */
#define PAGE ((size_t)4096)
/* Pages for one system call. */
#define BATCH 256

/* The first byte of the page after this one. */
static uint8_t *next_page(uint8_t *at)
{
	return at + PAGE - ((uintptr_t)at & (PAGE - 1));
}

static void written_by_program(uint8_t *at, const uint8_t *end)
{
	for (; at < end; at = next_page(at))
		*(volatile uint8_t *)at = *at;
}

/* Has the kernel write one byte of each page, the one that stands there. */
static void written_by_kernel(uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		struct iovec bytes[BATCH];
		size_t count = 0;

		for (; at < end && count < BATCH; at = next_page(at))
			bytes[count++] = (struct iovec){at, 1};
		process_vm_readv(getpid(), bytes, count, bytes, count, 0);
	}
}

/* Whole pages only is what the kernel takes. */
void memory_populate(void *at, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t before = -(uintptr_t)at & (page - 1);

	if (before < size)
		madvise((uint8_t *)at + before, (size - before) & ~(page - 1),
			MADV_POPULATE_WRITE);
}

void memory_ready(void *at, size_t size)
{
	const uint8_t *end = (uint8_t *)at + size;

	/* Many pages at once; fails for what is not aligned to pages, and before Linux 5.14. */
	madvise(at, size, MADV_POPULATE_WRITE);
	written_by_program(at, end);
	written_by_kernel(at, end);
}
