/* The capture file: there and back, captures of elsewhere, and everything that may be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sample_snapshot.h"
#include "snapshot/capture_file.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define NAME "sample.json"

static struct bytes bytes_of(const char *s)
{
	return (struct bytes){(const uint8_t *)s, strlen(s)};
}

static char *written(struct arena *arena, const struct snapshot *snapshot, bool with_stacks)
{
	const struct capture_options options = {.with_stacks = with_stacks};
	struct err e = {0};

	return WRITTEN_TO(arena, stream,
			  assert_true(capture_write(stream, snapshot, &options, &e)));
}

static struct snapshot read_back(struct arena *arena, const char *text)
{
	struct snapshot snapshot;
	struct err e = {0};

	if (!capture_read(arena, bytes_of(text), NAME, &snapshot, &e))
		fail_msg("%s", e.text);
	return snapshot;
}

/* Deep comparison. */

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(!a, !b);
	if (a && b)
		assert_string_equal(a, b);
}

static void assert_same_piece(const struct memory_piece *a, const struct memory_piece *b)
{
	assert_int_equal(a->va, b->va);
	assert_true(bytes_equal(a->bytes, b->bytes));
}

static void assert_same_stack(const struct stack *a, const struct stack *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		assert_int_equal(a->frames[i].pc.va, b->frames[i].pc.va);
		assert_int_equal(a->frames[i].pc.kind, b->frames[i].pc.kind);
		assert_int_equal(a->frames[i].found_by, b->frames[i].found_by);
	}
	assert_int_equal(a->elided, b->elided);
	assert_int_equal(a->elided_at, b->elided_at);
	assert_int_equal(a->stop, b->stop);
	assert_same_text(a->stop_detail, b->stop_detail);
}

static void assert_same_thread(const struct thread *a, const struct thread *b, bool with_stacks)
{
	assert_int_equal(a->tid, b->tid);
	assert_same_text(a->name, b->name);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->has_registers, b->has_registers);
	if (a->has_registers)
		assert_memory_equal(&a->registers, &b->registers, sizeof a->registers);
	assert_int_equal(with_stacks ? a->piece_count : 0, b->piece_count);
	for (size_t i = 0; i < b->piece_count; i++)
		assert_same_piece(&a->pieces[i], &b->pieces[i]);
	assert_int_equal(a->stack_missing, b->stack_missing);
	assert_same_stack(&a->stack, &b->stack);
	assert_same_text(a->left_out, b->left_out);
	assert_same_text(a->wait_channel, b->wait_channel);
	assert_same_text(a->kernel_stack, b->kernel_stack);
	assert_int_equal(a->tracer_pid, b->tracer_pid);
	assert_same_text(a->tracer_name, b->tracer_name);
	assert_int_equal(a->syscall, b->syscall);
	assert_int_equal(a->held_ns, b->held_ns);
}

static void assert_same_map(const struct map *a, const struct map *b)
{
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->off, b->off);
	assert_string_equal(a->permissions, b->permissions);
	assert_int_equal(a->device_major, b->device_major);
	assert_int_equal(a->device_minor, b->device_minor);
	assert_int_equal(a->inode, b->inode);
	assert_string_equal(a->path, b->path);
	assert_int_equal(a->deleted, b->deleted);
	assert_int_equal(a->module, b->module);
}

static void assert_same_module(const struct snapshot_module *a, const struct snapshot_module *b)
{
	assert_same_text(a->path, b->path);
	assert_same_text(a->build_id, b->build_id);
	assert_int_equal(a->start, b->start);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->has_load_bias, b->has_load_bias);
	assert_int_equal(a->load_bias, b->load_bias);
	assert_int_equal(a->is_executable, b->is_executable);
}

static void assert_same_facts(const struct capture_facts *a, const struct capture_facts *b)
{
	assert_int_equal(a->method, b->method);
	assert_same_text(a->method_note, b->method_note);
	assert_int_equal(a->realtime, b->realtime);
	assert_int_equal(a->capture_ns, b->capture_ns);
	assert_int_equal(a->stopped_ns, b->stopped_ns);
	assert_int_equal(a->held_median_ns, b->held_median_ns);
	assert_int_equal(a->held_longest_ns, b->held_longest_ns);
	assert_int_equal(a->threads_found, b->threads_found);
	assert_int_equal(a->threads_stopped, b->threads_stopped);
	assert_int_equal(a->threads_left_out, b->threads_left_out);
	assert_int_equal(a->threads_untouched, b->threads_untouched);
	assert_int_equal(a->threads_missing, b->threads_missing);
	assert_int_equal(a->instant, b->instant);
	assert_int_equal(a->calls_restarted, b->calls_restarted);
	assert_int_equal(a->stack_bytes, b->stack_bytes);
	assert_int_equal(a->stack_bytes_missing, b->stack_bytes_missing);
	assert_same_text(a->unanswered, b->unanswered);
}

