#include "sample_snapshot.h"

static const uint8_t stack_bytes[] = {0x00, 0xff, 0x10, 0x20, 0x30};
static const uint8_t vdso_bytes[] = {0x7f, 'E', 'L', 'F', 0x02};

#define BYTES_OF(array) ((struct bytes){(array), sizeof(array)})

/* A copy of an array in the arena. */
#define COPY_OF(arena, type, ...)                                   \
	((type *)(void *)arena_copy((arena), (type[]){__VA_ARGS__}, \
				    sizeof((type[]){__VA_ARGS__})))

static struct registers registers_counting(uint64_t from)
{
	struct registers registers;

	for (size_t i = 0; i < ARCH_SLOTS; i++)
		registers.at[i] = from + i * UINT64_C(0x0101010101010101);
	return registers;
}

/* Slots beyond the architecture's are nobody's: they are not written and read as 0. */
static void registers_trim(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->thread_count; i++)
		for (size_t slot = snapshot->arch->slot_count; slot < ARCH_SLOTS; slot++)
			snapshot->threads[i].registers.at[slot] = 0;
}

static struct thread thread_main(struct arena *arena)
{
	struct thread thread = {
		.tid = 1234,
		.name = "main",
		.state = 'S',
		.has_registers = true,
		.registers = registers_counting(UINT64_C(0x7f0000000000)),
		.piece_count = 2,
		.stack_missing = 4096,
		.syscall = 202,
		.held_ns = 1200345,
	};

	thread.pieces = COPY_OF(arena, struct memory_piece, {0x7ffd0000, BYTES_OF(stack_bytes)},
				{UINT64_MAX - 4, {stack_bytes, 4}});
	thread.stack = (struct stack){.count = 3, .stop = STOP_OUTERMOST};
	thread.stack.frames =
		COPY_OF(arena, struct frame, {{0x401136, PC_EXACT}, FOUND_REGISTERS, 0},
			{{0x7f5c3a042520, PC_RETURN}, FOUND_CFI, 0},
			{{0x401190, PC_RETURN}, FOUND_CFI, 0});
	return thread;
}

static struct thread thread_in_signal(struct arena *arena)
{
	struct thread thread = {
		.tid = 1235,
		.name = "worker/0:1",
		.state = 'R',
		.has_registers = true,
		.registers = registers_counting(1),
		.syscall = -1,
		.held_ns = 1,
	};

	thread.stack = (struct stack){
		.count = 6,
		.elided = UINT64_C(123456789012),
		.elided_at = 4,
		.stop = STOP_NO_CFI,
		.stop_detail = "libfoo.so+0x1234",
	};
	thread.stack.frames =
		COPY_OF(arena, struct frame, {{0x401136, PC_EXACT}, FOUND_REGISTERS, 0},
			{{0x401200, PC_RETURN}, FOUND_CFI, 0},
			{{0x7f5c3a042520, PC_EXACT}, FOUND_SIGNAL, 0},
			{{0x401172, PC_RETURN}, FOUND_FRAME_POINTER, 0},
			{{0x401172, PC_RETURN}, FOUND_FRAME_POINTER, 0},
			{{0, PC_RETURN}, FOUND_SCAN, 0});
	return thread;
}

static struct thread thread_left_out(void)
{
	return (struct thread){
		.tid = 1236,
		.name = "stuck",
		.state = 'D',
		.syscall = 0,
		.left_out = "did not stop in 1s",
		.wait_channel = "nfs_wait_bit_killable",
		.kernel_stack =
			"[<0>] nfs_wait_bit_killable+0x1e/0x90\n[<0>] do_syscall_64+0x5b",
		.tracer_pid = 77,
		.tracer_name = "gdb",
		.stack.stop = STOP_NO_REGISTERS,
	};
}

struct snapshot sample_x86_64(struct arena *arena)
{
	struct snapshot snapshot = {
		.arch = &arch_x86_64,
		.stacker_version = "0.1.0",
		.timestamp = "2026-01-02T03:04:05.678Z",
		.hostname = "db-7",
		.kernel = "6.1.0-13-amd64",
		.pid = 1234,
		.executable_path = "/srv/app/bin/app",
		.argument_count = 3,
		.map_count = 5,
		.module_count = 3,
		.thread_count = 3,
		.vdso = {0x7ffd12340000, BYTES_OF(vdso_bytes)},
		.capture =
			{
				.method = CAPTURE_PTRACE,
				.method_note = "BPF is not permitted",
				.realtime = true,
				.capture_ns = 3456000,
				.stopped_ns = 2345000,
				.held_median_ns = 1200345,
				.held_longest_ns = 2300000,
				.threads_found = 3,
				.threads_stopped = 2,
				.threads_left_out = 1,
				.threads_untouched = 1,
				.threads_missing = true,
				.instant = INSTANT_SEVERAL,
				.calls_restarted = 5,
				.stack_bytes = 12345,
				.stack_bytes_missing = 4096,
				.unanswered = "the file system 0:45 of /srv/app",
			},
	};

