/*
 * snapshot/snapshot: one process at one instant, as plain data without behaviour.
 *
 * Made by process/ from a live process or by snapshot/capture_read from a capture file; all later
 * stages are functions of it and run the same for both, also on a machine of the other
 * architecture. Everything lives in the `run` arena of the program. Strings are bytes as the
 * kernel gave them (no encoding is promised); NULL means "not known".
 */
#ifndef STACKER_SNAPSHOT_SNAPSHOT_H
#define STACKER_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/bytes.h"

/* What a code address means, and so which address is looked up for it (pc_lookup). */
enum pc_kind {
	PC_EXACT,  /* the thread was interrupted here: this instruction comes next */
	PC_RETURN, /* a call returns here: the call is the instruction before */
};

/* A code address of the process, pointer-authentication bits stripped. */
struct pc {
	uint64_t va;
	uint8_t kind; /* enum pc_kind */
};

/* The address by which functions, lines and call frame information are looked up: that of the
 * instruction that runs, or of the call (which may be the last instruction of its function). */
static inline uint64_t pc_lookup(struct pc pc)
{
	return pc.kind == PC_RETURN && pc.va ? pc.va - 1 : pc.va;
}

/* How the unwinder came to a frame. */
#define FOUND_BY(X)                   \
	X(REGISTERS, "registers")     \
	X(CFI, "cfi")                 \
	X(DEBUG_FRAME, "debug_frame") \
	X(FRAME_POINTER, "fp")        \
	X(LINK_REGISTER, "lr")        \
	X(SIGNAL, "signal")           \
	X(SCAN, "scan")               \
	X(GO, "go")                   \
	X(RECORDED, "recorded") /* a capture of elsewhere that does not say */
enum found_by {
#define X(id, text) FOUND_##id,
	FOUND_BY(X)
#undef X
};

/* Why a stack ends. The text is the vocabulary of reports and captures. */
#define STOPS(X)                                                             \
	X(UNKNOWN, "unknown") /* a capture of elsewhere that does not say */ \
	X(OUTERMOST, "outermost frame")                                      \
	X(NO_REGISTERS, "no registers")                                      \
	X(NO_MODULE, "no module at this address")                            \
	X(NO_CFI, "no unwind information")                                   \
	X(BAD_CFI, "damaged unwind information")                             \
	X(NOT_CAPTURED, "outside the captured stack")                        \
	X(UNREADABLE, "unreadable memory")                                   \
	X(NOT_CODE, "return address is not code")                            \
	X(NO_PROGRESS, "no progress")                                        \
	X(LIMIT, "frame limit")
enum stop {
#define X(id, text) STOP_##id,
	STOPS(X)
#undef X
};

/* NULL-free lookups between the enums and their texts; *_named returns false for unknown text. */
const char *found_by_text(enum found_by found_by);
bool found_by_named(const char *text, enum found_by *out);
const char *stop_text(enum stop stop);
bool stop_named(const char *text, enum stop *out);

struct frame {
	struct pc pc;
	uint8_t found_by; /* enum found_by */
	/* Where on the stack it stands: its SP, or where only a frame record is known, the lowest
	 * value that SP can have. 0: not known (a capture file does not say). */
	uint64_t stack_va;
};

/* Innermost frame first. When `elided` frames were left out of the middle (a runaway recursion),
 * they belong before frames[elided_at]. */
struct stack {
	struct frame *frames;
	size_t count;
	uint64_t elided;
	size_t elided_at;
	enum stop stop;
	const char *stop_detail; /* module+0xOFF, address, option that widens it; or NULL */
};

/* One contiguous piece of memory copied while its thread was held. */
struct memory_piece {
	uint64_t va;
	struct bytes bytes;
};

struct thread {
	uint32_t tid;
	const char *name; /* comm */
	char state;       /* R, S, D, T, t, Z ... before the stop; 0: not known */
	bool has_registers;
	struct registers registers;
	struct memory_piece *pieces; /* the used part of its stack first; may be none */
	size_t piece_count;
	uint64_t stack_missing; /* bytes of the used stack that a limit cut off; 0: none */
	struct stack stack;     /* filled by unwind/ or from the capture */
	const char *left_out; /* why it has no registers: "did not stop in 1s", ...; or NULL */
	const char *wait_channel; /* of threads that are left out, where readable */
	const char *kernel_stack;
	uint32_t
		tracer_pid; /* the process that traces it, when that is why it is stopped; or 0 */
	const char *tracer_name;
	int64_t syscall;  /* number of the system call it is in; -1: none or not known */
	uint64_t held_ns; /* from its stop to its release; 0: not held */
};

