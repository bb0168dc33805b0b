#include "snapshot/json_fields.h"

#include <stdlib.h>

static void put_capture(struct json_out *out, const struct capture_facts *facts)
{
	json_open(out, "capture", '{');
	json_text(out, "method", capture_method_text(facts->method));
	json_text(out, "method_note", facts->method_note);
	json_flag(out, "realtime", facts->realtime);
	json_count(out, "capture_ns", facts->capture_ns);
	json_count(out, "stopped_ns", facts->stopped_ns);
	json_count(out, "held_median_ns", facts->held_median_ns);
	json_count(out, "held_longest_ns", facts->held_longest_ns);
	json_count(out, "threads_found", facts->threads_found);
	json_count(out, "threads_stopped", facts->threads_stopped);
	json_count(out, "threads_left_out", facts->threads_left_out);
	json_count(out, "threads_untouched", facts->threads_untouched);
	json_flag(out, "threads_missing", facts->threads_missing);
	if (facts->instant == INSTANT_UNKNOWN)
		json_null(out, "one_instant");
	else
		json_flag(out, "one_instant", facts->instant == INSTANT_ONE);
	json_count(out, "calls_restarted", facts->calls_restarted);
	json_count(out, "stack_bytes", facts->stack_bytes);
	json_count(out, "stack_bytes_missing", facts->stack_bytes_missing);
	json_text(out, "unanswered", facts->unanswered);
	json_close(out, '}');
}

static void put_arguments(struct json_out *out, const struct snapshot *snapshot)
{
	json_open(out, "command_line", '[');
	for (size_t i = 0; i < snapshot->argument_count; i++)
		json_text(out, NULL, snapshot->arguments[i]);
	json_close(out, ']');
}

void json_put_process(struct json_out *out, const char *format, unsigned version,
		      const struct snapshot *snapshot)
{
	const struct {
		const char *key, *text;
	} texts[] = {
		{"stacker_version", snapshot->stacker_version},
		{"timestamp", snapshot->timestamp},
		{"hostname", snapshot->hostname},
		{"kernel", snapshot->kernel},
		{"architecture", snapshot->arch->name},
		{"executable_path", snapshot->executable_path},
	};

	json_text(out, "format", format);
	json_count(out, "version", version);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		json_new_line(out);
		json_text(out, texts[i].key, texts[i].text);
	}
	json_new_line(out);
	json_count(out, "process_id", snapshot->pid);
	json_new_line(out);
	put_arguments(out, snapshot);
	json_new_line(out);
	if (snapshot->pac_code_mask)
		json_hex(out, "pointer_authentication_mask", snapshot->pac_code_mask);
	else
		json_null(out, "pointer_authentication_mask");
	json_new_line(out);
	put_capture(out, &snapshot->capture);
}

/* "fd:01": major and minor in hex, two digits at least, as /proc/PID/maps has them. */
static void put_device(struct json_out *out, const struct map *map)
{
	char device[2 * sizeof "ffffffff"];

	snprintf(device, sizeof device, "%02x:%02x", map->device_major, map->device_minor);
	json_text(out, "device", device);
}

static void put_map(struct json_out *out, const struct map *map)
{
	json_new_line(out);
	json_open(out, NULL, '{');
	json_hex(out, "start", map->start);
	json_hex(out, "end", map->end);
	json_text(out, "permissions", map->permissions);
	json_hex(out, "offset", map->off);
	put_device(out, map);
	json_count(out, "inode", map->inode);
	json_text(out, "pathname", map->path);
	json_flag(out, "deleted", map->deleted);
	json_count_or_null(out, "module", map->module >= 0, (uint64_t)map->module);
	json_close(out, '}');
}

/* By path; of the same path by address. */
static int compare_by_path(const void *a, const void *b)
{
	const struct map *left = *(const struct map *const *)a;
	const struct map *right = *(const struct map *const *)b;
	int order = strcmp(left->path, right->path);

	return order ? order : (left->start > right->start) - (left->start < right->start);
}

