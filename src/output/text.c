/*
 * output/text: the report for people. Its lines are a documented form that scripts rely on
 * (docs/stacker.1, OUTPUT): new facts get lines of their own.
 *
 * Every string of the target goes through sink_foreign: names of threads, files and functions
 * may hold control characters.
 */
#include "base/text.h"
#include "base/sink.h"
#include "output/report.h"

enum {
	ADDRESS_DIGITS = 16,
	REGISTER_COLUMNS = 4,
	REGISTER_NAME_ROOM = 5, /* "RAX: ", "R8:  " */
	MAP_OFFSET_DIGITS = 8,
};

static void put_address(struct sink *sink, uint64_t va)
{
	sink_text(sink, "0x");
	sink_hex(sink, va, ADDRESS_DIGITS);
}

static void put_duration(struct sink *sink, uint64_t ns)
{
	char text[DURATION_SIZE];

	sink_text(sink, duration_format(text, ns));
}

/* "LABEL" and a foreign string on a line; nothing when it is NULL. */
static void put_labelled(struct sink *sink, const char *label, const char *text)
{
	if (!text)
		return;
	sink_text(sink, label);
	sink_foreign(sink, text);
	sink_char(sink, '\n');
}

static const char *or_unknown(const char *text)
{
	return text ? text : "?";
}

static void put_executable(struct sink *sink, const struct snapshot *snapshot)
{
	bool deleted = false;

	if (!snapshot->executable_path)
		return;
	for (size_t i = 0; i < snapshot->module_count; i++)
		deleted |= snapshot->modules[i].is_executable && snapshot->modules[i].deleted;
	sink_text(sink, "Executable: ");
	sink_foreign(sink, snapshot->executable_path);
	sink_text(sink, deleted ? " (deleted)\n" : "\n");
}

/* The head: whose picture this is and what taking it did to the process. */
static void put_origin(struct sink *sink, const struct snapshot *snapshot,
		       const struct report_options *options)
{
	if (!options->from_capture) {
		sink_text(sink, "Attaching to process ");
		sink_decimal(sink, snapshot->pid);
		sink_char(sink, '\n');
		return;
	}
	sink_text(sink, "Capture of process ");
	sink_decimal(sink, snapshot->pid);
	sink_text(sink, " on ");
	sink_foreign(sink, or_unknown(snapshot->hostname));
	sink_text(sink, " at ");
	sink_foreign(sink, or_unknown(snapshot->timestamp));
	sink_char(sink, '\n');
	put_labelled(sink, "Capture file: ", options->capture_name);
	put_executable(sink, snapshot);
}

static void put_stop_time(struct sink *sink, const struct capture_facts *facts)
{
	sink_text(sink, "Process was stopped for: ");
	if (!facts->stopped_ns && facts->method == CAPTURE_UNKNOWN)
		sink_text(sink, "unknown (the capture does not say)");
	else
		put_duration(sink, facts->stopped_ns);
	sink_char(sink, '\n');
}

/* How, in one line: "Capture method: ptrace, raised priority (no BPF: ...)". */
static void put_method(struct sink *sink, const struct capture_facts *facts)
{
	if (facts->method == CAPTURE_UNKNOWN)
		return;
	sink_text(sink, "Capture method: ");
	sink_text(sink, capture_method_text(facts->method));
	if (facts->realtime)
		sink_text(sink, ", raised priority");
	if (facts->method_note) {
		sink_text(sink, " (");
		sink_foreign(sink, facts->method_note);
		sink_char(sink, ')');
	}
	sink_char(sink, '\n');
}

static void put_holds(struct sink *sink, const struct capture_facts *facts)
{
	if (!facts->held_longest_ns || facts->threads_stopped < 2)
		return;
	sink_text(sink, "Each thread was held for: ");
	put_duration(sink, facts->held_median_ns);
	sink_text(sink, " (median), ");
	put_duration(sink, facts->held_longest_ns);
	sink_text(sink, " (longest)\n");
}