static void assert_same(const struct snapshot *a, const struct snapshot *b, bool with_stacks)
{
	assert_ptr_equal(a->arch, b->arch);
	assert_same_text(a->stacker_version, b->stacker_version);
	assert_same_text(a->timestamp, b->timestamp);
	assert_same_text(a->hostname, b->hostname);
	assert_same_text(a->kernel, b->kernel);
	assert_int_equal(a->pid, b->pid);
	assert_same_text(a->executable_path, b->executable_path);
	assert_int_equal(a->argument_count, b->argument_count);
	for (size_t i = 0; i < a->argument_count; i++)
		assert_string_equal(a->arguments[i], b->arguments[i]);
	assert_int_equal(a->map_count, b->map_count);
	for (size_t i = 0; i < a->map_count; i++)
		assert_same_map(&a->maps[i], &b->maps[i]);
	assert_int_equal(a->module_count, b->module_count);
	for (size_t i = 0; i < a->module_count; i++)
		assert_same_module(&a->modules[i], &b->modules[i]);
	assert_int_equal(a->thread_count, b->thread_count);
	for (size_t i = 0; i < a->thread_count; i++)
		assert_same_thread(&a->threads[i], &b->threads[i], with_stacks);
	assert_same_piece(&a->vdso, &b->vdso);
	assert_int_equal(a->pac_code_mask, b->pac_code_mask);
	assert_same_facts(&a->capture, &b->capture);
}

static void assert_round_trip(struct arena *arena, const struct snapshot *snapshot)
{
	for (int with_stacks = 0; with_stacks <= 1; with_stacks++) {
		const char *text = written(arena, snapshot, with_stacks);
		struct snapshot again = read_back(arena, text);

		assert_int_equal(utf8_invalid_at(bytes_of(text)), strlen(text));
		assert_same(snapshot, &again, with_stacks);
		assert_string_equal(written(arena, &again, with_stacks), text);
	}
}

static void everything_goes_there_and_back(void **state)
{
	static struct snapshot (*const samples[])(struct arena *) = {
		sample_x86_64,
		sample_aarch64,
		sample_hostile,
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct snapshot snapshot = samples[i](&arena);

		assert_round_trip(&arena, &snapshot);
	}
	arena_free(&arena);
}

/* Every pair of kinds and origins side by side, and every reason for an end. */
static void every_word_goes_there_and_back(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_aarch64(&arena);
	struct stack *stack = &snapshot.threads[0].stack;
	struct frame frames[2 * (FOUND_RECORDED + 1)];

	(void)state;
	stack->frames = frames;
	for (stack->count = 0; stack->count <= COUNT_OF(frames); stack->count++) {
		for (size_t i = 0; i < stack->count; i++)
			frames[i] = (struct frame){{i, (uint8_t)(i * 5 / 3 % 2)},
						   (uint8_t)(i / 2),
						   0};
		stack->stop = (enum stop)(stack->count % (STOP_LIMIT + 1));
		snapshot.capture.method =
			(enum capture_method)(stack->count % (CAPTURE_UNKNOWN + 1));
		snapshot.capture.instant =
			(enum capture_instant)(stack->count % (INSTANT_SEVERAL + 1));
		assert_round_trip(&arena, &snapshot);
	}
	arena_free(&arena);
}

static void usual_stacks_have_no_runs(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_x86_64(&arena);

	(void)state;
	snapshot.thread_count = 1;
	assert_null(strstr(written(&arena, &snapshot, true), "frame_runs"));
	snapshot = sample_x86_64(&arena);
	assert_non_null(strstr(written(&arena, &snapshot, true), "frame_runs"));
	arena_free(&arena);
}

static void process_without_anything_goes_there_and_back(void **state)
{
	struct snapshot snapshot = {.arch = &arch_x86_64, .pid = 1};
	struct arena arena = {0};

	(void)state;
	assert_round_trip(&arena, &snapshot);
	arena_free(&arena);
}

/* Captures of elsewhere. */

static const char old_capture[] =
	"{\"architecture\": \"x86_64\", \"process_id\": 1234, \"timestamp\": \"yesterday\",\n"
	" \"memory_maps\": [\n"
	"  {\"start\": 4194304, \"end\": \"0x401000\", \"permissions\": \"r--p\", \"offset\": 0,\n"
	"   \"pathname\": \"/bin/a\\\\x41\"},\n"
	"  {\"start\": \"4198400\", \"end\": 4202496, \"permissions\": \"r-xp\", \"offset\": 4096,\n"
	"   \"pathname\": \"/bin/a\\\\x41\"},\n"
	"  {\"start\": 5000000, \"end\": 5100000, \"permissions\": \"rw-p\", \"pathname\": \"[heap]\"},\n"
	"  {\"start\": 6000000, \"end\": 6100000, \"permissions\": \"r--s\", \"pathname\": \"/data\"},\n"
	"  {\"start\": 7000000, \"end\": 7100000, \"permissions\": \"r--p\", \"pathname\": \"/lib/b\"},\n"
	"  {\"start\": 7100000, \"end\": 7200000, \"permissions\": \"rw-p\"},\n"
	"  {\"start\": 7200000, \"end\": 7300000, \"permissions\": \"r-xp\", \"offset\": 1,\n"
	"   \"pathname\": \"/lib/b\"},\n"
	"  {\"start\": 8000000, \"end\": 8100000, \"permissions\": \"r-xp\", \"pathname\": \"[vdso]\"},\n"
	"  {\"start\": 18446744073699065856, \"end\": 18446744073699069952,\n"
	"   \"permissions\": \"--xp\", \"pathname\": \"[vsyscall]\"}],\n"
	" \"threads\": [{\"tid\": 1234, \"thread_name\": \"main\",\n"
	"   \"registers\": {\"rip\": 4198710, \"RSP\": \"0x7ffd00000000\", \"rax\": 18446744073709551615},\n"
	"   \"stack_trace\": [4198710, \"0x7f5c3a042520\", 9007199254740993, \"18446744073709551615\"]},\n"
	"  {\"tid\": 1235, \"unknown\": {\"deep\": [[[1.5, null]]]}}]}";

