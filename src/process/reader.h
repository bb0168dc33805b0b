/*
 * process/reader: memory of another process that a file system has to supply.
 *
 * Where a mapped file's file system hangs, reading its pages waits where nothing can end it, and
 * a tracer that waits there holds its threads as long. So a thread of its own reads them, which
 * can be left behind.
 */
#ifndef STACKER_PROCESS_READER_H
#define STACKER_PROCESS_READER_H

#include <stddef.h>
#include <stdint.h>

/* Copies up to `size` bytes at va of process (or thread) `pid`. Returns how many; 0 when there are
 * none, or none within wait_ns. */
size_t reader_read(uint32_t pid, uint64_t va, void *to, size_t size, uint64_t wait_ns);

#endif