/* What a method does that does not stop all threads, and whether the stacks belong together. */
static void put_untouched(struct sink *sink, const struct capture_facts *facts)
{
	if (facts->threads_untouched) {
		sink_text(sink, "Threads read without a stop: ");
		sink_decimal(sink, facts->threads_untouched);
		sink_text(sink, ", stopped: ");
		sink_decimal(sink, facts->threads_stopped);
		sink_char(sink, '\n');
	}
	if (facts->threads_missing)
		sink_text(sink, "More new threads than there was room for: some are missing\n");
	if (facts->threads_found > 1 && facts->instant != INSTANT_UNKNOWN)
		sink_text(sink, facts->instant == INSTANT_ONE
					? "All stacks are of one instant: yes\n"
					: "All stacks are of one instant: no\n");
}

static void put_restarted(struct sink *sink, const struct capture_facts *facts)
{
	if (!facts->calls_restarted)
		return;
	sink_text(sink, "System calls kept from returning EINTR: ");
	sink_decimal(sink, facts->calls_restarted);
	sink_char(sink, '\n');
}

static void put_missing(struct sink *sink, const struct capture_facts *facts)
{
	if (facts->unanswered) {
		sink_text(sink, "Did not answer in time: ");
		sink_foreign(sink, facts->unanswered);
		sink_char(sink, '\n');
	}
	if (facts->threads_left_out) {
		sink_text(sink, "Threads left out: ");
		sink_decimal(sink, facts->threads_left_out);
		sink_char(sink, '\n');
	}
	if (facts->stack_bytes_missing) {
		sink_text(sink, "Stack bytes left out: ");
		sink_decimal(sink, facts->stack_bytes_missing);
		sink_text(sink, " of ");
		sink_decimal(sink, facts->stack_bytes + facts->stack_bytes_missing);
		sink_char(sink, '\n');
	}
}

static void put_map(struct sink *sink, const struct map *map)
{
	sink_text(sink, "  ");
	sink_hex(sink, map->start, ADDRESS_DIGITS);
	sink_char(sink, '-');
	sink_hex(sink, map->end, ADDRESS_DIGITS);
	sink_char(sink, ' ');
	sink_foreign(sink, map->permissions);
	sink_char(sink, ' ');
	sink_hex(sink, map->off, MAP_OFFSET_DIGITS);
	if (map->path[0]) {
		sink_char(sink, ' ');
		sink_foreign(sink, map->path);
	}
	sink_text(sink, map->deleted ? " (deleted)\n" : "\n");
}

static void put_maps(struct sink *sink, const struct snapshot *snapshot)
{
	sink_text(sink, "\n=== Memory Maps ===\n");
	for (size_t i = 0; i < snapshot->map_count; i++)
		put_map(sink, &snapshot->maps[i]);
}

static void put_module(struct sink *sink, const struct snapshot_module *module)
{
	sink_text(sink, "  ");
	sink_hex(sink, module->start, ADDRESS_DIGITS);
	sink_char(sink, ' ');
	sink_foreign(sink, or_unknown(module->path));
	sink_text(sink, " build-id ");
	sink_foreign(sink, or_unknown(module->build_id));
	if (module->has_load_bias) {
		sink_text(sink, " load bias 0x");
		sink_hex(sink, module->load_bias, 1);
	}
	sink_char(sink, '\n');
}

static void put_modules(struct sink *sink, const struct snapshot *snapshot)
{
	sink_text(sink, "\n=== Modules ===\n");
	for (size_t i = 0; i < snapshot->module_count; i++)
		put_module(sink, &snapshot->modules[i]);
}

void report_print_head(FILE *out, const struct snapshot *snapshot,
		       const struct report_options *options)
{
	const struct capture_facts *facts = &snapshot->capture;
	struct sink sink;

	sink_init(&sink, out);
	sink_text(&sink, "Stacker v");
	sink_text(&sink, options->version ? options->version : STACKER_VERSION);
	sink_text(&sink, " - Multi-architecture stack tracer\nTarget architecture: ");
	sink_text(&sink, snapshot->arch->name);
	sink_char(&sink, '\n');
	put_origin(&sink, snapshot, options);
	sink_text(&sink, "Found ");
	sink_decimal(&sink,
		     facts->threads_found ? facts->threads_found : snapshot->thread_count);
	sink_text(&sink, " threads\n");
	put_stop_time(&sink, facts);
	put_method(&sink, facts);
	put_holds(&sink, facts);
	put_untouched(&sink, facts);
	if (options->verbose)
		put_restarted(&sink, facts);
	put_missing(&sink, facts);
	if (options->maps)
		put_maps(&sink, snapshot);
	if (options->maps && options->verbose)
		put_modules(&sink, snapshot);
	if (!options->capture_only)
		sink_text(&sink, "\nSymbolizing stack traces...\n");
	sink_flush(&sink);
	fflush(out);
}

