/*
 * process/procfs: what /proc says about one process (proc(5)).
 *
 * All reads go through a directory descriptor opened once, so that a pid that is used again by
 * another process gives errors instead of a mixture of two.
 */
#ifndef STACKER_PROCESS_PROCFS_H
#define STACKER_PROCESS_PROCFS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

struct process {
	uint32_t pid;
	/* A thread that still has the memory: pid, or another one when the main thread has
	 * ended while others live (a zombie has neither maps nor memory). */
	uint32_t living;
	int dir;    /* /proc/LIVING */
	int root;   /* /proc/LIVING/root, for paths as the process sees them */
	int task;   /* /proc/PID/task */
	int status; /* /proc/LIVING/status, read again and again */
};

#define PROCESS_CLOSED ((struct process){.dir = -1, .root = -1, .task = -1, .status = -1})

/* The lines of status that decide what can be done. */
struct process_status {
	char name[64];
	char state;
	uint32_t tgid, parent, tracer, threads, uid;
	uint32_t
		namespace_pid; /* in its own pid namespace (last of NStgid); pid when unknown */
	bool kernel_thread;
};

/* ERR_NOT_FOUND when there is no such process; ERR_SYSTEM when /proc is not mounted. */
bool process_open(struct process *process, uint32_t pid, struct err *e);
void process_close(struct process *process);

/* A descriptor of its root directory when its files are not ours (a container, chroot), else
 * -1. */
int process_foreign_root(const struct process *process);

bool process_status(const struct process *process, struct process_status *out, struct err *e);
/* Of another process, by its id; false, and nothing set, when there is none. */
bool process_status_of(uint32_t pid, struct process_status *out);
/* Has it ended? A zombie leader with other threads has not: one of them may be calling exec. */
bool process_has_ended(const struct process_status *status);
/* The same of a process that is not open: or there is none of that id. */
bool process_is_gone(uint32_t pid);

/* One thread's line in stat: name and state, read in one go. False when it is gone. */
struct task_stat {
	char name[64];
	char state;
};
bool task_stat(const struct process *process, uint32_t tid, struct task_stat *out);
/* The thread that traces it; 0: none that we could see. */
uint32_t task_tracer(const struct process *process, uint32_t tid);
/* Gone, or a zombie: it runs no more. */
bool task_has_ended(const struct process *process, uint32_t tid);

/* A thread's line in syscall: the number of the system call it is blocked in (negative: it is
 * blocked elsewhere) and its user stack pointer and pc. False when it runs, or is gone. */
struct task_call {
	int64_t number;
	uint64_t sp, pc;
};
bool task_call(const struct process *process, uint32_t tid, struct task_call *out);

/* Thread ids in the kernel's order (of their making); at most `max` into `tids`.
 * Returns how many there are. */
size_t task_list(const struct process *process, uint32_t *tids, size_t max);

/* "Threads:" of status: how many threads there are now; 0 when it cannot be read. Cheap: does
 * not walk the threads, so it may be asked while they are held. */
uint32_t task_count(const struct process *process);

/* A text of /proc/PID/NAME or /proc/PID/task/TID/NAME (tid 0: the process), final newline
 * removed; NULL when it cannot be read or is empty. */
const char *process_text(const struct process *process, struct arena *arena, uint32_t tid,
			 const char *name);
/* The target of a link such as "exe"; NULL when it cannot be read. */
const char *process_link(const struct process *process, struct arena *arena, const char *name);

#endif
