/*
 * A victim that feels how long it is held: one thread reads the clock without pause and keeps the
 * longest gap; THREADS others wait in a call chain of DEPTH frames, or compute (every second one
 * with "busy"). With "idle" nobody reads the clock: a program for other measurements.
 *
 *     clock_gap THREADS DEPTH [busy|idle]
 *
 * Prints "ready", then for each line on stdin the longest gap since the last one, in nanoseconds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t longest;
static atomic_int waiting;
static int depth, busy;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void *watch(void *context)
{
	uint64_t last;

	/* Among threads that compute, its own gaps must not be those of the scheduler. */
	if (busy)
		setpriority(PRIO_PROCESS, 0, -20);
	last = now_ns();
	for (;;) {
		uint64_t now = now_ns();

		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	return context;
}

static volatile unsigned long sink;

__attribute__((noinline)) static int descend(int level, int computes)
{
	volatile char frame[64];

	frame[0] = (char)level;
	if (level > 0)
		return descend(level - 1, computes) + frame[0];
	waiting++;
	while (computes)
		sink++;
	pause();
	return frame[0];
}

static void *waiter(void *context)
{
	long number = (long)context;

	descend(depth, busy && number % 2);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_attr_t attributes;
	pthread_t thread;
	char line[16];

	depth = argc > 2 ? atoi(argv[2]) : 30;
	busy = argc > 3 && strcmp(argv[3], "busy") == 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&thread, &attributes, waiter, (void *)i) != 0)
			return 1;
	while (waiting < threads)
		sched_yield();
	if (!(argc > 3 && strcmp(argv[3], "idle") == 0) &&
	    pthread_create(&thread, &attributes, watch, NULL) != 0)
		return 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		printf("%ju\n", (uintmax_t)atomic_exchange(&longest, 0));
		fflush(stdout);
	}
	return 0;
}