static void capture_of_elsewhere_is_read(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = read_back(&arena, old_capture);
	const struct thread *thread = &snapshot.threads[0];
	static const uint64_t pcs[] = {4198710, 0x7f5c3a042520, UINT64_C(9007199254740993),
				       UINT64_MAX};

	(void)state;
	assert_int_equal(snapshot.pid, 1234);
	assert_int_equal(snapshot.capture.method, CAPTURE_UNKNOWN);
	assert_int_equal(snapshot.capture.threads_found, 2);
	assert_int_equal(snapshot.thread_count, 2);
	assert_true(thread->has_registers);
	assert_int_equal(thread->registers.at[arch_x86_64.pc_slot], 4198710);
	assert_int_equal(thread->registers.at[arch_x86_64.sp_slot], 0x7ffd00000000);
	assert_int_equal(thread->registers.at[10], UINT64_MAX); /* RAX */
	assert_int_equal(thread->stack.count, COUNT_OF(pcs));
	for (size_t i = 0; i < COUNT_OF(pcs); i++) {
		assert_int_equal(thread->stack.frames[i].pc.va, pcs[i]);
		assert_int_equal(thread->stack.frames[i].pc.kind, i ? PC_RETURN : PC_EXACT);
		assert_int_equal(thread->stack.frames[i].found_by, FOUND_RECORDED);
	}
	assert_int_equal(thread->stack.stop, STOP_UNKNOWN);
	assert_int_equal(thread->syscall, -1);
	assert_false(snapshot.threads[1].has_registers);
	arena_free(&arena);
}

static void modules_are_made_from_maps(void **state)
{
	static const struct snapshot_module wanted[] = {
		{"/bin/a\\x41", NULL, 4194304, 4202496, false, 0, true, false},
		{"/lib/b", NULL, 7000000, 7300000, false, 0, false, false},
		{"[vdso]", NULL, 8000000, 8100000, false, 0, false, false},
	};
	static const int32_t modules[] = {0, 0, -1, -1, 1, -1, 1, 2, -1};
	struct arena arena = {0};
	struct snapshot snapshot = read_back(&arena, old_capture);

	(void)state;
	assert_int_equal(snapshot.module_count, COUNT_OF(wanted));
	for (size_t i = 0; i < COUNT_OF(wanted); i++)
		assert_same_module(&snapshot.modules[i], &wanted[i]);
	assert_int_equal(snapshot.map_count, COUNT_OF(modules));
	for (size_t i = 0; i < COUNT_OF(modules); i++)
		assert_int_equal(snapshot.maps[i].module, modules[i]);
	arena_free(&arena);
}

static void frames_may_be_objects(void **state)
{
	static const char text[] =
		"{\"format\":\"stacker-capture\",\"version\":1,\"architecture\":\"aarch64\","
		"\"process_id\":1,\"threads\":[{\"tid\":1,\"stack_trace\":[{\"pc\":1},{\"pc\":\"0x2\","
		"\"kind\":\"exact\",\"found_by\":\"signal\"},\"3\",{\"pc\":4,\"found_by\":\"magic\"}],"
		"\"end\":\"struck by lightning\"}]}";
	static const struct frame wanted[] = {{{1, PC_EXACT}, FOUND_REGISTERS, 0},
					      {{2, PC_EXACT}, FOUND_SIGNAL, 0},
					      {{3, PC_RETURN}, FOUND_CFI, 0},
					      {{4, PC_RETURN}, FOUND_RECORDED, 0}};
	struct arena arena = {0};
	struct snapshot snapshot = read_back(&arena, text);
	const struct stack *stack = &snapshot.threads[0].stack;

	(void)state;
	assert_int_equal(stack->count, COUNT_OF(wanted));
	for (size_t i = 0; i < COUNT_OF(wanted); i++) {
		assert_int_equal(stack->frames[i].pc.va, wanted[i].pc.va);
		assert_int_equal(stack->frames[i].pc.kind, wanted[i].pc.kind);
		assert_int_equal(stack->frames[i].found_by, wanted[i].found_by);
	}
	assert_int_equal(stack->stop, STOP_UNKNOWN);
	assert_string_equal(stack->stop_detail, "struck by lightning");
	arena_free(&arena);
}

/* `threads` under an escaped name is not found by the splitter, but is `threads` all the same. */
static void threads_are_read_without_the_splitter(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_x86_64(&arena), again;
	char *text = written(&arena, &snapshot, true), *key = strstr(text, "\"threads\"");
	char *escaped = arena_printf(&arena, "%.*s\"\\u0074hreads\"%s", (int)(key - text), text,
				     key + strlen("\"threads\""));

	(void)state;
	again = read_back(&arena, escaped);
	assert_same(&snapshot, &again, true);
	arena_free(&arena);
}

/* Malformed twins. */

static void assert_refused(const char *what, struct bytes text, const char *wanted)
{
	static struct arena arena; /* kept from call to call: there are thousands */
	struct snapshot snapshot;
	struct err e = {0};

	if (capture_read(&arena, text, NAME, &snapshot, &e))
		fail_msg("%s: was read", what);
	if (strncmp(e.text, NAME ": ", strlen(NAME ": ")) != 0 || !strstr(e.text, wanted) ||
	    strchr(e.text, '\n'))
		fail_msg("%s: '%s' does not say '%s'", what, e.text, wanted);
	arena_reset(&arena);
}

