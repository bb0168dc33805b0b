/*
 * One thread for one reading. Rare: stacks are anonymous memory nearly always.
 */
#include "process/reader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

/* Shared by both threads; who lets go last frees it. */
struct reading {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t pid;
	uint64_t va;
	size_t size;
	ssize_t got;
	bool done, abandoned;
	uint8_t bytes[];
};

static void reading_free(struct reading *reading)
{
	pthread_cond_destroy(&reading->changed);
	pthread_mutex_destroy(&reading->lock);
	free(reading);
}

static void *reader_main(void *context)
{
	struct reading *reading = context;
	struct iovec local = {reading->bytes, reading->size};
	struct iovec remote = {(void *)(uintptr_t)reading->va, reading->size};
	ssize_t got = process_vm_readv((pid_t)reading->pid, &local, 1, &remote, 1, 0);
	bool abandoned;

	pthread_mutex_lock(&reading->lock);
	reading->got = got;
	reading->done = true;
	abandoned = reading->abandoned;
	pthread_cond_signal(&reading->changed);
	pthread_mutex_unlock(&reading->lock);
	if (abandoned)
		reading_free(reading);
	return NULL;
}

static struct timespec time_in(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return t;
}

/* True when it is done; else it is the reader's from now on. */
static bool reading_await(struct reading *reading, uint64_t wait_ns)
{
	struct timespec until = time_in(wait_ns);
	bool done;

	pthread_mutex_lock(&reading->lock);
	while (!reading->done &&
	       pthread_cond_timedwait(&reading->changed, &reading->lock, &until) == 0)
		;
	done = reading->done;
	reading->abandoned = !done;
	pthread_mutex_unlock(&reading->lock);
	return done;
}

size_t reader_read(uint32_t pid, uint64_t va, void *to, size_t size, uint64_t wait_ns)
{
	struct reading *reading = calloc(1, sizeof *reading + size);
	pthread_attr_t attr;
	pthread_t thread;
	size_t got = 0;

	if (!reading)
		return 0;
	reading->pid = pid;
	reading->va = va;
	reading->size = size;
	pthread_mutex_init(&reading->lock, NULL);
	pthread_cond_init(&reading->changed, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, reader_main, reading) != 0) {
		reading_free(reading);
		return 0;
	}
	if (!reading_await(reading, wait_ns))
		return 0;
	if (reading->got > 0) {
		got = (size_t)reading->got;
		memcpy(to, reading->bytes, got);
	}
	reading_free(reading);
	return got;
}
