/*
 * process/sightings: what can be known of threads by looking at them again and again.
 *
 * A thread that is on no processor has saved registers, and a stack that only others could write to.
 * The kernel counts how often a thread has left a processor. So two looks between which the count
 * stays the same, with the thread on no processor in both, make what was read between them exact:
 * the thread did not run for a moment of that time.
 */
#ifndef STACKER_PROCESS_SIGHTINGS_H
#define STACKER_PROCESS_SIGHTINGS_H

#include "process/bpf/record.h"
#include "process/threads.h"

/* One thread, beside its row in the table. */
struct sighting {
	uint64_t switches; /* of the picture */
	uint64_t thread_pointer;
	bool has_picture; /* registers, of from_ns on */
	bool has_stack;   /* copied after them */
	uint32_t look;    /* the last one that showed it; 0: none */
	bool is_over;     /* it ran after its picture was settled: the picture's time is over */
};

struct sightings {
	struct thread_table *table;
	struct sighting *at; /* per row of the table */
	bool follow_new;     /* threads that are not in the table are added to it */
	uint32_t look;       /* the number of this one */
	size_t seen;         /* threads in this one */
	uint64_t exec_id;
	bool exec_seen; /* there are pictures of two programs */
};

/* What is left to do. */
struct unsettled {
	size_t without_stack; /* have a picture, their stacks are to be copied */
	size_t others;        /* they were running */
};

void sightings_prepare(struct sightings *sightings, struct arena *arena,
		       struct thread_table *table, bool follow_new);

/* A new look at all threads begins; then each record is taken. */
void sightings_begin(struct sightings *sightings);
void sighting_take(struct sightings *sightings, const struct bpf_record *record);

struct unsettled sightings_unsettled(const struct sightings *sightings);

/* Makes table->owners the threads whose stacks are to be copied now. */
void sightings_want_stacks(struct sightings *sightings);
/* They are copied. */
void sightings_have_stacks(struct sightings *sightings);

/* Threads whose picture was not settled lose it, and are in table->owners. They stay listed, to be
 * held; with `never_stop` they are then as held_is_spared tells. Some may be gone. */
void sightings_give_up(struct sightings *sightings, bool never_stop);

#endif