/* Path of each mapped file to the start of its first mapping. */
static void put_file_bases(struct json_out *out, const struct snapshot *snapshot)
{
	struct arena arena = {0};
	const struct map **files = arena_array(&arena, const struct map *, snapshot->map_count);
	size_t count = 0;

	for (size_t i = 0; i < snapshot->map_count; i++)
		if (snapshot->maps[i].path[0] == '/')
			files[count++] = &snapshot->maps[i];
	qsort(files, count, sizeof *files, compare_by_path);
	json_open(out, "file_base_addresses", '{');
	for (size_t i = 0; i < count; i++) {
		if (i && strcmp(files[i]->path, files[i - 1]->path) == 0)
			continue;
		json_new_line(out);
		json_key_text(out, files[i]->path);
		json_hex(out, NULL, files[i]->start);
	}
	json_close(out, '}');
	arena_free(&arena);
}

void json_put_maps(struct json_out *out, const struct snapshot *snapshot)
{
	json_new_line(out);
	json_open(out, "memory_maps", '[');
	for (size_t i = 0; i < snapshot->map_count; i++)
		put_map(out, &snapshot->maps[i]);
	json_close(out, ']');
	json_new_line(out);
	put_file_bases(out, snapshot);
}

static void put_module(struct json_out *out, const struct snapshot_module *module)
{
	json_new_line(out);
	json_open(out, NULL, '{');
	json_text(out, "path", module->path);
	json_text(out, "build_id", module->build_id);
	json_hex(out, "start", module->start);
	json_hex(out, "end", module->end);
	if (module->has_load_bias)
		json_hex(out, "load_bias", module->load_bias);
	else
		json_null(out, "load_bias");
	json_flag(out, "executable", module->is_executable);
	json_flag(out, "deleted", module->deleted);
	json_close(out, '}');
}

void json_put_modules(struct json_out *out, const struct snapshot *snapshot)
{
	json_new_line(out);
	json_open(out, "modules", '[');
	for (size_t i = 0; i < snapshot->module_count; i++)
		put_module(out, &snapshot->modules[i]);
	json_close(out, ']');
}

void json_put_thread(struct json_out *out, const struct arch *arch, const struct thread *thread)
{
	const char state[] = {thread->state, '\0'};

	json_count(out, "tid", thread->tid);
	json_text(out, "thread_name", thread->name);
	json_text(out, "state", thread->state ? state : NULL);
	json_count_or_null(out, "syscall", thread->syscall >= 0, (uint64_t)thread->syscall);
	json_text(out, "syscall_name", arch_syscall_name(arch, thread->syscall));
	json_count(out, "held_ns", thread->held_ns);
	json_text(out, "left_out", thread->left_out);
	json_text(out, "wait_channel", thread->wait_channel);
	json_text(out, "kernel_stack", thread->kernel_stack);
	if (thread->tracer_pid) {
		json_count(out, "tracer_pid", thread->tracer_pid);
		json_text(out, "tracer_name", thread->tracer_name);
	}
	json_count(out, "stack_missing", thread->stack_missing);
}

void json_put_registers(struct json_out *out, const struct arch *arch,
			const struct thread *thread)
{
	if (!thread->has_registers) {
		json_null(out, "registers");
		return;
	}
	json_open(out, "registers", '{');
	for (size_t i = 0; i < arch->register_count; i++)
		json_hex(out, arch->registers[i].name,
			 thread->registers.at[arch->registers[i].slot]);
	json_close(out, '}');
}

void json_put_stack_end(struct json_out *out, const struct stack *stack)
{
	json_text(out, "end", stop_text(stack->stop));
	json_text(out, "end_detail", stack->stop_detail);
	json_count(out, "folded_frames", stack->elided);
	json_count_or_null(out, "folded_before", stack->elided > 0, stack->elided_at);
}