/* Trees kept while a capture is read thousands of times: musl gives every page back that falls
 * empty, and fetching it anew takes most of the time (very much of it in an emulator). */
struct ballast {
	struct json_object *trees[8];
};

static struct ballast ballast_take(const char *text)
{
	struct ballast ballast;

	for (size_t i = 0; i < COUNT_OF(ballast.trees); i++)
		ballast.trees[i] = json_tokener_parse(text);
	for (size_t i = 0; i < COUNT_OF(ballast.trees); i += 2) {
		json_object_put(ballast.trees[i]);
		ballast.trees[i] = NULL;
	}
	return ballast;
}

static void ballast_drop(struct ballast *ballast)
{
	for (size_t i = 0; i < COUNT_OF(ballast->trees); i++)
		json_object_put(ballast->trees[i]);
}

static void capture_cut_short_is_refused_at_every_length(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_hostile(&arena);
	const char *text = written(&arena, &snapshot, true);
	size_t whole = strlen(text) - strlen("\n");
	struct ballast ballast = ballast_take(text);

	(void)state;
	assert_refused("empty", (struct bytes){NULL, 0}, "is empty");
	for (size_t length = 1; length < whole; length++) {
		char wanted[64];

		snprintf(wanted, sizeof wanted, "cut short at offset %zu", length);
		/* Not inside a character, where the complaint is about UTF-8. */
		if (utf8_invalid_at((struct bytes){(const uint8_t *)text, length}) != length)
			snprintf(wanted, sizeof wanted, "not UTF-8");
		assert_refused("cut", (struct bytes){(const uint8_t *)text, length}, wanted);
	}
	ballast_drop(&ballast);
	arena_free(&arena);
}

/* One byte changed, everywhere: refused or read, but nothing worse. */
static void damaged_captures_do_no_harm(void **state)
{
	static const char damage[] = {'"', '{', '}', '[', ']', ',', ':', '0', '\\', ' ', 'x'};
	struct arena arena = {0}, scratch = {0};
	struct snapshot snapshot = sample_x86_64(&arena);
	char *text = written(&arena, &snapshot, true);
	size_t refused = 0;
	struct ballast ballast = ballast_take(text);

	(void)state;
	for (size_t i = 0; text[i]; i++) {
		char kept = text[i];
		struct snapshot read;
		struct err e = {0};

		text[i] = damage[i % sizeof damage];
		if (!capture_read(&scratch, bytes_of(text), NAME, &read, &e)) {
			refused++;
			assert_non_null(strstr(e.text, NAME ": "));
		}
		arena_reset(&scratch);
		text[i] = kept;
	}
	assert_true(refused > strlen(text) / 3);
	ballast_drop(&ballast);
	arena_free(&scratch);
	arena_free(&arena);
}

/* What each member must be. A member that is not listed here fails the test: list it. */
enum wanted { NUMBER, TEXT, FLAG, ARRAY, OBJECT, FRAME, FREE };

static const struct {
	const char *key;
	enum wanted wanted;
	bool required;
	enum wanted items; /* of an array */
} members[] = {
	{"format", TEXT, false, FREE},
	{"version", NUMBER, true, FREE},
	{"stacker_version", TEXT, false, FREE},
	{"timestamp", TEXT, false, FREE},
	{"hostname", TEXT, false, FREE},
	{"kernel", TEXT, false, FREE},
	{"architecture", TEXT, true, FREE},
	{"executable_path", TEXT, false, FREE},
	{"process_id", NUMBER, true, FREE},
	{"command_line", ARRAY, false, TEXT},
	{"pointer_authentication_mask", NUMBER, false, FREE},
	{"capture", OBJECT, false, FREE},
	{"method", TEXT, false, FREE},
	{"method_note", TEXT, false, FREE},
	{"realtime", FLAG, false, FREE},
	{"capture_ns", NUMBER, false, FREE},
	{"stopped_ns", NUMBER, false, FREE},
	{"held_median_ns", NUMBER, false, FREE},
	{"held_longest_ns", NUMBER, false, FREE},
	{"threads_found", NUMBER, false, FREE},
	{"threads_stopped", NUMBER, false, FREE},
	{"threads_left_out", NUMBER, false, FREE},
	{"threads_untouched", NUMBER, false, FREE},
	{"threads_missing", FLAG, false, FREE},
	{"one_instant", FLAG, false, FREE},
	{"calls_restarted", NUMBER, false, FREE},
	{"stack_bytes", NUMBER, false, FREE},
	{"stack_bytes_missing", NUMBER, false, FREE},
	{"unanswered", TEXT, false, FREE},
	{"memory_maps", ARRAY, false, OBJECT},
	{"start", NUMBER, false, FREE}, /* required of maps, not of modules: see `lies` */
	{"end", FREE, false, FREE},     /* of maps a number, of threads a word: see `lies` */
	{"permissions", TEXT, false, FREE},
	{"offset", NUMBER, false, FREE},
	{"device", TEXT, false, FREE},
	{"inode", NUMBER, false, FREE},
	{"pathname", TEXT, false, FREE},
	{"deleted", FLAG, false, FREE},
	{"module", NUMBER, false, FREE},
	{"file_base_addresses", FREE, false, FREE}, /* for others: not read */
	{"modules", ARRAY, false, OBJECT},
	{"path", TEXT, true, FREE},
	{"build_id", TEXT, false, FREE},
	{"load_bias", NUMBER, false, FREE},
	{"executable", FLAG, false, FREE},
	{"vdso", OBJECT, false, FREE},
	{"address", NUMBER, true, FREE},
	{"bytes", TEXT, true, FREE},
	{"threads", ARRAY, true, OBJECT},
	{"tid", NUMBER, true, FREE},
	{"thread_name", TEXT, false, FREE},
	{"state", TEXT, false, FREE},
	{"syscall", NUMBER, false, FREE},
	{"syscall_name", FREE, false, FREE}, /* for others: not read */
	{"held_ns", NUMBER, false, FREE},
	{"left_out", TEXT, false, FREE},
	{"wait_channel", TEXT, false, FREE},
	{"kernel_stack", TEXT, false, FREE},
	{"tracer_pid", NUMBER, false, FREE},
	{"tracer_name", TEXT, false, FREE},
	{"stack_missing", NUMBER, false, FREE},
	{"registers", OBJECT, false, NUMBER}, /* its members are no `members` of this table */
	{"stack_trace", ARRAY, false, FRAME},
	{"frame_runs", ARRAY, false, OBJECT},
	{"frames", NUMBER, true, FREE},
	{"kind", TEXT, false, FREE},
	{"found_by", TEXT, false, FREE},
	{"end_detail", TEXT, false, FREE},
	{"folded_frames", NUMBER, false, FREE},
	{"folded_before", NUMBER, false, FREE},
	{"stack_memory", ARRAY, false, OBJECT},
};

