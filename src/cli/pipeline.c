#include "cli/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/file.h"
#include "base/mapping.h"
#include "base/signals.h"
#include "base/urgency.h"
#include "cli/confine.h"
#include "cli/named.h"
#include "elf/debugfile.h"
#include "symbol/code_names.h"
#include "symbol/symbol.h"

#define TIMEOUT_MS_MAX 3600000

bool pid_option(const struct options *options, uint32_t *pid, struct err *e)
{
	char *end;
	unsigned long number;

	if (options->argument_count + (options->pid != 0) > 1)
		return err_set(e, ERR_USAGE, "one process at a time: %s is too much",
			       options->arguments[options->argument_count - 1]);
	*pid = options->pid;
	if (options->argument_count == 1) {
		number = strtoul(options->arguments[0], &end, 10);
		if (*end || end == options->arguments[0] || number == 0 || number > INT32_MAX)
			return err_set(e, ERR_USAGE, "'%s' is not a process id",
				       options->arguments[0]);
		*pid = (uint32_t)number;
	}
	return *pid || err_set(e, ERR_USAGE, "which process? --pid PID");
}

static bool tids_option(struct arena *arena, const struct options *options,
			struct capture_request *request, struct err *e)
{
	uint32_t *tids = arena_array(arena, uint32_t, options->tids.count);

	for (size_t i = 0; i < options->tids.count; i++) {
		char *end;
		unsigned long number = strtoul(options->tids.at[i], &end, 10);

		if (*end || number == 0 || number > INT32_MAX)
			return err_set(e, ERR_USAGE, "'%s' is not a thread id",
				       options->tids.at[i]);
		tids[i] = (uint32_t)number;
	}
	request->tids = options->tids.count ? tids : NULL;
	request->tid_count = options->tids.count;
	return true;
}

/* --rolling is a way to stop, so without a word about the method it is ptrace. */
static bool method_option(const struct options *options, struct capture_request *request,
			  struct err *e)
{
	static const char *const names[] = {
		[CAPTURE_BY_ANY] = "auto",
		[CAPTURE_BY_BPF] = "bpf",
		[CAPTURE_BY_PTRACE] = "ptrace",
	};
	size_t way = 0;

	while (way < sizeof names / sizeof names[0] && strcmp(options->method, names[way]) != 0)
		way++;
	if (way == sizeof names / sizeof names[0])
		return err_set(e, ERR_USAGE, "--method is auto, bpf or ptrace, not '%s'",
			       options->method);
	if (options->rolling && way == CAPTURE_BY_BPF)
		return err_set(e, ERR_USAGE,
			       "--rolling is a way to stop: not with --method bpf");
	if (options->never_stop && (options->rolling || way == CAPTURE_BY_PTRACE))
		return err_set(e, ERR_USAGE, "--never-stop: not with %s",
			       options->rolling ? "--rolling" : "--method ptrace");
	request->way = options->rolling ? CAPTURE_BY_PTRACE : (enum capture_way)way;
	return true;
}

static bool request_make(struct arena *arena, const struct options *options,
			 struct capture_request *request, struct err *e)
{
	*request = (struct capture_request){
		.timeout_ns = CAPTURE_TIMEOUT_NS,
		.realtime = !options->no_realtime,
		.rolling = options->rolling,
		.never_stop = options->never_stop,
		.stack_limit = CAPTURE_STACK_LIMIT,
		.stack_total = CAPTURE_STACK_TOTAL,
	};
	if (options->timeout_ms > TIMEOUT_MS_MAX)
		return err_set(e, ERR_USAGE, "--timeout is at most %d (an hour)",
			       TIMEOUT_MS_MAX);
	if (options->timeout_ms)
		request->timeout_ns = options->timeout_ms * 1000000;
	if (options->stack_limit)
		request->stack_limit = options->stack_limit;
	if (options->stack_total)
		request->stack_total = options->stack_total;
	else if (request->stack_total < request->stack_limit)
		request->stack_total = request->stack_limit;
	return method_option(options, request, e) && pid_option(options, &request->pid, e) &&
	       tids_option(arena, options, request, e);
}

static struct elf *find_debug_file(void *context, struct module *module)
{
	struct debugfiles files = *(const struct debugfiles *)context;

	return module_debug_file(module, &files);
}

/* --sysroot, else the root of a live process that has its own. */
static const char *sysroot_of(const struct options *options, const struct modules *modules)
{
	return options->sysroot ? options->sysroot : modules->root;
}

static const int *sysroot_dir_of(const struct options *options, const struct modules *modules)
{
	if (options->sysroot)
		return &options->named->sysroot;
	return modules->root ? &modules->root_dir : NULL;
}

