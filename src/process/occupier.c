#include "process/occupier.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "process/tracee.h"

/* How long we wait for it to arrive. A processor that deals with interrupts is not waited for. */
#define ARRIVAL_MAX_NS UINT64_C(300000)
#define STACK_SIZE ((size_t)32 << 10)

/* Orders: an even number to sleep, an odd one to take a processor, the last one to end. */
#define ORDER_END UINT32_MAX

static void futex_wait(uint32_t *word, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, limit, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

static uint32_t tid_of(const struct occupier *occupier)
{
	return __atomic_load_n(&occupier->tid, __ATOMIC_ACQUIRE);
}

static uint32_t order_of(const struct occupier *occupier)
{
	return __atomic_load_n(&occupier->order, __ATOMIC_ACQUIRE);
}

static void processor_hold(struct occupier *occupier, uint32_t order)
{
	uint64_t end = tracee_now_ns() + OCCUPIED_MAX_NS;
	uint32_t cpu = (uint32_t)sched_getcpu();

	__atomic_store_n(&occupier->place, cpu + 1, __ATOMIC_RELEASE);
	while (order_of(occupier) == order && tracee_now_ns() < end)
		;
	__atomic_store_n(&occupier->place, 0, __ATOMIC_RELEASE);
}

static void *occupier_main(void *context)
{
	struct occupier *occupier = context;
	uint32_t done = 0;

	__atomic_store_n(&occupier->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	futex_wake(&occupier->tid);
	for (;;) {
		uint32_t order = order_of(occupier);

		if (order == ORDER_END)
			return NULL;
		if (order % 2 && order != done)
			processor_hold(occupier, order);
		done = order;
		futex_wait(&occupier->order, order, NULL);
	}
}

/* Wakes it. */
static void order_give(struct occupier *occupier, uint32_t order)
{
	__atomic_store_n(&occupier->order, order, __ATOMIC_RELEASE);
	futex_wake(&occupier->order);
}

/* ---- Which processors ---- */

void cpu_list_read(const char *text, uint64_t *cpus)
{
	char *end;

	for (; *text >= '0' && *text <= '9'; text = *end == ',' ? end + 1 : end) {
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < (unsigned long)CPU_WORDS * 64; first++)
			cpus[first / 64] |= UINT64_C(1) << first % 64;
	}
}

/* Somebody has set them apart, for a thread each that nothing else disturbs: it is alone there and
 * stops at once when it is asked to. Or we were told to stay away from them. */
static void kept_free_find(uint64_t *cpus)
{
	static const char *const lists[] = {
		"/sys/devices/system/cpu/isolated",
		"/sys/devices/system/cpu/nohz_full",
	};
	uint64_t ours[CPU_WORDS] = {0};
	char text[1024];

	syscall(SYS_sched_getaffinity, 0, sizeof ours, ours);
	for (size_t i = 0; i < CPU_WORDS; i++)
		cpus[i] = ~ours[i];
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		SCOPED_FD int fd = open(lists[i], O_RDONLY | O_CLOEXEC);
		ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

		text[got > 0 ? got : 0] = '\0';
		cpu_list_read(text, cpus);
	}
}

static bool bind_to(const struct occupier *occupier, uint32_t cpu)
{
	uint64_t mask[CPU_WORDS] = {0};

	mask[cpu / 64] = UINT64_C(1) << cpu % 64;
	return syscall(SYS_sched_setaffinity, tid_of(occupier), sizeof mask, mask) == 0;
}

/* ---- From outside ---- */

bool occupier_start(struct occupier *occupier)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	*occupier = (struct occupier){0};
	kept_free_find(occupier->kept_free);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	occupier->started =
		pthread_create(&occupier->thread, &attributes, occupier_main, occupier) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	/* Asleep, since it may have to begin on our own processor. */
	if (occupier->started && !tid_of(occupier))
		futex_wait(&occupier->tid, 0, &(struct timespec){0, ARRIVAL_MAX_NS});
	return occupier->started;
}

static bool is_for_taking(const struct occupier *occupier, uint32_t cpu)
{
	return occupier->started && tid_of(occupier) && cpu / 64 < CPU_WORDS &&
	       (int)cpu != sched_getcpu() && !(occupier->kept_free[cpu / 64] >> cpu % 64 & 1);
}

bool occupier_take(struct occupier *occupier, uint32_t cpu)
{
	uint64_t end = tracee_now_ns() + ARRIVAL_MAX_NS;

	if (!is_for_taking(occupier, cpu) || !bind_to(occupier, cpu))
		return false;
	order_give(occupier, order_of(occupier) | 1);
	do {
		if (__atomic_load_n(&occupier->place, __ATOMIC_ACQUIRE) == cpu + 1)
			return true;
	} while (tracee_now_ns() < end);
	occupier_leave(occupier);
	return false;
}

void occupier_leave(struct occupier *occupier)
{
	__atomic_store_n(&occupier->order, (order_of(occupier) | 1) + 1, __ATOMIC_RELEASE);
}

void occupier_end(struct occupier *occupier)
{
	if (!occupier->started)
		return;
	order_give(occupier, ORDER_END);
	pthread_join(occupier->thread, NULL);
	occupier->started = false;
}