static size_t member_index(const char *key)
{
	for (size_t i = 0; i < COUNT_OF(members); i++)
		if (strcmp(members[i].key, key) == 0)
			return i;
	fail_msg("%s is not in the table of members", key);
	return 0;
}

/* A value of each type, and numbers that are none here. */
static const struct {
	const char *json;
	unsigned fits; /* bit set of enum wanted */
} replacements[] = {
	{"true", 1U << FLAG},
	{"\"x\"", 1U << TEXT},
	{"\"\"", 1U << TEXT},
	{"\"0x10000000000000000\"", 1U << TEXT},
	{"{}", 1U << OBJECT},
	{"[]", 1U << ARRAY},
	{"1", 1U << NUMBER | 1U << FRAME},
	{"-1", 0},
	{"1.5", 0},
	{"1e300", 0},
	{"[[[[{}]]]]", 1U << ARRAY},
};

struct mutation {
	struct json_object *document;
	size_t tried;
};

/* Reads the document as it now stands and wants a refusal that names `key`. */
static void assert_document_refused(struct mutation *mutation, const char *key)
{
	const char *text = json_object_to_json_string_ext(mutation->document, 0);

	assert_refused(key, bytes_of(text), key);
	mutation->tried++;
}

static void replace_in_object(struct mutation *mutation, struct json_object *object,
			      const char *key, enum wanted wanted)
{
	struct json_object *kept = json_object_get(json_object_object_get(object, key));

	for (size_t i = 0; i < COUNT_OF(replacements); i++) {
		if (wanted == FREE || replacements[i].fits & 1U << wanted)
			continue;
		json_object_object_add(object, key, json_tokener_parse(replacements[i].json));
		assert_document_refused(mutation, key);
	}
	json_object_object_add(object, key, kept);
}

static void replace_in_array(struct mutation *mutation, struct json_object *array, size_t index,
			     enum wanted wanted)
{
	struct json_object *kept = json_object_get(json_object_array_get_idx(array, index));
	char place[32];

	snprintf(place, sizeof place, "[%zu]", index);
	for (size_t i = 0; i <= COUNT_OF(replacements); i++) {
		bool null = i == COUNT_OF(replacements);

		if (!null && replacements[i].fits & 1U << wanted)
			continue;
		json_object_array_put_idx(array, index,
					  null ? NULL
					       : json_tokener_parse(replacements[i].json));
		assert_document_refused(mutation, place);
	}
	json_object_array_put_idx(array, index, kept);
}

static void mutate_object(struct mutation *mutation, struct json_object *object,
			  bool registers);

static void mutate_array(struct mutation *mutation, struct json_object *array,
			 enum wanted items)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);

		replace_in_array(mutation, array, i, items);
		if (json_object_is_type(item, json_type_object))
			mutate_object(mutation, item, false);
	}
}

static void mutate_member(struct mutation *mutation, struct json_object *object,
			  const char *key)
{
	size_t index = member_index(key);
	struct json_object *value;

	replace_in_object(mutation, object, key, members[index].wanted);
	if (members[index].required) {
		struct json_object *kept = json_object_get(json_object_object_get(object, key));

		json_object_object_del(object, key);
		assert_document_refused(mutation, key);
		json_object_object_add(object, key, kept);
	}
	if (members[index].wanted == FREE)
		return;
	value = json_object_object_get(object, key);
	if (json_object_is_type(value, json_type_object))
		mutate_object(mutation, value, strcmp(key, "registers") == 0);
	else if (json_object_is_type(value, json_type_array))
		mutate_array(mutation, value, members[index].items);
}