struct unwind_options pipeline_unwinding(struct arena *arena, const struct options *options,
					 const struct modules *modules)
{
	struct debugfiles *files = arena_new(arena, struct debugfiles);

	*files = (struct debugfiles){
		.arena = arena,
		.directories = options->debug_directories.at,
		.named = options->named->places,
		.sysroot = sysroot_of(options, modules),
		.sysroot_dir = sysroot_dir_of(options, modules),
		.sysroot_is_process = !options->sysroot && modules->root,
		.fetch = options->fetch,
	};
	return (struct unwind_options){
		.frame_limit = options->max_frames,
		.debug_files = {find_debug_file, files},
	};
}

/* Open to the end: the sandbox is not let near other processes, so its name leads nowhere
 * there. */
static void root_keep(const struct options *options, struct modules *modules,
		      const struct snapshot *snapshot, int root)
{
	if (root < 0)
		return;
	modules->root = arena_printf(modules->arena, "/proc/%u/root", snapshot->pid);
	modules->root_dir = root;
	modules_lie_under(modules, sysroot_of(options, modules));
}

/* After unwinding: a build-id may be known only since a module's sections were read. */
static void modules_record(struct snapshot *snapshot, const struct modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct snapshot_module *record = &snapshot->modules[i];

		record->has_load_bias = modules->at[i].has_load_bias;
		record->load_bias = modules->at[i].load_bias;
		record->build_id = modules->at[i].build_id;
	}
}

bool pipeline_capture(struct arena *arena, const struct options *options,
		      const struct output *out, struct snapshot *snapshot,
		      struct modules *modules, struct err *e)
{
	struct unwind_options unwinding;
	struct capture_request request;
	struct captured captured;

	if (!request_make(arena, options, &request, e))
		return false;
	open_files_allow();
	progress(options, "reading the process");
	if (!process_capture(&captured, arena, &request, e)) {
		progress(options, NULL);
		return false;
	}
	urgency_keep();
	pipeline_restrict(out, options, captured.root);
	*snapshot = captured.snapshot;
	modules_open_live(modules, arena, snapshot, captured.files, captured.sources);
	captured_close(&captured);
	root_keep(options, modules, snapshot, captured.root);
	progress(options, "unwinding");
	unwinding = pipeline_unwinding(arena, options, modules);
	unwind_all(unwinder_new(arena, snapshot, modules, &unwinding), snapshot);
	modules_record(snapshot, modules);
	code_names_record(snapshot, arena, modules, captured.perf_map);
	progress(options, NULL);
	return true;
}

/* A limit on what is copied cost frames. */
static bool was_cut(const struct thread *thread)
{
	return thread->stack_missing && thread->stack.stop == STOP_NOT_CAPTURED;
}

bool snapshot_is_partial(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->thread_count; i++)
		if (snapshot->threads[i].left_out || was_cut(&snapshot->threads[i]))
			return true;
	return snapshot->code_names_left_out || snapshot->capture.threads_missing ||
	       snapshot->capture.unanswered;
}

/*
 * Names for all frames: every distinct lookup address becomes one entry, entries are grouped by
 * module, each module answers all of its own at once, and the frames then read their entry.
 */

struct lookup {
	uint64_t va;                      /* pc_lookup */
	const struct module_range *range; /* NULL: no module */
	const struct symbol_answer *answer;
	uint32_t next; /* index + 1 of the next entry of the same module */
};

struct lookups {
	VEC(struct lookup) all;
	uint32_t *slots;   /* hash of va -> index + 1 */
	size_t slot_count; /* power of two, at least twice the number of entries */
	uint32_t *first;   /* per module: index + 1 of its newest entry */
	size_t *counts;    /* per module */
};

static size_t lookup_slot(const struct lookups *lookups, uint64_t va)
{
	size_t at = (size_t)((va * UINT64_C(0x9e3779b97f4a7c15)) >> 20);

	for (;; at++) {
		uint32_t slot = lookups->slots[at & (lookups->slot_count - 1)];

		/* A slot that is taken has its entry. NOLINTNEXTLINE(clang-analyzer-core.*) */
		if (slot == 0 || lookups->all.at[slot - 1].va == va)
			return at & (lookups->slot_count - 1);
	}
}

static void slots_grow(struct arena *arena, struct lookups *lookups)
{
	lookups->slot_count *= 4;
	lookups->slots = arena_array(arena, uint32_t, lookups->slot_count);
	for (size_t i = 0; i < lookups->all.count; i++)
		lookups->slots[lookup_slot(lookups, lookups->all.at[i].va)] = (uint32_t)i + 1;
}

