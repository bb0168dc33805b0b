/*
 * process/ready: memory that costs nothing more when it is first written to.
 *
 * What is filled while a target is held must not be faulted in then. Three things make a first
 * write slow: a page that is not there; in a virtual machine one that the hypervisor has yet to
 * back; and, where the kernel has page tables of its own (page table isolation) and the
 * hypervisor shadows page tables, one that only the program has written to so far: ten
 * microseconds a page, which was half of the time that 100 threads were held.
 */
#ifndef STACKER_PROCESS_READY_H
#define STACKER_PROCESS_READY_H

#include <stddef.h>

/* Makes [at, at + size) ready for writes by the program and by system calls. What is there
 * stays. */
void memory_ready(void *at, size_t size);

/* The first half of it: many pages with one fault, where the kernel can (Linux 5.14). */
void memory_populate(void *at, size_t size);

#endif