static void mutate_object(struct mutation *mutation, struct json_object *object, bool registers)
{
	const char *keys[64];
	size_t count = 0;

	/* The object changes underway. */
	json_object_object_foreach(object, key, value)
	{
		(void)value;
		assert_true(count < COUNT_OF(keys));
		keys[count++] = strdup(key);
	}
	for (size_t i = 0; i < count; i++) {
		if (registers)
			replace_in_object(mutation, object, keys[i], NUMBER);
		else
			mutate_member(mutation, object, keys[i]);
		free((void *)(uintptr_t)keys[i]);
	}
}

static void every_member_of_a_wrong_type_is_refused(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_x86_64(&arena);
	struct mutation mutation = {0};
	struct ballast ballast = ballast_take(written(&arena, &snapshot, true));

	(void)state;
	mutation.document = json_tokener_parse(written(&arena, &snapshot, true));
	mutate_object(&mutation, mutation.document, false);
	assert_true(mutation.tried > 1500);
	json_object_put(mutation.document);
	ballast_drop(&ballast);
	arena_free(&arena);
}

#define HEAD \
	"{\"format\":\"stacker-capture\",\"version\":1,\"architecture\":\"x86_64\",\"process_id\":1,"
#define ONE_THREAD "\"threads\":[{\"tid\":1}]}"
#define WITH(members_) HEAD members_ "," ONE_THREAD
#define THREAD(members_) HEAD "\"threads\":[{\"tid\":1," members_ "}]}"
#define MAP(start_, end_) "{\"start\":" start_ ",\"end\":" end_ "}"
#define MODULE(members_) "\"modules\":[{\"path\":\"a\"," members_ "}]"

