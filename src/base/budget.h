/*
 * base/budget: what one run may use, whatever files and processes claim.
 *
 * Memory: everything whose size somebody else decides draws on one allowance: contents that are
 * decompressed, tables made of them, section headers, trees of JSON. It is the least of BUDGET_MEMORY
 * (or --max-memory), half of what the machine has available and half of what the control groups
 * leave (base/cgroup). Pages of mapped files do not count: the kernel takes them back when it
 * needs them. Nor do the stacks that were asked for (--max-stack-total), or what is in proportion to
 * the threads and frames that are shown.
 *
 * Work: bytes looked at, or steps of about that cost, where a file can make them many. It is
 * BUDGET_WORK_PER_BYTE times the memory.
 *
 * Who is refused leaves something out, and says so; budget_refused() makes the report partial.
 * All of this may be used by several threads at once.
 */
#ifndef STACKER_BASE_BUDGET_H
#define STACKER_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Together with the rest of a run less than 512 MiB. The largest that real programs were seen to need is
 * 180 MB, for a compressed libjvm. */
#define BUDGET_MEMORY (UINT64_C(384) << 20)
/* 6 thousand millions: some seconds, at about a nanosecond each. */
#define BUDGET_WORK_PER_BYTE 16

/* Sets both anew, with nothing in use and nothing refused. Until it is called they are set at the
 * first question, by BUDGET_MEMORY and what the machine says. */
void budget_allow(uint64_t memory);
/* The same for --max-memory; 0: BUDGET_MEMORY. Not more than the machine has. */
void budget_begin(uint64_t memory);

/* Draws bytes of memory; false: so much is not left. */
bool budget_take(uint64_t bytes);
void budget_give_back(uint64_t bytes);
uint64_t budget_held(void);
uint64_t budget_left(void);

/* For a growing array (VEC) of `size` bytes an item, before each vec_push: draws what it is going to
 * grow by. */
bool budget_has_room(size_t count, size_t capacity, size_t size);

/* Draws work; false: so much is not left, and none is from now on. */
bool budget_work(uint64_t amount);
uint64_t budget_work_left(void);

/* For who refuses something by limits of its own. */
void budget_refuse(void);
/* Something was refused since the beginning. */
bool budget_refused(void);

#endif
