/*
 * process/bpf/record: what the task iterator writes for each thread. Compiled for the kernel
 * (threads.bpf.c) and for the program that reads it; the same bytes for both.
 */
#ifndef STACKER_PROCESS_BPF_RECORD_H
#define STACKER_PROCESS_BPF_RECORD_H

/* The kernel's types: those of stdint.h are not to be had there. */
#include <linux/types.h>

#define BPF_RECORD_SLOTS 34 /* ARCH_SLOTS of arch/arch.h */

/* How one thread was seen. Read in this order, and ordered for other processors too: before_ns, on_cpu,
 * switches, after_ns, the rest. Two of a thread that was on no processor and has the same number of
 * switches mean that it did not run from the first one's after_ns to the second one's before_ns. */
struct bpf_glance {
	__u32 tid; /* in the pid namespace of the reader */
	__u8 on_cpu;
	__u8 is_ending; /* on its way out, or a zombie */
	__u8 unused[2];
	__u64 before_ns, after_ns; /* CLOCK_MONOTONIC */
	__u64 switches;            /* voluntary and involuntary, since its beginning */
	__u64 exec_id;             /* counts the programs that it has run */
};

struct bpf_record {
	struct bpf_glance seen;
	__u32 state;    /* task_struct.__state */
	__s32 syscall;  /* number of the system call it is in; negative: none */
	__u32 cpu;      /* it runs there, or did so last */
	__s32 priority; /* task_struct.prio: below 100 real-time, 100 to 139 by niceness */
	__u8 is_32bit;  /* its registers are those of a 32-bit program */
	__u8 unused[7];
	char name[16]; /* comm */
	__u64 thread_pointer;
	__u64 registers[BPF_RECORD_SLOTS]; /* as NT_PRSTATUS has them */
};

#endif