static void lies_are_refused(void **state)
{
	static const struct {
		const char *name, *text, *wanted;
	} lies[] = {
		{"text", "Stacker v1", "not JSON: unexpected character at offset 0"},
		{"spaces", "  \n ", "cut short at offset 4"},
		{"null", "null", "is not a capture"},
		{"number", "12", "should be an object"},
		{"array", "[]", "should be an object"},
		{"other object", "{\"a\":1}", "neither \"format\" nor \"threads\""},
		{"other format", "{\"format\":\"core\\u001bdump\"}",
		 "its format is 'core\\x1bdump'"},
		{"report", "{\"format\":\"stacker-report\",\"version\":1}",
		 "its format is 'stacker-report'"},
		{"newer", "{\"format\":\"stacker-capture\",\"version\":2,\"threads\":{}}",
		 "version: was written by a newer Stacker"},
		{"version 0", "{\"format\":\"stacker-capture\",\"version\":0,\"threads\":[]}",
		 "version: is 0; the first one was 1"},
		{"architecture",
		 "{\"architecture\":\"riscv64\",\"process_id\":1,\"threads\":[]}",
		 "architecture: unknown architecture 'riscv64' (known: x86_64, aarch64)"},
		{"trailing", HEAD ONE_THREAD "x", "not JSON"},
		{"trailing document", HEAD ONE_THREAD "{}", "not JSON"},
		{"comment", "/**/" HEAD ONE_THREAD, "not JSON"},
		{"trailing comma", HEAD "\"threads\":[{\"tid\":1},]}", "cut short"},
		{"no comma", HEAD "\"threads\":[{\"tid\":1} {\"tid\":2}]}", "not JSON"},
		{"brackets", HEAD "\"threads\":[{\"tid\":1]}]}", "not JSON"},
		{"brace for bracket", HEAD "\"threads\":[{\"tid\":1}}}", "not JSON"},
		{"empty item", HEAD "\"threads\":[,]}", "cut short"},
		{"threads twice", HEAD "\"threads\":[],\"threads\":[{\"tid\":1}]}",
		 "threads: is there twice"},
		{"threads of numbers", HEAD "\"threads\":[1]}",
		 "threads[0]: should be an object"},
		{"threads null", HEAD "\"threads\":[null]}", "threads[0]: is missing"},
		{"threads object", HEAD "\"threads\":{}}", "threads: should be an array"},
		{"no threads", HEAD "\"a\":1}", "threads: is missing"},
		{"same tid", HEAD "\"threads\":[{\"tid\":2},{\"tid\":1},{\"tid\":2}]}",
		 "threads: thread 2 is there twice"},
		{"tid too large", HEAD "\"threads\":[{\"tid\":2147483648}]}",
		 "threads[0].tid: is 2147483648, more than 2147483647"},
		{"map start", WITH("\"memory_maps\":[{\"end\":1}]"),
		 "memory_maps[0].start: is missing"},
		{"map end", WITH("\"memory_maps\":[{\"start\":1}]"),
		 "memory_maps[0].end: is missing"},
		{"map end type", WITH("\"memory_maps\":[" MAP("1", "true") "]"),
		 "memory_maps[0].end: should be"},
		{"empty map", WITH("\"memory_maps\":[" MAP("1", "1") "]"),
		 "ends before it begins"},
		{"maps overlap", WITH("\"memory_maps\":[" MAP("1", "3") "," MAP("2", "4") "]"),
		 "memory_maps[1]: begins before the end of the one before"},
		{"maps out of order",
		 WITH("\"memory_maps\":[" MAP("5", "6") "," MAP("1", "2") "]"),
		 "memory_maps[1]: begins before"},
		{"same module",
		 WITH("\"modules\":[{\"path\":\"/a\",\"start\":4096,\"end\":8192},{\"path\":\"/b\"},"
		      "{\"path\":\"/a\",\"start\":4096,\"end\":8192}]"),
		 "modules: '/a' is there twice, or begins where another does"},
		{"modules at one place",
		 WITH("\"modules\":[{\"path\":\"/a\",\"start\":4096,\"end\":8192},"
		      "{\"path\":\"/b\",\"start\":4096,\"end\":12288}]"),
		 "modules: '/b' is there twice, or begins where another does"},
		{"same module without a place",
		 WITH("\"modules\":[{\"path\":\"/a\",\"build_id\":\"ab\"},"
		      "{\"path\":\"/a\",\"build_id\":\"ab\"}]"),
		 "modules: '/a' is there twice"},
		{"two executables",
		 WITH("\"modules\":[{\"path\":\"/a\",\"executable\":true},"
		      "{\"path\":\"/b\",\"executable\":true}]"),
		 "modules: 2 of them are the executable"},
		{"module index",
		 WITH("\"modules\":[],\"memory_maps\":[{\"start\":1,\"end\":2,\"module\":0}]"),
		 "memory_maps[0].module: is 0, but there are 0 modules"},
		{"permissions",
		 WITH("\"memory_maps\":[{\"start\":1,\"end\":2,\"permissions\":\"rwxq\"}]"),
		 "permissions: should be like"},
		{"short permissions",
		 WITH("\"memory_maps\":[{\"start\":1,\"end\":2,\"permissions\":\"rw\"}]"),
		 "permissions: should be like"},
		{"device", WITH("\"memory_maps\":[{\"start\":1,\"end\":2,\"device\":\"1\"}]"),
		 "device: should be like"},
		{"device too long",
		 WITH("\"memory_maps\":[{\"start\":1,\"end\":2,\"device\":\"123456789:1\"}]"),
		 "device: should be like"},
		{"build-id is a path", WITH(MODULE("\"build_id\":\"../../etc\"")),
		 "modules[0].build_id: should be lower-case hex"},
		{"half a byte of build-id", WITH(MODULE("\"build_id\":\"abc\"")),
		 "build_id: should be"},
		{"module ends first", WITH(MODULE("\"start\":2,\"end\":1")),
		 "modules[0]: ends before it begins"},
		{"NUL in a string", THREAD("\"thread_name\":\"a\\u0000b\""),
		 "threads[0].thread_name: holds a NUL byte"},
		{"escaped NUL", THREAD("\"thread_name\":\"a\\\\x00b\""),
		 "threads[0].thread_name: holds a NUL byte"},
		{"NUL in a word", WITH("\"capture\":{\"method\":1}"),
		 "capture.method: should be a string"},
		{"state", THREAD("\"state\":\"SS\""), "threads[0].state: should be one letter"},
		{"control character as state", THREAD("\"state\":\"\\u001b\""),
		 "state: should be one"},
		{"negative", THREAD("\"held_ns\":-1"), "threads[0].held_ns: is negative"},
		{"register", THREAD("\"registers\":{\"RAX\":\"0xg\"}"),
		 "threads[0].registers.RAX: should be a number"},
		{"frame", THREAD("\"stack_trace\":[1,\"main\"]"),
		 "threads[0].stack_trace[1]: should be a number"},
		{"frame without pc", THREAD("\"stack_trace\":[{\"kind\":\"exact\"}]"),
		 "threads[0].stack_trace[0].pc: is missing"},
		{"kind", THREAD("\"stack_trace\":[{\"pc\":1,\"kind\":\"maybe\"}]"),
		 "stack_trace[0].kind: should be \"exact\" or \"return\""},
		{"runs too short",
		 THREAD("\"stack_trace\":[1,2],\"frame_runs\":[{\"frames\":1}]"),
		 "frame_runs: says something about 1 of 2 frames"},
		{"runs too long", THREAD("\"stack_trace\":[1],\"frame_runs\":[{\"frames\":2}]"),
		 "frame_runs[0].frames: is 2, more than 1"},
		{"runs without a stack", THREAD("\"frame_runs\":[{\"frames\":1}]"),
		 "frame_runs[0].frames: is 1, more than 0"},
		{"fold", THREAD("\"stack_trace\":[1],\"folded_before\":2"),
		 "folded_before: is 2, more than 1"},
		{"end", THREAD("\"end\":1"), "threads[0].end: should be a string"},
		{"base64", THREAD("\"stack_memory\":[{\"address\":1,\"bytes\":\"Zg\"}]"),
		 "stack_memory[0].bytes: is not base64"},
		{"piece beyond the end",
		 THREAD("\"stack_memory\":[{\"address\":\"0xffffffffffffffff\",\"bytes\":\"Zm8=\"}]"),
		 "stack_memory[0]: reaches beyond the end"},
		{"vdso", WITH("\"vdso\":{\"address\":1}"), "vdso.bytes: is missing"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lies); i++)
		assert_refused(lies[i].name, bytes_of(lies[i].text), lies[i].wanted);
}

static void bytes_that_are_not_text_are_refused(void **state)
{
	static const char nul[] = HEAD "\"a\":\"\0\"," ONE_THREAD;
	static const char latin1[] = HEAD "\"a\":\"\xe9\"," ONE_THREAD;
	char wanted[64];

	(void)state;
	snprintf(wanted, sizeof wanted, "NUL byte at offset %zu", strlen(nul));
	assert_refused("NUL", (struct bytes){(const uint8_t *)nul, sizeof nul - 1}, wanted);
	snprintf(wanted, sizeof wanted, "not UTF-8 at offset %zu", strlen(nul));
	assert_refused("Latin-1", bytes_of(latin1), wanted);
}