	snapshot.arguments = COPY_OF(arena, const char *, "app", "--name=a b", "");
	snapshot.maps = COPY_OF(
		arena, struct map,
		{0x400000, 0x401000, 0, "r--p", 0xfd, 1, 77, "/srv/app/bin/app", false, 0},
		{0x401000, 0x402000, 0x1000, "r-xp", 0xfd, 1, 77, "/srv/app/bin/app", false, 0},
		{0x7f5c3a000000, 0x7f5c3a100000, 0, "r-xs", 0x103, 0xabcde, UINT64_MAX,
		 "/usr/lib/libfoo.so", true, 1},
		{0x7f5c3a100000, 0x7f5c3a200000, 0, "rw-p", 0, 0, 0, "", false, -1},
		{0x7ffd12340000, 0x7ffd12342000, 0, "r-xp", 0, 0, 0, "[vdso]", false, 2});
	snapshot.modules =
		COPY_OF(arena, struct snapshot_module,
			{"/srv/app/bin/app", "0123456789abcdef0123456789abcdef01234567",
			 0x400000, 0x402000, true, 0, true, false},
			{"/usr/lib/libfoo.so", NULL, 0x7f5c3a000000, 0x7f5c3a100000, true,
			 0x7f5c3a000000, false, true},
			{"[vdso]", "00", 0x7ffd12340000, 0x7ffd12342000, false, 0, false,
			 false});
	snapshot.threads = COPY_OF(arena, struct thread, thread_main(arena),
				   thread_in_signal(arena), thread_left_out());
	registers_trim(&snapshot);
	return snapshot;
}

struct snapshot sample_aarch64(struct arena *arena)
{
	struct snapshot snapshot = {
		.arch = &arch_aarch64,
		.pid = 7,
		.pac_code_mask = UINT64_C(0x007f000000000000),
		.capture =
			{
				.method = CAPTURE_BPF,
				.threads_found = 1,
				.threads_untouched = 1,
				.instant = INSTANT_ONE,
			},
		.thread_count = 1,
	};
	struct thread thread = {
		.tid = 7,
		.has_registers = true,
		.registers = registers_counting(UINT64_MAX - 40),
		.syscall = -1,
		.stack = {.count = 3,
			  .stop = STOP_NOT_CAPTURED,
			  .stop_detail = "--stack-limit"},
	};

	thread.stack.frames =
		COPY_OF(arena, struct frame, {{0xffffb0001000, PC_EXACT}, FOUND_REGISTERS, 0},
			{{0xffffb0002000, PC_RETURN}, FOUND_LINK_REGISTER, 0},
			{{0xaaaab0003000, PC_RETURN}, FOUND_DEBUG_FRAME, 0});
	snapshot.threads = COPY_OF(arena, struct thread, thread);
	registers_trim(&snapshot);
	return snapshot;
}

struct snapshot sample_hostile(struct arena *arena)
{
	struct snapshot snapshot = sample_x86_64(arena);
	static const char *const names[] = {
		"\x1b[2J\x07",
		"caf\xe9 \xff\xfe",
		"a\\x41\\\\x41\\",
		"\"'&<>\n\r\t\b\f/",
	};

	snapshot.hostname = "h\xc3\xa9\xed\xa0\x80";
	snapshot.executable_path = "/tmp/a\nb \xe2\x80\xae\x80 (deleted)";
	snapshot.arguments = names;
	snapshot.argument_count = sizeof names / sizeof names[0];
	snapshot.maps[0].path = snapshot.executable_path;
	snapshot.maps[1].path = snapshot.executable_path;
	snapshot.modules[0].path = snapshot.executable_path;
	snapshot.maps[2].path = "/\x01\x7f\xc2\x9b\xf0\x9f\x98\x80";
	snapshot.modules[1].path = snapshot.maps[2].path;
	for (size_t i = 0; i < snapshot.thread_count; i++)
		snapshot.threads[i].name = names[i];
	snapshot.threads[1].stack.stop_detail = names[3];
	snapshot.threads[2].left_out = names[0];
	snapshot.threads[2].kernel_stack = names[1];
	snapshot.threads[2].tracer_name = names[0];
	snapshot.capture.method_note = names[2];
	return snapshot;
}