/* One thread: what it is. */

static const char *state_words(char state)
{
	/* proc(5), /proc/PID/stat, field 3. */
	static const struct {
		char state;
		const char *words;
	} rows[] = {
		{'R', "running"},
		{'S', "sleeping"},
		{'D', "uninterruptible sleep"},
		{'T', "stopped by a signal"},
		{'t', "stopped by a tracer"},
		{'Z', "zombie"},
		{'X', "dead"},
		{'I', "idle"},
		{'P', "parked"},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].state == state)
			return rows[i].words;
	return "unknown";
}

static void put_syscall(struct sink *sink, const struct arch *arch, int64_t number)
{
	const char *name = arch_syscall_name(arch, number);

	if (number < 0)
		return;
	sink_text(sink, ", in system call ");
	if (name)
		sink_text(sink, name);
	else
		sink_decimal(sink, (uint64_t)number);
}

static void put_state(struct sink *sink, const struct arch *arch, const struct thread *thread)
{
	if (!thread->state)
		return;
	sink_text(sink, "  State: ");
	sink_foreign(sink, (const char[]){thread->state, '\0'});
	sink_text(sink, " (");
	sink_text(sink, state_words(thread->state));
	sink_char(sink, ')');
	put_syscall(sink, arch, thread->syscall);
	sink_char(sink, '\n');
}

static void put_tracer(struct sink *sink, const struct thread *thread)
{
	if (!thread->tracer_pid)
		return;
	sink_text(sink, "  Traced by: process ");
	sink_decimal(sink, thread->tracer_pid);
	sink_text(sink, " (");
	sink_foreign(sink, or_unknown(thread->tracer_name));
	sink_text(sink, ")\n");
}

static void put_held(struct sink *sink, const struct thread *thread)
{
	if (!thread->held_ns)
		return;
	sink_text(sink, "  Held for: ");
	put_duration(sink, thread->held_ns);
	sink_char(sink, '\n');
}

/* A text of several lines, each indented. */
static void put_kernel_stack(struct sink *sink, const char *text)
{
	if (!text)
		return;
	sink_text(sink, "  Kernel stack:\n");
	while (*text) {
		size_t length = strcspn(text, "\n");

		sink_text(sink, "    ");
		sink_foreign_part(sink, text, length);
		sink_char(sink, '\n');
		text += length + (text[length] == '\n');
	}
}

/* One register: all its digits, whatever the length of its name does to the column. */
static void put_register(struct sink *sink, const char *name, uint64_t value, bool is_last)
{
	char digits[HEX_SIZE];
	size_t length = strlen(name) + 2; /* with ": " */

	sink_text(sink, name);
	sink_text(sink, ": ");
	sink_spaces(sink, length < REGISTER_NAME_ROOM ? REGISTER_NAME_ROOM - length : 0);
	sink_text(sink, "0x");
	sink_bytes(sink, digits, hex_format(digits, value, ADDRESS_DIGITS));
	sink_text(sink, is_last ? "\n" : "  ");
}

static void put_registers(struct sink *sink, const struct arch *arch,
			  const struct thread *thread)
{
	sink_text(sink, "  Registers (");
	sink_text(sink, arch->name);
	sink_text(sink, "):\n");
	for (size_t i = 0; i < arch->register_count; i++) {
		const struct arch_register *reg = &arch->registers[i];
		bool is_last = i % REGISTER_COLUMNS == REGISTER_COLUMNS - 1 ||
			       i + 1 == arch->register_count;

		if (i % REGISTER_COLUMNS == 0)
			sink_text(sink, "    ");
		put_register(sink, reg->name, thread->registers.at[reg->slot], is_last);
	}
}

/* One thread: its stack. */

static void put_offset(struct sink *sink, uint64_t off)
{
	sink_text(sink, "+0x");
	sink_hex(sink, off, 1);
}

/* " at FILE:LINE", as much of it as is known. */
static void put_source(struct sink *sink, const struct report_frame *frame, bool verbose)
{
	sink_text(sink, " at ");
	sink_foreign(sink, frame->file);
	if (!frame->line)
		return;
	sink_char(sink, ':');
	sink_decimal(sink, frame->line);
	if (verbose && frame->column) {
		sink_char(sink, ':');
		sink_decimal(sink, frame->column);
	}
}

