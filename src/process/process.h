/*
 * process/process: a live process becomes a snapshot.
 *
 * The only room that knows a live process. Everything that can be done before the target is
 * held is done before: threads listed, maps parsed, mapped files opened, buffers made ready.
 * While it is held: registers, one batched copy of the used stacks, release. Then the rest.
 * Where BPF can be had only threads that run are held.
 */
#ifndef STACKER_PROCESS_PROCESS_H
#define STACKER_PROCESS_PROCESS_H

#include "base/err.h"
#include "snapshot/module_source.h"
#include "snapshot/snapshot.h"

#define CAPTURE_TIMEOUT_NS UINT64_C(1000000000)
/* Of one thread: an 8 MiB main stack used to its end, and room to spare. */
#define CAPTURE_STACK_LIMIT (UINT64_C(16) << 20)
#define CAPTURE_STACK_TOTAL (UINT64_C(256) << 20)

enum capture_way {
	CAPTURE_BY_ANY, /* BPF where it can be had, else ptrace */
	CAPTURE_BY_BPF,
	CAPTURE_BY_PTRACE,
};

struct capture_request {
	uint32_t pid;
	enum capture_way way;
	bool never_stop;      /* threads that run are left out rather than stopped */
	uint64_t timeout_ns;  /* for the threads to stop */
	bool realtime;        /* try SCHED_FIFO, then nice, for the time of the stop */
	bool rolling;         /* hold one thread after the other, each for itself */
	uint64_t stack_limit; /* bytes of one thread's stack */
	uint64_t stack_total; /* bytes of all of them */
	const uint32_t *tids; /* only these threads; NULL: all */
	size_t tid_count;
};

struct captured {
	struct snapshot snapshot;
	int *files;                    /* per module: an open descriptor, or -1 */
	struct module_source *sources; /* per module */
	bool files_lacking;            /* more descriptors would be needed than there may be */
	bool program_found; /* one module is the executable: its file may be mapped by several names */
	int root; /* the process's root directory, if it is another than ours; else -1 */
	struct bytes perf_map; /* text of /tmp/perf-PID.map of the target; may be empty */
};

/* What was missing when this program was built for the capture by BPF; NULL: nothing. */
const char *process_bpf_missing(void);

/* Captures the process. Errors (one line with the cure): ERR_NOT_FOUND, ERR_PERMISSION,
 * ERR_BUSY (already traced), ERR_UNSUPPORTED (kernel thread, zombie, 32-bit), ERR_INTERRUPTED.
 * The target is never left held, whatever happens. */
bool process_capture(struct captured *out, struct arena *arena,
		     const struct capture_request *request, struct err *e);

/* Closes the module files (mappings made of them stay). Not `root`. */
void captured_close(struct captured *captured);

#endif
