/*
 * snapshot/capture_read: a capture file as a snapshot (docs/capture-format.md).
 *
 * The document without its threads is read first, then thread after thread. The parts are read in
 * capture_space.c (maps, modules, memory) and capture_thread.c. A capture of elsewhere has no
 * `format`: its strings carry no escape, and nothing is said about how its frames were found.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "snapshot/capture_file.h"
#include "snapshot/capture_modules.h"
#include "snapshot/capture_parts.h"
#include "snapshot/capture_split.h"

/* json-c counts in int. */
#define CAPTURE_SIZE_LIMIT ((size_t)INT_MAX)

/* Trees of the last threads that are kept. Some allocators (musl's) give a page back as soon as
 * nothing in it is used: with everything freed after each thread, each thread fetches its pages
 * anew, and reading takes three times as long. */
#define TREES_KEPT 8

/* Format, architecture, process. */

static void read_format(const struct node *document)
{
	struct node format = node_member(document, "format");
	struct node version = node_member(document, "version");
	const char *word = node_word(&format);
	uint64_t number;
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
	number = node_number(&version, UINT64_MAX);
	if (number > CAPTURE_VERSION)
		node_fail(&version, ERR_UNSUPPORTED,
			  "was written by a newer Stacker; this one reads versions up to %d",
			  CAPTURE_VERSION);
	else if (number < 1)
		node_fail(&version, ERR_FORMAT, "is 0; the first one was 1");
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
		node_fail(&node, ERR_UNSUPPORTED, "unknown architecture '%s' (known: %s)",
			  text_for_message(shown, sizeof shown, word),
			  arch_names(document->in->arena));
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

/* Captures of before have no "one_instant". */
static enum capture_instant read_instant(const struct node *facts)
{
	struct node node = node_member(facts, "one_instant");
	bool one = node_flag(&node);

	if (!node.json)
		return INSTANT_UNKNOWN;
	return one ? INSTANT_ONE : INSTANT_SEVERAL;
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
	facts->capture_ns = member_number(&node, "capture_ns", UINT64_MAX);
	facts->stopped_ns = member_number(&node, "stopped_ns", UINT64_MAX);
	facts->held_median_ns = member_number(&node, "held_median_ns", UINT64_MAX);
	facts->held_longest_ns = member_number(&node, "held_longest_ns", UINT64_MAX);
	facts->threads_found = (uint32_t)member_number(&node, "threads_found", UINT32_MAX);
	facts->threads_stopped = (uint32_t)member_number(&node, "threads_stopped", UINT32_MAX);
	facts->threads_left_out =
		(uint32_t)member_number(&node, "threads_left_out", UINT32_MAX);
	facts->threads_untouched =
		(uint32_t)member_number(&node, "threads_untouched", UINT32_MAX);
	facts->threads_missing = member_flag(&node, "threads_missing");
	facts->instant = read_instant(&node);
	facts->calls_restarted = (uint32_t)member_number(&node, "calls_restarted", UINT32_MAX);
	facts->stack_bytes = member_number(&node, "stack_bytes", UINT64_MAX);
	facts->stack_bytes_missing = member_number(&node, "stack_bytes_missing", UINT64_MAX);
	facts->unanswered = member_text(&node, "unanswered");
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
	read_code_names(document, out);
	read_vdso(document, out);
	if (!document->in->failed && !node_member(document, "modules").json)
		modules_from_maps(document->in->arena, out);
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