/* " (MODULE)", or " (MODULE+0xOFF)" where the offset is all there is. */
static void put_frame_module(struct sink *sink, const struct report_frame *frame)
{
	if (!frame->module)
		return;
	sink_text(sink, " (");
	sink_foreign(sink, frame->module_name ? frame->module_name : frame->module);
	if (!frame->function)
		put_offset(sink, frame->module_off);
	sink_char(sink, ')');
}

static void put_frame(struct sink *sink, size_t number, const struct report_frame *frame,
		      bool verbose)
{
	sink_text(sink, "  #");
	sink_decimal(sink, number);
	sink_text(sink, ": ");
	put_address(sink, frame->pc);
	sink_text(sink, " in ");
	sink_foreign(sink, frame->function ? frame->function : "??");
	if (frame->function && !frame->file && frame->has_function_off)
		put_offset(sink, frame->function_off);
	if (frame->inlined)
		sink_text(sink, " [inlined]");
	if (frame->file)
		put_source(sink, frame, verbose);
	else
		put_frame_module(sink, frame);
	if (verbose) {
		sink_text(sink, " [found by ");
		sink_text(sink, found_by_text(frame->found_by));
		sink_char(sink, ']');
	}
	sink_char(sink, '\n');
}

static void put_elided(struct sink *sink, uint64_t elided)
{
	if (!elided)
		return;
	sink_text(sink, "  [");
	sink_decimal(sink, elided);
	sink_text(sink, " frames of a deep recursion are left out here]\n");
}

static void put_stack_end(struct sink *sink, const struct thread *thread)
{
	sink_text(sink, "  [stack ends: ");
	sink_text(sink, stop_text(thread->stack.stop));
	if (thread->stack.stop_detail) {
		sink_text(sink, " (");
		sink_foreign(sink, thread->stack.stop_detail);
		sink_char(sink, ')');
	}
	sink_text(sink, "]\n");
}

/* Frames that are left out have their numbers; functions inlined into them have none. */
static void put_stack(struct sink *sink, const struct report_thread *thread, bool verbose)
{
	uint64_t number = 0;

	for (size_t i = 0; i < thread->frame_count; i++, number++) {
		if (i == thread->elided_at) {
			put_elided(sink, thread->elided);
			number += thread->elided;
		}
		put_frame(sink, number, &thread->frames[i], verbose);
	}
	if (thread->elided_at >= thread->frame_count)
		put_elided(sink, thread->elided);
	if (thread->frame_count || !thread->thread->left_out)
		put_stack_end(sink, thread->thread);
}

static void put_thread(struct sink *sink, size_t number, const struct report_thread *reported,
		       const struct arch *arch, const struct report_options *options)
{
	const struct thread *thread = reported->thread;

	sink_text(sink, "\n=== Thread ");
	sink_decimal(sink, number);
	sink_text(sink, " (TID: ");
	sink_decimal(sink, thread->tid);
	sink_text(sink, ", Name: '");
	sink_foreign(sink, or_unknown(thread->name));
	sink_text(sink, "') ===\n");
	put_state(sink, arch, thread);
	put_tracer(sink, thread);
	if (options->verbose)
		put_held(sink, thread);
	put_labelled(sink, "  Left out: ", thread->left_out);
	put_labelled(sink, "  Waits in: ", thread->wait_channel);
	put_kernel_stack(sink, thread->kernel_stack);
	if (options->registers && thread->has_registers) {
		put_registers(sink, arch, thread);
		sink_char(sink, '\n');
	}
	put_stack(sink, reported, options->verbose);
}

void report_print_threads(FILE *out, const struct report *report,
			  const struct report_options *options)
{
	struct sink sink;

	sink_init(&sink, out);
	for (size_t i = 0; i < report->thread_count; i++)
		put_thread(&sink, i + 1, &report->threads[i], report->snapshot->arch, options);
	if (report->note_count)
		sink_text(&sink, "\nNotes:\n");
	for (size_t i = 0; i < report->note_count; i++)
		put_labelled(&sink, "  ", report->notes[i]);
	sink_flush(&sink);
}
