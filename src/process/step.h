/*
 * process/step: what the capturing process asks of the target at this moment.
 *
 * Whatever touches another process may not answer: its memory's lock may be held, a file system
 * under its files may be dead, a page may be served by a thread that is stopped. Before each such
 * call the capturing process says here what it is about to ask; the one that waits for it
 * (process/captor) reads it, and knows what to do without.
 */
#ifndef STACKER_PROCESS_STEP_H
#define STACKER_PROCESS_STEP_H

#include <stddef.h>
#include <stdint.h>

enum step {
	STEP_WORK,    /* nothing that somebody else has to answer */
	STEP_PROCESS, /* what everything is known by: /proc/PID, status, stat */
	STEP_PROGRAM, /* the first bytes of its file */
	STEP_MAPS,    /* /proc/PID/maps */
	STEP_SPACE,   /* any memory at all: its vDSO */
	STEP_FILE, /* a mapped file, or the page of it that holds its headers; number: device */
	STEP_ATTACH,    /* PTRACE_SEIZE; number: the thread */
	STEP_STOP,      /* threads, to stop: the hold has a limit of its own for that */
	STEP_STACKS,    /* memory of stacks; number: address of the first */
	STEP_TEXTS,     /* files of one thread that take the lock of exec; number: the thread */
	STEP_ROOT,      /* its root directory */
	STEP_PERF_MAP,  /* its file of names of code made at run time */
	STEP_ARGUMENTS, /* /proc/PID/cmdline */
};

struct arena;

/* In memory that both processes see. One thread writes at a time. */
struct step_at {
	uint32_t count; /* goes up with every step */
	uint32_t what;  /* enum step */
	uint64_t number;
	const char *text; /* the file's path; or NULL */
};

/* From now on steps are shown there; NULL: nowhere. */
void steps_show(struct step_at *where);

void step_begin(enum step what, uint64_t number, const char *text);

/* The same has answered in part, and is asked for more. */
void step_again(void);

/* What was asked has answered. */
static inline void step_end(void)
{
	step_begin(STEP_WORK, 0, NULL);
}

/* What was asked, for the report. */
const char *step_words(struct arena *arena, uint32_t pid, const struct step_at *step);

/* A device as a step's number. */
static inline uint64_t step_device(uint32_t device_major, uint32_t device_minor)
{
	return (uint64_t)device_major << 32 | device_minor;
}

#endif