/* `count` times `text` between the two others. */
static char *repeated(struct arena *arena, const char *before, const char *text, size_t count,
		      const char *after)
{
	size_t length = strlen(text), head = strlen(before);
	char *all = arena_alloc(arena, head + length * count + strlen(after) + 1, 1);

	memcpy(all, before, head);
	for (size_t i = 0; i < count; i++)
		memcpy(all + head + i * length, text, length);
	memcpy(all + head + count * length, after, strlen(after));
	return all;
}

static void bombs_are_refused(void **state)
{
	static const struct {
		const char *name, *before, *text;
		size_t count;
		const char *after, *wanted;
	} bombs[] = {
		{"deep arrays", HEAD "\"a\":", "[", 1000000, "", "more objects"},
		{"rather deep arrays", HEAD "\"a\":", "[", 40, "", "nesting too deep"},
		{"deep objects", HEAD "\"a\":", "{\"a\":", 40, "", "nesting too deep"},
		{"deep thread", HEAD "\"threads\":[", "[", 40, "", "nesting too deep"},
		{"many objects", HEAD "\"a\":[", "{},", 200000, "1]," ONE_THREAD,
		 "more objects"},
		{"many objects in a thread", HEAD "\"threads\":[{\"tid\":1,\"a\":[", "[],",
		 200000, "1]}]}", "more objects"},
		{"many pieces", HEAD "\"threads\":[{\"tid\":1,\"stack_memory\":[",
		 "{\"address\":\"0x1000\",\"bytes\":\"AA==\"},", 256,
		 "{\"address\":\"0x1000\",\"bytes\":\"AA==\"}]}]}",
		 "stack_memory: has 257 pieces"},
		{"many threads", HEAD "\"threads\":[", "{\"tid\":1},", 20000, "{\"tid\":1}]}",
		 "there twice"},
		{"many modules", HEAD "\"modules\":[",
		 "{\"path\":\"/a\",\"start\":1,\"end\":2},", 20000,
		 "{\"path\":\"/b\"}]," ONE_THREAD, "'/a' is there twice"},
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bombs); i++)
		assert_refused(bombs[i].name,
			       bytes_of(repeated(&arena, bombs[i].before, bombs[i].text,
						 bombs[i].count, bombs[i].after)),
			       bombs[i].wanted);
	arena_free(&arena);
}

/* A file may be replaced and loaded again under its name, with or without the build-id; one that is mapped twice
 * lies around others. */
static void modules_that_only_look_alike_are_read(void **state)
{
	static const char *const lists[] = {
		WITH("\"modules\":[{\"path\":\"/a\",\"build_id\":\"ab\",\"deleted\":true,\"start\":4096,\"end\":8192},"
		     "{\"path\":\"/a\",\"build_id\":\"ab\",\"deleted\":true,\"start\":8192,\"end\":12288}]"),
		WITH("\"modules\":[{\"path\":\"/a\",\"start\":4096,\"end\":65536},"
		     "{\"path\":\"/b\",\"start\":8192,\"end\":12288,\"executable\":true}]"),
		WITH("\"modules\":[{\"path\":\"/a\"},{\"path\":\"/a\",\"deleted\":true},"
		     "{\"path\":\"/a\",\"build_id\":\"ab\"},{\"path\":\"/a\",\"build_id\":\"cd\"}]"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		struct arena arena = {0};
		struct snapshot snapshot;
		struct err e = {0};

		if (!capture_read(&arena, bytes_of(lists[i]), "x", &snapshot, &e))
			fail_msg("%s", e.text);
		arena_free(&arena);
	}
}

static void map_is_found_by_address(void **state)
{
	static const struct {
		uint64_t va;
		int index;
	} cases[] = {
		{0, -1},
		{0x3fffff, -1},
		{0x400000, 0},
		{0x400fff, 0},
		{0x401000, 1},
		{0x402000, -1},
		{0x7f5c3a1fffff, 3},
		{0x7ffd12341fff, 4},
		{0x7ffd12342000, -1},
		{UINT64_MAX, -1},
	};
	struct arena arena = {0};
	struct snapshot snapshot = sample_x86_64(&arena);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct map *map = snapshot_map_at(&snapshot, cases[i].va);

		assert_ptr_equal(map,
				 cases[i].index < 0 ? NULL : &snapshot.maps[cases[i].index]);
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_goes_there_and_back),
		cmocka_unit_test(every_word_goes_there_and_back),
		cmocka_unit_test(usual_stacks_have_no_runs),
		cmocka_unit_test(process_without_anything_goes_there_and_back),
		cmocka_unit_test(capture_of_elsewhere_is_read),
		cmocka_unit_test(modules_are_made_from_maps),
		cmocka_unit_test(frames_may_be_objects),
		cmocka_unit_test(threads_are_read_without_the_splitter),
		cmocka_unit_test(capture_cut_short_is_refused_at_every_length),
		cmocka_unit_test(damaged_captures_do_no_harm),
		cmocka_unit_test(every_member_of_a_wrong_type_is_refused),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(bytes_that_are_not_text_are_refused),
		cmocka_unit_test(bombs_are_refused),
		cmocka_unit_test(modules_that_only_look_alike_are_read),
		cmocka_unit_test(map_is_found_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
