/*
 * process/sightings: what can be known of threads by looking at them again and again.
 *
 * A thread that is on no processor has saved registers, and a stack that only others could write to.
 * The kernel counts how often a thread has left a processor. So two looks between which the count
 * stays the same, with the thread on no processor in both, make what was read between them exact:
 * the thread did not run for a moment of that time. The second look may be a glance.
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
	/* As the last record says: */
	uint32_t cpu;
	bool is_realtime; /* nobody of lower priority drives it from its processor */
};

struct sightings {
	const struct arch *arch; /* of the records */
	struct thread_table *table;
	struct sighting *at; /* per row of the table */
	bool follow_new;     /* threads that are not in the table are added to it */
	uint32_t look;       /* the number of this one */
	size_t seen;         /* threads in this one */
	uint64_t look_ns;    /* how long the last one took */
	uint64_t exec_id;
	bool exec_seen; /* there are pictures of two programs */
};

/* What is left to do. */
struct unsettled {
	size_t without_stack; /* have a picture, their stacks are to be copied */
	size_t others;        /* they were running */
};

void sightings_prepare(struct sightings *sightings, struct arena *arena,
		       const struct arch *arch, struct thread_table *table, bool follow_new);

/* A new look at all threads begins; then each record, or glance, is taken. Records of single threads
 * may be taken at any time. */
void sightings_begin(struct sightings *sightings);
void sighting_take(struct sightings *sightings, const struct bpf_record *record);
void sighting_glance(struct sightings *sightings, const struct bpf_glance *seen);

struct unsettled sightings_unsettled(const struct sightings *sightings);

/* Is there a picture, and its stack is to be copied? Then table->owners is the thread's. */
bool sighting_wants_stack(struct sightings *sightings, size_t row);
/* It is copied. */
void sighting_has_stack(struct sightings *sightings, size_t row);
/* The same of all: table->owners are the threads whose stacks are to be copied now. */
void sightings_want_stacks(struct sightings *sightings);
void sightings_have_stacks(struct sightings *sightings);

/* Threads whose picture was not settled lose it, to be read anew, and are in table->owners. */
void sightings_forget(struct sightings *sightings);

/* The same for good: they stay listed, to be held; with `never_stop` they are then as held_is_spared
 * tells. Some may be gone. */
void sightings_give_up(struct sightings *sightings, bool never_stop);

#endif
