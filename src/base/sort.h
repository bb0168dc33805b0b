/*
 * base/sort: qsort for large arrays.
 *
 * musl's is a smoothsort, which moves elements by three memcpy each: some ten thousand of them take ten
 * milliseconds. This is a merge sort from the bottom up: stable, O(n log n), and O(n) for what is in order already.
 */
#ifndef STACKER_BASE_SORT_H
#define STACKER_BASE_SORT_H

#include "base/arena.h"

/* As qsort; elements of at most SORT_SIZE_MAX bytes. Room for as much again is taken from `scratch`, unless they
 * are in order. */
#define SORT_SIZE_MAX 256
void sort(struct arena *scratch, void *at, size_t count, size_t size,
	  int (*compare)(const void *, const void *));

#endif
