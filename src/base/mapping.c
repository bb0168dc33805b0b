#include "base/mapping.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/search.h"

/* A list that only grows at its head, so that the signal handler, and threads that fault at the
 * same time, can walk it without a lock. What is forgotten keeps its node, for the next
 * mapping. */
struct mapping {
	const uint8_t *_Atomic at; /* NULL: forgotten */
	size_t len;
	const char *name;
	struct mapping_stamp stamp;
	bool in_memory; /* a file that nobody finds again (memfd_create) */
	uint64_t weight;
	atomic_bool cut;
	struct mapping *next, *next_free; /* next_free: of those that are forgotten */
};

/* Debug information shrinks to a fifth at best, in pieces as file systems compress it. */
#define PACKED_RATIO_MAX 8
#define WEIGHT_LEAST (UINT64_C(1) << 20)

#define SORTED_FIRST 256

static struct mapping *_Atomic head;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

/* For whoever is no signal handler: the same ones, the highest address first. The kernel gives each mapping a
 * lower address than those before, so a new one mostly comes last. Under `writing`, as is `free_nodes`. */
static struct {
	struct mapping **at;
	size_t count, capacity;
} sorted;
static struct mapping *free_nodes;

/* Of those that begin at `va` or below, the first. */
static size_t sorted_index(const uint8_t *va)
{
	return FIRST_INDEX(sorted.count, i, atomic_load(&sorted.at[i]->at) <= va);
}

/* What is going to begin there; false: there is no memory. */
static bool sorted_add(struct mapping *m, const uint8_t *va)
{
	size_t index = sorted_index(va);

	if (sorted.count == sorted.capacity) {
		size_t capacity = sorted.capacity ? 2 * sorted.capacity : SORTED_FIRST;
		struct mapping **at = realloc(sorted.at, capacity * sizeof *at);

		if (!at)
			return false;
		sorted.at = at;
		sorted.capacity = capacity;
	}
	memmove(&sorted.at[index + 1], &sorted.at[index],
		(sorted.count - index) * sizeof *sorted.at);
	sorted.at[index] = m;
	sorted.count++;
	return true;
}

static void sorted_remove(size_t index)
{
	sorted.count--;
	memmove(&sorted.at[index], &sorted.at[index + 1],
		(sorted.count - index) * sizeof *sorted.at);
}

static struct mapping *mapping_find(const uint8_t *va)
{
	struct mapping *m = NULL;
	size_t index;

	pthread_mutex_lock(&writing);
	index = sorted_index(va);
	if (index < sorted.count && (size_t)(va - sorted.at[index]->at) < sorted.at[index]->len)
		m = sorted.at[index];
	pthread_mutex_unlock(&writing);
	return m;
}

/* Without a lock, for the signal handler. */
static struct mapping *mapping_of(const uint8_t *va)
{
	for (struct mapping *m = atomic_load(&head); m; m = m->next) {
		const uint8_t *at = atomic_load(&m->at);

		if (at && va >= at && (size_t)(va - at) < m->len)
			return m;
	}
	return NULL;
}

/* Everything from the page on: what is behind the new end of a file is gone too. */
static bool rest_becomes_zeros(struct mapping *m, uint8_t *page)
{
	size_t len = m->len - (size_t)(page - atomic_load(&m->at));

	atomic_store(&m->cut, true);
	return mmap(page, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	       page;
}

static void bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	struct mapping *m = info->si_code > 0 ? mapping_of(info->si_addr) : NULL;

	(void)context;
	if (m && rest_becomes_zeros(m, (uint8_t *)page))
		return;
	signal(number, SIG_DFL);
	kill(getpid(),
	     number); /* waits until we return; a faulting access comes again anyway */
}

void mappings_guard(void)
{
	struct sigaction action = {.sa_sigaction = bus_error, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

static struct mapping *node_take(void)
{
	struct mapping *m = free_nodes;

	if (m) {
		free_nodes = m->next_free;
		return m;
	}
	m = calloc(1, sizeof *m);
	if (m) {
		m->next = atomic_load(&head);
		atomic_store(&head, m);
	}
	return m;
}

static void node_give_back(struct mapping *m)
{
	m->next_free = free_nodes;
	free_nodes = m;
}

static uint64_t ns_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

/* File systems that do not tell how much they store (FUSE) are believed. */
static uint64_t weight_of(const struct stat *st)
{
	uint64_t stored = (uint64_t)st->st_blocks * 512, size = (uint64_t)st->st_size;

	if (!stored || stored >= size / PACKED_RATIO_MAX)
		return size;
	stored = stored * PACKED_RATIO_MAX + WEIGHT_LEAST;
	return stored < size ? stored : size;
}

void mapping_add(struct bytes mapping, const char *name, const struct stat *st)
{
	struct mapping *m;

	pthread_mutex_lock(&writing);
	m = node_take();
	if (m) { /* else it is unguarded, as all would be without us */
		m->len = mapping.len;
		m->name = name;
		m->in_memory = st->st_nlink == 0 && major(st->st_dev) == 0;
		m->stamp = (struct mapping_stamp){
			.dev = st->st_dev,
			.ino = st->st_ino,
			.size = (uint64_t)st->st_size,
			.mtime_ns = ns_of(&st->st_mtim),
			.ctime_ns = ns_of(&st->st_ctim),
		};
		m->weight = weight_of(st);
		atomic_store(&m->cut, false);
		if (sorted_add(m, mapping.at))
			atomic_store(&m->at, mapping.at);
		else
			node_give_back(m);
	}
	pthread_mutex_unlock(&writing);
}

void mapping_forget(struct bytes mapping)
{
	struct mapping *m;
	size_t index;

	pthread_mutex_lock(&writing);
	index = sorted_index(mapping.at);
	m = index < sorted.count ? sorted.at[index] : NULL;
	if (m && m->at == mapping.at) {
		sorted_remove(index);
		atomic_store(&m->at, NULL);
		node_give_back(m);
	}
	pthread_mutex_unlock(&writing);
}

bool mapping_stamp(struct bytes mapping, struct mapping_stamp *out)
{
	struct mapping *m = mapping.len ? mapping_find(mapping.at) : NULL;

	if (!m || m->in_memory || atomic_load(&m->at) != mapping.at || m->len != mapping.len)
		return false;
	*out = m->stamp;
	return true;
}

uint64_t mapping_weight(struct bytes mapping)
{
	struct mapping *m = mapping.len ? mapping_find(mapping.at) : NULL;

	return m && m->weight < mapping.len ? m->weight : mapping.len;
}

void mapping_release(struct bytes part)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)part.at + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)part.at + part.len) & ~(page - 1);
	struct mapping *m = part.len ? mapping_find(part.at) : NULL;

	/* Memory of our own does not come back. */
	if (m && begin < end && end - (uintptr_t)atomic_load(&m->at) <= m->len)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

bool mapping_is_cut(struct bytes mapping)
{
	struct mapping *m = mapping.len ? mapping_find(mapping.at) : NULL;

	return m && atomic_load(&m->cut);
}

const char *mapping_next_cut(size_t *after)
{
	size_t index = 0;

	for (struct mapping *m = atomic_load(&head); m; m = m->next) {
		if (index++ < *after || !atomic_load(&m->at) || !atomic_load(&m->cut))
			continue;
		*after = index;
		return m->name;
	}
	return NULL;
}
