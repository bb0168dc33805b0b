/*
 * process/iterator: the threads of a process by the kernel's task iterator (BPF), without touching
 * one of them. Needs Linux 6.1 with its type information (BTF), and CAP_BPF with CAP_PERFMON.
 */
#ifndef STACKER_PROCESS_ITERATOR_H
#define STACKER_PROCESS_ITERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "process/bpf/record.h"

struct iterator {
	int program;
	int all;                /* bound to the process; -1: none */
	uint32_t *glances_only; /* a variable of the program's */
};

#define ITERATOR_CLOSED ((struct iterator){-1, -1, NULL})

/* NULL when it is built in; else what was missing when this program was built. */
const char *iterator_missing(void);

/* Loads the program and binds it to a process. False with one phrase that says why it cannot be
 * had here: ERR_PERMISSION or ERR_UNSUPPORTED. */
bool iterator_open(struct iterator *iterator, uint32_t pid, struct err *e);
bool iterator_is_open(const struct iterator *iterator);

/* Reads all threads once, in the kernel's order; calls `take` for each. Allocates nothing. False with
 * ERR_SYSTEM when the kernel refuses. */
bool iterator_read(const struct iterator *iterator,
		   void (*take)(void *context, const struct bpf_record *record), void *context,
		   struct err *e);
/* The same, in a third of the time. */
bool iterator_glance(const struct iterator *iterator,
		     void (*take)(void *context, const struct bpf_glance *glance),
		     void *context, struct err *e);

/* One thread alone: a descriptor for iterator_read_one, or -1. */
int iterator_of_thread(const struct iterator *iterator, uint32_t tid);
/* False when the thread is gone, or the kernel refuses. */
bool iterator_read_one(int of_thread, struct bpf_record *record);

void iterator_close(struct iterator *iterator);

#endif