static void lookup_add(struct arena *arena, struct lookups *lookups,
		       const struct modules *modules, uint64_t va)
{
	size_t at = lookup_slot(lookups, va);
	struct lookup *lookup;

	if (lookups->slots[at])
		return;
	lookup = vec_push(arena, &lookups->all);
	*lookup = (struct lookup){.va = va, .range = module_range_at(modules, va)};
	lookups->slots[at] = (uint32_t)lookups->all.count;
	if (lookup->range) {
		size_t module = (size_t)(lookup->range->module - modules->at);

		lookup->next = lookups->first[module];
		lookups->first[module] = (uint32_t)lookups->all.count;
		lookups->counts[module]++;
	}
	if (lookups->all.count * 2 > lookups->slot_count)
		slots_grow(arena, lookups);
}

static struct lookups lookups_collect(struct arena *arena, const struct snapshot *snapshot,
				      const struct modules *modules)
{
	struct lookups lookups = {.slot_count = 4096};

	lookups.slots = arena_array(arena, uint32_t, lookups.slot_count);
	lookups.first = arena_array(arena, uint32_t, modules->count);
	lookups.counts = arena_array(arena, size_t, modules->count);
	for (size_t t = 0; t < snapshot->thread_count; t++) {
		const struct stack *stack = &snapshot->threads[t].stack;

		for (size_t i = 0; i < stack->count; i++)
			lookup_add(arena, &lookups, modules, pc_lookup(stack->frames[i].pc));
	}
	return lookups;
}

static void module_answer(struct arena *arena, struct symbolizer *symbolizer,
			  struct lookups *lookups, struct module *module, size_t index)
{
	size_t count = lookups->counts[index], i = 0;
	struct symbol_answer *answers = arena_array(arena, struct symbol_answer, count);

	if (count == 0)
		return;
	for (uint32_t at = lookups->first[index]; at; at = lookups->all.at[at - 1].next, i++) {
		struct lookup *lookup = &lookups->all.at[at - 1];

		/* A chain leads to entries. NOLINTNEXTLINE(clang-analyzer-core.*) */
		answers[i].ea = lookup->va - lookup->range->bias;
		lookup->answer = &answers[i];
	}
	symbolize(symbolizer, module, answers, count);
	symbolizer_done(symbolizer, module);
}

static struct report_frame frame_base(const struct snapshot *snapshot,
				      const struct frame *frame, const struct lookup *lookup)
{
	struct report_frame out = {.pc = frame->pc.va, .found_by = frame->found_by};
	const struct code_name *name =
		lookup->range ? NULL : snapshot_code_name(snapshot, lookup->va);

	if (name) {
		out.function = name->function;
		out.has_function_off = frame->pc.va >= name->start;
		out.function_off = frame->pc.va - name->start;
	}
	if (lookup->range) {
		const struct module *module = lookup->range->module;

		out.module = module->path;
		out.module_name = module->name;
		out.build_id = module->build_id;
		out.module_off = frame->pc.va - lookup->range->bias;
	}
	return out;
}

static struct report_frame frame_named(struct report_frame out, const struct symbol_frame *name)
{
	out.function = name->function;
	out.has_function_off = name->has_function_ea && out.module_off >= name->function_ea;
	out.function_off = out.has_function_off ? out.module_off - name->function_ea : 0;
	out.file = name->file;
	out.line = name->line;
	out.column = name->column;
	out.inlined = name->inlined;
	return out;
}

static size_t levels_of(const struct lookup *lookup)
{
	return lookup->answer && lookup->answer->frame_count ? lookup->answer->frame_count : 1;
}

static const struct lookup *lookup_of(const struct lookups *lookups, const struct frame *frame)
{
	return &lookups->all.at[lookups->slots[lookup_slot(lookups, pc_lookup(frame->pc))] - 1];
}

static void thread_report(struct arena *arena, const struct snapshot *snapshot,
			  const struct lookups *lookups, const struct thread *thread,
			  struct report_thread *out)
{
	const struct stack *stack = &thread->stack;
	size_t total = 0;

	*out = (struct report_thread){.thread = thread, .elided = stack->elided};
	for (size_t i = 0; i < stack->count; i++)
		total += levels_of(lookup_of(lookups, &stack->frames[i]));
	out->frames = arena_array(arena, struct report_frame, total);
	for (size_t i = 0; i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];
		const struct lookup *lookup = lookup_of(lookups, frame);
		struct report_frame base = frame_base(snapshot, frame, lookup);

		if (i == stack->elided_at)
			out->elided_at = out->frame_count;
		if (!lookup->answer || !lookup->answer->frame_count)
			out->frames[out->frame_count++] = base;
		else
			for (size_t l = 0; l < lookup->answer->frame_count; l++)
				out->frames[out->frame_count++] =
					frame_named(base, &lookup->answer->frames[l]);
	}
}

/* NULL: the file is the one that the process ran, or nobody can tell. */
static const char *other_build(struct arena *arena, const struct module *module)
{
	const char *have = build_id_text(arena, module->elf->build_id);

	if (!module->build_id || (have && strcmp(have, module->build_id) == 0))
		return NULL;
	return arena_printf(
		arena,
		"%s: names may be wrong: they are of %s with build-id %s, the process ran %s",
		module->path, module->elf->name, have ? have : "(none)", module->build_id);
}

