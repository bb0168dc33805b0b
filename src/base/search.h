/*
 * base/search: binary search in what is sorted, and the order that most of it is sorted by.
 *
 * FIRST_INDEX(count, i, condition) is the first index below `count` for which the condition, an
 * expression about the index `i`, holds; `count` when there is none. Where it holds for one
 * index it must hold for all that follow.
 */
#ifndef STACKER_BASE_SEARCH_H
#define STACKER_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#define FIRST_INDEX(count, i, condition)                         \
	__extension__({                                          \
		size_t first_ = 0, end_ = (count);               \
		while (first_ < end_) {                          \
			size_t i = first_ + (end_ - first_) / 2; \
			if (condition)                           \
				end_ = i;                        \
			else                                     \
				first_ = i + 1;                  \
		}                                                \
		first_;                                          \
	})

/* For qsort: addresses, times, ids in ascending order. */
static inline int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

#endif
