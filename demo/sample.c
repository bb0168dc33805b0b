/*
 * The program that `make demo` traces: a small mill. Four threads, each busy with something else,
 * so that the trace shows what a trace can show: a call chain with an inlined function (grinder),
 * a thread that waits for work that never comes (packer), one that sleeps (clock), and main, which
 * waits for them all.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct mill {
	pthread_mutex_t lock;
	pthread_cond_t sack_is_full;
	unsigned sacks;
	uint64_t batch; /* grains ground at a time */
	volatile uint64_t flour;
};

/* Inlined into grind(): it has no frame of its own, yet the trace shows it with its line. */
static inline __attribute__((always_inline)) uint64_t crush(uint64_t grain)
{
	for (int turn = 0; turn < 1000; turn++)
		grain = grain * 6364136223846793005u + 1442695040888963407u;
	return grain;
}

static __attribute__((noinline)) uint64_t grind(uint64_t grains)
{
	uint64_t flour = 0;

	__asm__ volatile(""); /* an effect: else it is called once, for all sacks together */
	for (uint64_t grain = 0; grain < grains; grain++)
		flour += crush(grain) >> 32;
	return flour;
}

static __attribute__((noinline)) void fill_sacks(struct mill *mill)
{
	for (;;)
		mill->flour += grind(mill->batch);
}

static void *grinder(void *mill)
{
	fill_sacks(mill);
	return NULL;
}

/* Nobody ever tells it that a sack is full: the bug that the trace would lead to. */
static __attribute__((noinline)) void take_sack(struct mill *mill)
{
	pthread_mutex_lock(&mill->lock);
	while (mill->sacks == 0)
		pthread_cond_wait(&mill->sack_is_full, &mill->lock);
	mill->sacks--;
	pthread_mutex_unlock(&mill->lock);
}

static void *packer(void *mill)
{
	for (;;)
		take_sack(mill);
	return NULL;
}

static __attribute__((noinline)) void wait_for_noon(void)
{
	const struct timespec hour = {.tv_sec = 3600};

	nanosleep(&hour, NULL);
}

static void *clock_tower(void *mill)
{
	for (;;)
		wait_for_noon();
	return mill;
}

int main(void)
{
	static struct mill mill = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.sack_is_full = PTHREAD_COND_INITIALIZER,
		.batch = 1000000,
	};
	static const struct {
		const char *name;
		void *(*work)(void *);
	} workers[] = {
		{"grinder", grinder},
		{"packer", packer},
		{"clock", clock_tower},
	};
	pthread_t threads[sizeof workers / sizeof workers[0]];

	alarm(300); /* should nobody end it */
	for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
		if (pthread_create(&threads[i], NULL, workers[i].work, &mill) != 0)
			return 1;
		pthread_setname_np(threads[i], workers[i].name);
	}
	puts("ready");
	fflush(stdout);
	for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
