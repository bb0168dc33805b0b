/*
 * snapshot/capture_read: a capture file as a snapshot (docs/capture-format.md).
 *
 * The document without its threads is read first, then thread after thread. A capture of elsewhere
 * has no `format`: its strings carry no escape, and nothing is said about how its frames were found.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "snapshot/capture_file.h"
#include "snapshot/capture_modules.h"
#include "snapshot/capture_split.h"
#include "snapshot/frame_runs.h"
#include "snapshot/json_in.h"

/* json-c counts in int. */
#define CAPTURE_SIZE_LIMIT ((size_t)INT_MAX)

/* Linux numbers threads below 2^22; any positive pid_t is taken. */
#define TID_LIMIT INT32_MAX

/* 20 bytes of SHA-1 are usual; 64 leave room for any other. */
#define BUILD_ID_DIGITS_LIMIT 128

/* Trees of the last threads that are kept. Some allocators (musl's) give a page back as soon as
 * nothing in it is used: with everything freed after each thread, each thread fetches its pages
 * anew, and reading takes three times as long. */
#define TREES_KEPT 8

static uint64_t member_number(const struct node *up, const char *key, uint64_t max)
{
	struct node node = node_member(up, key);

	return node_number(&node, max);
}

static uint64_t required_number(const struct node *up, const char *key, uint64_t max)
{
	struct node node = node_member(up, key);

	node_require(&node);
	return node_number(&node, max);
}

static const char *member_text(const struct node *up, const char *key)
{
	struct node node = node_member(up, key);

	return node_text(&node);
}

static bool member_flag(const struct node *up, const char *key)
{
	struct node node = node_member(up, key);

	return node_flag(&node);
}

/* Format, architecture, process. */

static void read_format(const struct node *document)
{
	struct node format = node_member(document, "format");
	struct node version = node_member(document, "version");
	const char *word = node_word(&format);
	char shown[48];

	if (!format.json) {
		if (!node_member(document, "threads").json)
			node_fail(
				document, ERR_FORMAT,
				"is not a capture: it has neither \"format\" nor \"threads\"");
		return;
	}
	if (word && strcmp(word, CAPTURE_FORMAT) != 0) {
		node_fail(document, ERR_FORMAT,
			  "is not a capture: its format is '%s', not '" CAPTURE_FORMAT "'",
			  text_for_message(shown, sizeof shown, word));
		return;
	}
	node_require(&version);
	if (node_number(&version, UINT64_MAX) > CAPTURE_VERSION)
		node_fail(&version, ERR_UNSUPPORTED,
			  "was written by a newer Stacker; this one reads versions up to %d",
			  CAPTURE_VERSION);
	document->in->escaped = true;
}

static void read_architecture(const struct node *document, struct snapshot *out)
{
	struct node node = node_member(document, "architecture");
	const char *word = node_word(&node);
	char shown[48];

	if (!node_require(&node) || !word)
		return;
	out->arch = arch_named(word);
	if (!out->arch)
		node_fail(&node, ERR_UNSUPPORTED,
			  "'%s' is none of those known: x86_64, aarch64",
			  text_for_message(shown, sizeof shown, word));
}

static void read_arguments(const struct node *document, struct snapshot *out)
{
	struct node list = node_member(document, "command_line");
	size_t count = node_count(&list);
	const char **arguments = arena_array(document->in->arena, const char *, count);

	for (size_t i = 0; i < count; i++) {
		struct node item = node_item(&list, i);

		node_require(&item);
		arguments[i] = node_text(&item);
	}
	out->arguments = arguments;
	out->argument_count = count;
}

static void read_facts(const struct node *document, struct capture_facts *facts)
{
	struct node node = node_member(document, "capture");
	struct node method = node_member(&node, "method");
	const char *word = node_word(&method);

	node_want_object(&node);
	facts->method = CAPTURE_UNKNOWN;
	if (word)
		capture_method_named(word, &facts->method);
	facts->method_note = member_text(&node, "method_note");
	facts->realtime = member_flag(&node, "realtime");
	facts->stopped_ns = member_number(&node, "stopped_ns", UINT64_MAX);
	facts->held_median_ns = member_number(&node, "held_median_ns", UINT64_MAX);
	facts->held_longest_ns = member_number(&node, "held_longest_ns", UINT64_MAX);
	facts->threads_found = (uint32_t)member_number(&node, "threads_found", UINT32_MAX);
	facts->threads_stopped = (uint32_t)member_number(&node, "threads_stopped", UINT32_MAX);
	facts->threads_left_out =
		(uint32_t)member_number(&node, "threads_left_out", UINT32_MAX);
	facts->stack_bytes = member_number(&node, "stack_bytes", UINT64_MAX);
	facts->stack_bytes_missing = member_number(&node, "stack_bytes_missing", UINT64_MAX);
}