/* One line of /proc/PID/maps. */
struct map {
	uint64_t start, end, off;
	char permissions[5]; /* "r-xp" */
	uint32_t device_major, device_minor;
	uint64_t inode;
	const char *path; /* "" for anonymous; octal escapes undone */
	bool deleted;     /* the kernel said " (deleted)", and it is not part of the name */
	int32_t module;   /* index into modules, -1: none */
};

#define MAP_READABLE(map) ((map)->permissions[0] == 'r')
#define MAP_WRITABLE(map) ((map)->permissions[1] == 'w')
#define MAP_EXECUTABLE(map) ((map)->permissions[2] == 'x')

/* One mapped ELF file, or the vDSO. */
struct snapshot_module {
	const char *path;     /* in the target's view; "[vdso]" for the vDSO */
	const char *build_id; /* lower-case hex, of the running image where readable; or NULL */
	uint64_t start, end;  /* first mapping's start, last mapping's end */
	bool has_load_bias;
	uint64_t load_bias; /* va - ea of its code */
	bool is_executable; /* the program itself */
	bool deleted;       /* as of struct map: no file has its name any more */
};

enum capture_method { CAPTURE_PTRACE, CAPTURE_PTRACE_ROLLING, CAPTURE_BPF, CAPTURE_UNKNOWN };
const char *capture_method_text(enum capture_method method);
bool capture_method_named(const char *text, enum capture_method *out);

/* The name of code made at run time, for one address of a stack (as pc_lookup gives it). */
struct code_name {
	uint64_t va;
	uint64_t start; /* where its function begins */
	const char *function;
};

/* Whether there is a moment at which all threads were as they are shown. */
enum capture_instant { INSTANT_UNKNOWN, INSTANT_ONE, INSTANT_SEVERAL };

/* What the capture did to the process, truthfully. */
struct capture_facts {
	enum capture_method method;
	const char *method_note; /* why it is not the better method, in one phrase; or NULL */
	bool realtime;           /* the stop ran at raised priority */
	uint64_t capture_ns;     /* taking all pictures; 0: not known */
	uint64_t stopped_ns;     /* first stop to last release; 0: nothing was stopped */
	uint64_t held_median_ns, held_longest_ns;
	uint32_t threads_found, threads_stopped, threads_left_out;
	uint32_t threads_untouched; /* read without a stop */
	bool threads_missing;       /* there were more new ones than there was room for */
	enum capture_instant instant;
	uint32_t calls_restarted; /* blocked system calls kept from returning EINTR */
	uint64_t stack_bytes;     /* copied in all */
	uint64_t stack_bytes_missing;
	const char *unanswered; /* what did not answer in time, in one phrase; or NULL */
};

struct snapshot {
	const struct arch *arch;
	const char *stacker_version; /* of the program that captured */
	const char *timestamp;       /* RFC 3339, UTC */
	const char *hostname;
	const char *kernel; /* uname -r */
	uint32_t pid;
	const char *executable_path;
	const char *const *arguments; /* argv */
	size_t argument_count;
	struct map *maps; /* by address */
	size_t map_count;
	struct snapshot_module *modules;
	size_t module_count;
	struct thread *threads; /* by tid; the main thread first */
	size_t thread_count;
	struct code_name *code_names; /* by va; of frames without a module */
	size_t code_name_count;
	const char *code_names_left_out; /* why some or all are not there; or NULL */
	struct memory_piece vdso;        /* its image; len 0: none */
	uint64_t
		pac_code_mask; /* bits of a code address that hold a signature; 0: none or not known */
	struct capture_facts capture;
};

/* The name recorded for exactly this address, or NULL. */
const struct code_name *snapshot_code_name(const struct snapshot *snapshot, uint64_t va);

/* The map that holds va, or NULL. */
const struct map *snapshot_map_at(const struct snapshot *snapshot, uint64_t va);

#endif
