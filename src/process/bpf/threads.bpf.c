/*
 * The task iterator: one record for each thread of a process, read without touching the thread; or
 * one glance, which tells only whether a record still holds. Both are one program, since loading one
 * takes longer than all else that a capture of a small process does.
 *
 * It runs in the kernel, in the context of the program that reads the iterator's file. A thread that
 * is not on a processor has its user registers at the top of its kernel stack, where the entry code
 * saved them. The kernel's structures are named here with the few members that are needed; their
 * offsets are put in when the program is loaded, from the kernel's own type information (CO-RE).
 *
 * Following a pointer of the kernel's by the plain operator makes the verifier search all of that type
 * information several times (since Linux 6.4: for "NAME__safe_rcu" and the like), anew on each way
 * through the program: 1 ms or more. So there is one such pointer, followed before the first branch;
 * the others are read as numbers.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "process/bpf/record.h"

/* include/linux/sched.h; both are part of what /proc/PID/stat shows as flags. */
#define PF_EXITING 0x4
/* Slots of NT_PRSTATUS. */
#define X86_ORIG_RAX 15
#define X86_CS 17
#define X86_FROM_PT_REGS 21 /* struct pt_regs; what follows is in thread_struct */
#define X86_USER_CS 0x33    /* 64-bit code */
#define X86_XEN_USER_CS 0xe033
#define ARM64_PSTATE 33
#define ARM64_FROM_PT_REGS 34
#define ARM64_MODE32 0x10

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned short es, ds, fsindex, gsindex;
	unsigned long fsbase, gsbase;
};
#elif defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};

struct pt_regs {
	__s32 syscallno;
};
#endif

struct thread_info {
	unsigned int cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state, flags;
	int exit_state, on_cpu, prio, pid;
	unsigned long nvcsw, nivcsw;
	__u64 self_exec_id;
	struct pid *thread_pid;
	char comm[16];
	struct thread_struct thread;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set by the reader before it begins: whether it wants no more than glances. */
__u32 glances_only;

/* The thread's id as the reader's pid namespace has it (the kernel's pid_nr_ns), or 0. In the first
 * one that is what the kernel itself calls it. */
static __u32 tid_for_reader(const struct task_struct *task)
{
	const struct task_struct *reader = (const void *)bpf_get_current_task();
	unsigned int level = BPF_CORE_READ(reader, thread_pid, level);
	const struct pid *pid;
	const char *numbers;
	__u32 tid = 0;

	if (level == 0)
		return (__u32)task->pid;
	pid = BPF_CORE_READ(task, thread_pid);
	if (!pid || BPF_CORE_READ(pid, level) < level)
		return 0;
	numbers = (const char *)&pid->numbers[0];
	numbers += level * bpf_core_type_size(struct upid);
	bpf_core_read(&tid, sizeof tid, &((const struct upid *)(const void *)numbers)->nr);
	return tid;
}

#if defined(__TARGET_ARCH_x86)

/* Those behind pt_regs were saved when the thread left its processor. */
static void registers_read(struct bpf_record *record, const struct task_struct *task)
{
	const struct thread_struct *thread = &task->thread;
	__u64 *rest = record->registers + X86_FROM_PT_REGS, cs;

	bpf_probe_read_kernel(record->registers, X86_FROM_PT_REGS * sizeof(__u64),
			      (const void *)bpf_task_pt_regs((struct task_struct *)task));
	rest[0] = record->thread_pointer = thread->fsbase;
	rest[1] = thread->gsbase;
	rest[2] = thread->ds;
	rest[3] = thread->es;
	rest[4] = thread->fsindex;
	rest[5] = thread->gsindex;
	cs = record->registers[X86_CS] & 0xffff;
	record->syscall = (__s32)record->registers[X86_ORIG_RAX];
	record->is_32bit = cs != X86_USER_CS && cs != X86_XEN_USER_CS;
}

#elif defined(__TARGET_ARCH_arm64)

static void registers_read(struct bpf_record *record, const struct task_struct *task)
{
	const struct pt_regs *saved =
		(const void *)bpf_task_pt_regs((struct task_struct *)task);

	bpf_probe_read_kernel(record->registers, ARM64_FROM_PT_REGS * sizeof(__u64), saved);
	bpf_core_read(&record->syscall, sizeof record->syscall, &saved->syscallno);
	record->thread_pointer = task->thread.uw.tp_value;
	record->is_32bit = (record->registers[ARM64_PSTATE] & ARM64_MODE32) != 0;
}

#endif

static void glance(struct bpf_glance *seen, const struct task_struct *task)
{
	seen->tid = tid_for_reader(task);
	seen->before_ns = bpf_ktime_get_ns();
	seen->on_cpu = task->on_cpu != 0;
	/* A switch is counted before on_cpu is cleared. Reading the clock keeps these two loads in
	 * order: it waits for the reads before it (smp_rmb of its sequence counter). */
	seen->after_ns = bpf_ktime_get_ns();
	seen->switches = task->nvcsw + task->nivcsw;
	seen->after_ns = bpf_ktime_get_ns();
	seen->is_ending = task->exit_state != 0 || (task->flags & PF_EXITING);
	seen->exec_id = task->self_exec_id;
}

/* A kernel for one processor does not note which. */
static __u32 processor_of(const struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : 0;
}

SEC("iter/task")
int thread_read(struct bpf_iter__task *context)
{
	const struct task_struct *task = context->task;
	struct seq_file *out = context->meta->seq;
	struct bpf_record record = {0};

	asm volatile("" : "+r"(out)); /* here, and not on each way */
	if (!task)
		return 0; /* the end of the list */
	glance(&record.seen, task);
	if (glances_only) {
		bpf_seq_write(out, &record.seen, sizeof record.seen);
		return 0;
	}
	record.state = task->__state;
	record.cpu = processor_of(task);
	record.priority = task->prio;
	bpf_probe_read_kernel(record.name, sizeof record.name, task->comm);
	if (!record.seen.on_cpu)
		registers_read(&record, task);
	bpf_seq_write(out, &record, sizeof record);
	return 0;
}