/* Address space. */

/* Each letter of "rwxp" or its alternative. */
static bool permissions_are_sane(const char *text)
{
	static const char *const allowed[] = {"r-", "w-", "x-", "ps"};

	if (strlen(text) != sizeof allowed / sizeof allowed[0])
		return false;
	for (size_t i = 0; text[i]; i++)
		if (!strchr(allowed[i], text[i]))
			return false;
	return true;
}

static void read_permissions(const struct node *up, struct map *map)
{
	struct node node = node_member(up, "permissions");
	const char *word = node_word(&node);

	memcpy(map->permissions, "---p", sizeof map->permissions);
	if (!word)
		return;
	if (permissions_are_sane(word))
		memcpy(map->permissions, word, sizeof map->permissions);
	else
		node_fail(&node, ERR_FORMAT, "should be like \"r-xp\"");
}

/* Hex digits of a device's half, 32 bits at most. */
static bool parse_device_half(const char *digits, size_t count, uint32_t *out)
{
	uint64_t value = 0;
	char number[2 + 8 + 1] = "0x";

	if (!count || count > 8)
		return false;
	memcpy(number + 2, digits, count);
	*out = 0;
	if (!number_parse(number, count + 2, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static void read_device(const struct node *up, struct map *map)
{
	struct node node = node_member(up, "device");
	const char *word = node_word(&node);
	const char *colon;

	if (!word)
		return;
	colon = strchr(word, ':');
	if (!colon || !parse_device_half(word, (size_t)(colon - word), &map->device_major) ||
	    !parse_device_half(colon + 1, strlen(colon + 1), &map->device_minor))
		node_fail(&node, ERR_FORMAT, "should be like \"fd:01\"");
}

static void read_map(const struct node *node, const struct snapshot *snapshot, struct map *map)
{
	struct node module = node_member(node, "module");

	node_require(node);
	node_want_object(node);
	map->start = required_number(node, "start", UINT64_MAX);
	map->end = required_number(node, "end", UINT64_MAX);
	read_permissions(node, map);
	map->off = member_number(node, "offset", UINT64_MAX);
	read_device(node, map);
	map->inode = member_number(node, "inode", UINT64_MAX);
	map->path = member_text(node, "pathname");
	if (!map->path)
		map->path = "";
	map->deleted = member_flag(node, "deleted");
	map->module = module.json ? (int32_t)node_number(&module, INT32_MAX) : -1;
	if (map->module >= 0 && (size_t)map->module >= snapshot->module_count)
		node_fail(&module, ERR_FORMAT, "is %d, but there are %zu modules",
			  (int)map->module, snapshot->module_count);
	if (map->start >= map->end)
		node_fail(node, ERR_FORMAT, "ends before it begins");
}

/* After the modules, whose number the maps are checked against. */
static void read_maps(const struct node *document, struct snapshot *out)
{
	struct node list = node_member(document, "memory_maps");
	size_t count = node_count(&list);

	out->maps = arena_array(document->in->arena, struct map, count);
	for (size_t i = 0; i < count && !document->in->failed; i++) {
		struct node node = node_item(&list, i);

		read_map(&node, out, &out->maps[i]);
		if (i && out->maps[i].start < out->maps[i - 1].end)
			node_fail(&node, ERR_FORMAT, "begins before the end of the one before");
	}
	out->map_count = count;
}

/* A build-id becomes part of file names: hex digits and nothing else. */
static const char *read_build_id(const struct node *up)
{
	struct node node = node_member(up, "build_id");
	const char *word = node_word(&node);
	size_t length = word ? strlen(word) : 0;

	if (!word)
		return NULL;
	if (!length || length % 2 || length > BUILD_ID_DIGITS_LIMIT ||
	    strspn(word, "0123456789abcdef") != length) {
		node_fail(&node, ERR_FORMAT,
			  "should be lower-case hex digits, two for each byte");
		return NULL;
	}
	return arena_copy(node.in->arena, word, length);
}

static void read_module(const struct node *node, struct snapshot_module *module)
{
	struct node path = node_member(node, "path");
	struct node bias = node_member(node, "load_bias");

	node_require(node);
	node_want_object(node);
	node_require(&path);
	module->path = node_text(&path);
	module->build_id = read_build_id(node);
	module->start = member_number(node, "start", UINT64_MAX);
	module->end = member_number(node, "end", UINT64_MAX);
	module->has_load_bias = bias.json != NULL;
	module->load_bias = node_number(&bias, UINT64_MAX);
	module->is_executable = member_flag(node, "executable");
	if (module->start > module->end)
		node_fail(node, ERR_FORMAT, "ends before it begins");
}

static void read_modules(const struct node *document, struct snapshot *out)
{
	struct node list = node_member(document, "modules");
	size_t count = node_count(&list);

	out->modules = arena_array(document->in->arena, struct snapshot_module, count);
	for (size_t i = 0; i < count && !document->in->failed; i++) {
		struct node node = node_item(&list, i);

		read_module(&node, &out->modules[i]);
	}
	out->module_count = count;
}

static void read_piece(const struct node *node, struct memory_piece *piece)
{
	struct node bytes = node_member(node, "bytes");

	node_want_object(node);
	piece->va = required_number(node, "address", UINT64_MAX);
	node_require(&bytes);
	piece->bytes = node_bytes(&bytes);
	if (piece->bytes.len > UINT64_MAX - piece->va)
		node_fail(node, ERR_FORMAT, "reaches beyond the end of the address space");
}

static void read_vdso(const struct node *document, struct snapshot *out)
{
	struct node node = node_member(document, "vdso");

	if (node.json)
		read_piece(&node, &out->vdso);
}

static void read_document(const struct node *document, struct snapshot *out)
{
	node_want_object(document);
	read_format(document);
	read_architecture(document, out);
	out->stacker_version = member_text(document, "stacker_version");
	out->timestamp = member_text(document, "timestamp");
	out->hostname = member_text(document, "hostname");
	out->kernel = member_text(document, "kernel");
	out->pid = (uint32_t)required_number(document, "process_id", TID_LIMIT);
	out->executable_path = member_text(document, "executable_path");
	out->pac_code_mask = member_number(document, "pointer_authentication_mask", UINT64_MAX);
	read_arguments(document, out);
	read_facts(document, &out->capture);
	read_modules(document, out);
	read_maps(document, out);
	read_vdso(document, out);
	if (!document->in->failed && !node_member(document, "modules").json)
		modules_from_maps(document->in->arena, out);
}

/* Threads. */

static void read_state(const struct node *up, struct thread *thread)
{
	struct node node = node_member(up, "state");
	const char *word = node_word(&node);

	if (!word)
		return;
	if (strlen(word) == 1 && word[0] > ' ' && word[0] <= '~')
		thread->state = word[0];
	else
		node_fail(&node, ERR_FORMAT, "should be one letter");
}

/* A register that is not listed reads as 0: captures of elsewhere list fewer, and some of them by
 * lower-case names. */
static uint64_t read_register(const struct node *registers, const char *name)
{
	char lower[16] = "";
	struct node node = node_member(registers, name);

	if (!node.json && !registers->in->escaped) {
		for (size_t i = 0; name[i] && i + 1 < sizeof lower; i++)
			lower[i] = (char)tolower((unsigned char)name[i]);
		node = node_member(registers, lower);
	}
	return node_number(&node, UINT64_MAX);
}

static void read_registers(const struct node *up, const struct arch *arch,
			   struct thread *thread)
{
	struct node node = node_member(up, "registers");

	node_want_object(&node);
	thread->has_registers = node_is_object(&node);
	for (size_t i = 0; thread->has_registers && i < arch->register_count; i++)
		thread->registers.at[arch->registers[i].slot] =
			read_register(&node, arch->registers[i].name);
}

static void read_kind(const struct node *up, struct frame *frame)
{
	struct node node = node_member(up, "kind");
	const char *word = node_word(&node);
	enum pc_kind kind = PC_EXACT;

	if (!word)
		return;
	if (!pc_kind_named(word, &kind))
		node_fail(&node, ERR_FORMAT, "should be \"exact\" or \"return\"");
	frame->kind = (uint8_t)kind;
}

/* A word of a later version leaves it open how the frame was found. */
static void read_found_by(const struct node *up, struct frame *frame)
{
	struct node node = node_member(up, "found_by");
	const char *word = node_word(&node);
	enum found_by found_by = FOUND_RECORDED;

	if (!word)
		return;
	found_by_named(word, &found_by);
	frame->found_by = (uint8_t)found_by;
}

static void read_frame(const struct node *node, struct frame *frame)
{
	node_require(node);
	if (!node_is_object(node)) {
		frame->pc = node_number(node, UINT64_MAX);
		return;
	}
	frame->pc = required_number(node, "pc", UINT64_MAX);
	read_kind(node, frame);
	read_found_by(node, frame);
}

static void read_frame_runs(const struct node *up, struct stack *stack)
{
	struct node list = node_member(up, "frame_runs");
	size_t count = node_count(&list), at = 0;

	for (size_t i = 0; i < count && !up->in->failed; i++) {
		struct node node = node_item(&list, i);
		struct frame like = {.kind = PC_RETURN, .found_by = FOUND_RECORDED};
		size_t frames;

		node_require(&node);
		node_want_object(&node);
		frames = (size_t)required_number(&node, "frames", stack->count - at);
		read_kind(&node, &like);
		read_found_by(&node, &like);
		for (; frames; frames--, at++) {
			stack->frames[at].kind = like.kind;
			stack->frames[at].found_by = like.found_by;
		}
	}
	if (list.json && at != stack->count)
		node_fail(&list, ERR_FORMAT, "says something about %zu of %zu frames", at,
			  stack->count);
}

static void read_frames(const struct node *up, struct stack *stack)
{
	struct node list = node_member(up, "stack_trace");

	stack->count = node_count(&list);
	stack->frames = arena_array(up->in->arena, struct frame, stack->count);
	for (size_t i = 0; i < stack->count && !up->in->failed; i++) {
		struct node node = node_item(&list, i);

		stack->frames[i] = frame_usual(i);
		if (!up->in->escaped)
			stack->frames[i].found_by = FOUND_RECORDED;
		read_frame(&node, &stack->frames[i]);
	}
	read_frame_runs(up, stack);
}

static void read_stack_end(const struct node *up, struct stack *stack)
{
	struct node end = node_member(up, "end");
	const char *word = node_word(&end);

	stack->stop = STOP_UNKNOWN;
	stack->stop_detail = member_text(up, "end_detail");
	/* A reason of a later version stays readable as the detail. */
	if (word && !stop_named(word, &stack->stop) && !stack->stop_detail)
		stack->stop_detail = node_text(&end);
	stack->folded = member_number(up, "folded_frames", UINT64_MAX);
	stack->fold_at = (size_t)member_number(up, "folded_before", stack->count);
}

static void read_pieces(const struct node *up, struct thread *thread)
{
	struct node list = node_member(up, "stack_memory");
	size_t count = node_count(&list);

	thread->pieces = arena_array(up->in->arena, struct memory_piece, count);
	for (size_t i = 0; i < count && !up->in->failed; i++) {
		struct node node = node_item(&list, i);

		node_require(&node);
		read_piece(&node, &thread->pieces[i]);
	}
	thread->piece_count = count;
}

static void read_thread(const struct node *node, const struct arch *arch, struct thread *thread)
{
	struct node syscall = node_member(node, "syscall");

	node_require(node);
	node_want_object(node);
	thread->tid = (uint32_t)required_number(node, "tid", TID_LIMIT);
	thread->name = member_text(node, "thread_name");
	read_state(node, thread);
	thread->syscall = syscall.json ? (int64_t)node_number(&syscall, INT64_MAX) : -1;
	thread->held_ns = member_number(node, "held_ns", UINT64_MAX);
	thread->left_out = member_text(node, "left_out");
	thread->wait_channel = member_text(node, "wait_channel");
	thread->kernel_stack = member_text(node, "kernel_stack");
	thread->stack_missing = member_number(node, "stack_missing", UINT64_MAX);
	read_registers(node, arch, thread);
	read_frames(node, &thread->stack);
	read_stack_end(node, &thread->stack);
	read_pieces(node, thread);
}

/* The items of `list` as they stand in its tree. */
static void read_threads(const struct node *list, struct snapshot *out)
{
	size_t count = node_count(list);

	out->threads = arena_array(list->in->arena, struct thread, count);
	out->thread_count = count;
	for (size_t i = 0; i < count && !list->in->failed; i++) {
		struct node node = node_item(list, i);

		read_thread(&node, out->arch, &out->threads[i]);
	}
}

/* The items as stretches of text, each parsed on its own. */
static void read_split_threads(const struct node *list, const struct capture_split *split,
			       struct snapshot *out)
{
	struct json_object *kept[TREES_KEPT] = {NULL};
	size_t count = split->threads.count;

	if (node_count(list))
		node_fail(list, ERR_FORMAT, "is there twice");
	out->threads = arena_array(list->in->arena, struct thread, count);
	out->thread_count = count;
	for (size_t i = 0; i < count && !list->in->failed; i++) {
		struct node node = {.in = list->in, .up = list, .index = i};

		node.json = json_parse(list->in, &split->threads.at[i], 1);
		read_thread(&node, out->arch, &out->threads[i]);
		json_object_put(kept[i % TREES_KEPT]);
		kept[i % TREES_KEPT] = node.json;
	}
	for (size_t i = 0; i < TREES_KEPT; i++)
		json_object_put(kept[i]);
}

static int compare_tids(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void check_tids(const struct node *list, const struct snapshot *snapshot)
{
	uint32_t *tids = arena_array(list->in->arena, uint32_t, snapshot->thread_count);

	for (size_t i = 0; i < snapshot->thread_count; i++)
		tids[i] = snapshot->threads[i].tid;
	qsort(tids, snapshot->thread_count, sizeof *tids, compare_tids);
	for (size_t i = 1; i < snapshot->thread_count; i++)
		if (tids[i] == tids[i - 1])
			node_fail(list, ERR_FORMAT, "thread %u is there twice", tids[i]);
}

/* Before json-c sees it, which stops at a NUL and looks at UTF-8 only in passing. */
static bool text_is_sane(struct bytes text, const char *name, struct err *e)
{
	const uint8_t *nul = text.len ? memchr(text.at, '\0', text.len) : NULL;
	size_t invalid = utf8_invalid_at(text);

	if (!text.len)
		return err_set(e, ERR_FORMAT, "%s: is empty", name);
	if (text.len > CAPTURE_SIZE_LIMIT)
		return err_set(e, ERR_LIMIT,
			       "%s: %zu bytes are more than a capture may have (%zu)", name,
			       text.len, CAPTURE_SIZE_LIMIT);
	if (nul)
		return err_set(e, ERR_FORMAT, "%s: not JSON: NUL byte at offset %zu", name,
			       (size_t)(nul - text.at));
	if (invalid < text.len)
		return err_set(e, ERR_FORMAT, "%s: not JSON: not UTF-8 at offset %zu", name,
			       invalid);
	return true;
}

static void read_capture(struct json_in *in, struct snapshot *out)
{
	static const struct bytes empty_array = {(const uint8_t *)"[]", 2};
	struct capture_split split;
	bool is_split = capture_split(in->arena, in->text, &split);
	struct bytes parts[] = {split.before, empty_array, split.after};
	struct node document = {.in = in};
	struct node list;

	document.json = is_split ? json_parse(in, parts, 3) : json_parse(in, &in->text, 1);
	read_document(&document, out);
	list = node_member(&document, "threads");
	node_require(&list);
	if (!in->failed && is_split)
		read_split_threads(&list, &split, out);
	else if (!in->failed)
		read_threads(&list, out);
	if (!in->failed)
		check_tids(&list, out);
	json_object_put(document.json);
}

bool capture_read(struct arena *arena, struct bytes text, const char *name,
		  struct snapshot *out, struct err *e)
{
	struct json_in in = {.arena = arena, .name = name, .text = text, .e = e};

	*out = (struct snapshot){0};
	if (!text_is_sane(text, name, e))
		return false;
	read_capture(&in, out);
	if (!in.failed && !out->capture.threads_found)
		out->capture.threads_found = (uint32_t)out->thread_count;
	return !in.failed;
}