/* A file that is missing for frames of the stacks, or was cut under our hands, makes the report
 * partial; what else a module's information lacks is a note. */
static void notes_make(struct arena *arena, struct symbolizer *symbolizer,
		       const struct lookups *lookups, const struct modules *modules,
		       struct report *report)
{
	VEC(const char *) notes = {0};
	const struct snapshot *snapshot = report->snapshot;
	const char *unenforced = confine_note(arena), *cut;

	for (size_t i = 0; i < modules->count; i++) {
		const struct module *module = &modules->at[i];
		const char *note;

		if (!lookups->counts[i])
			continue;
		if (!module->elf) {
			report->partial = true;
			*vec_push(arena, &notes) =
				arena_printf(arena, "%s: no names: %s", module->path,
					     module->why ? module->why
							 : "its file was not found");
			continue;
		}
		note = other_build(arena, module);
		if (note)
			*vec_push(arena, &notes) = note;
		note = symbolizer_note(symbolizer, module);
		if (note)
			*vec_push(arena, &notes) =
				arena_printf(arena, "%s: %s", module->path, note);
	}
	for (size_t at = 0; (cut = mapping_next_cut(&at));) {
		report->partial = true;
		*vec_push(arena, &notes) =
			arena_printf(arena,
				     "%s: became shorter, or unreadable, while it was read",
				     cut);
	}
	if (snapshot->code_names_left_out)
		*vec_push(arena, &notes) =
			arena_printf(arena, "code made at run time has no names: %s",
				     snapshot->code_names_left_out);
	if (unenforced)
		*vec_push(arena, &notes) = unenforced;
	report->notes = notes.at;
	report->note_count = notes.count;
}

struct symbolizer *pipeline_report(struct arena *arena, const struct options *options,
				   const struct snapshot *snapshot, struct modules *modules,
				   struct report *report)
{
	struct symbol_options symbols = {
		.demangle = !options->no_demangle,
		.debug_directories = options->debug_directories.at,
		.named = options->named->places,
		.sysroot = sysroot_of(options, modules),
		.sysroot_dir = sysroot_dir_of(options, modules),
		.sysroot_is_process = !options->sysroot && modules->root,
		.fetch = options->fetch,
		.cache = options->cache,
	};
	struct symbolizer *symbolizer = symbolizer_new(arena, &symbols);
	struct lookups lookups = lookups_collect(arena, snapshot, modules);

	*report = (struct report){.snapshot = snapshot, .thread_count = snapshot->thread_count};
	for (size_t i = 0; i < modules->count; i++) {
		if (lookups.counts[i])
			progress(options, modules->at[i].name);
		module_answer(arena, symbolizer, &lookups, &modules->at[i], i);
	}
	progress(options, NULL);
	report->threads = arena_array(arena, struct report_thread, report->thread_count);
	for (size_t i = 0; i < report->thread_count; i++)
		thread_report(arena, snapshot, &lookups, &snapshot->threads[i],
			      &report->threads[i]);
	report->partial = snapshot_is_partial(snapshot);
	notes_make(arena, symbolizer, &lookups, modules, report);
	report->partial |= budget_refused();
	return symbolizer;
}

struct report_options report_options_of(const struct options *options)
{
	return (struct report_options){
		.registers = !options->no_registers,
		.maps = !options->no_maps,
		.verbose = options->verbose,
	};
}

bool pipeline_output(struct output *out, struct arena *arena, const struct options *options,
		     struct err *e)
{
	return output_open(out, arena, options->output ? options->output : "-", e);
}

void pipeline_restrict(const struct output *out, const struct options *options, int root)
{
	if (out->stream == stdout)
		stdout_pipe_may_end_us();
	confine(options, root);
}

int pipeline_print(struct output *out, struct arena *arena, const struct options *options,
		   const struct snapshot *snapshot, struct modules *modules,
		   const struct report_options *printing)
{
	bool json = strcmp(options->format, "json") == 0;
	struct symbolizer *symbolizer;
	struct report report;
	struct err e = {0};
	bool ok = true;

	if (!json) {
		report_print_head(out->stream, snapshot, printing);
		fflush(out->stream);
	}
	symbolizer = pipeline_report(arena, options, snapshot, modules, &report);
	if (json)
		ok = report_print_json(out->stream, &report, printing, &e);
	else
		report_print_threads(out->stream, &report, printing);
	if (!ok) {
		output_abandon(out);
		return fail(&e);
	}
	if (!output_commit(out, &e))
		return fail(&e);
	symbolizer_save(symbolizer);
	return report.partial ? EXIT_PARTIAL : EXIT_COMPLETE;
}
