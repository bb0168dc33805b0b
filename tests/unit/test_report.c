/*
 * The printers against golden files: tests/golden/report-*.txt and .json, read from the top of the
 * tree. After a change that is meant to be: STACKER_GOLDEN=write, run, and look at the difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "output/report.h"
#include "sample_snapshot.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define VERSION "0.0.0"

/* One frame of each form that the text report has. */
/* clang-format off */
static const struct report_frame frame_forms[] = {
	{.pc = 0x401136, .function = "read_all", .function_off = 0x16, .has_function_off = true,
	 .file = "src/main.rs", .line = 42, .column = 7, .module = "/srv/app/bin/app",
	 .module_name = "app", .build_id = "00ff", .module_off = 0x1136,
	 .found_by = FOUND_REGISTERS},
	{.pc = 0x401200, .function = "copy", .file = "src/io.rs", .line = 10, .inlined = true,
	 .module = "/srv/app/bin/app", .module_name = "app", .module_off = 0x1200,
	 .found_by = FOUND_CFI},
	{.pc = 0x401200, .function = "run", .file = "src/main.rs", .module = "/srv/app/bin/app",
	 .module_name = "app", .module_off = 0x1200, .found_by = FOUND_CFI},
	{.pc = 0x7f5c3a042520, .function = "start_thread", .function_off = 0x2f3,
	 .has_function_off = true, .module = "/usr/lib/libc.so.6", .module_name = "libc.so.6",
	 .module_off = 0x42520, .found_by = FOUND_SIGNAL},
	{.pc = 0x7f5c3a042530, .function = "at_start", .has_function_off = true,
	 .module = "/usr/lib/libc.so.6", .module_name = "libc.so.6", .module_off = 0x42530,
	 .found_by = FOUND_DEBUG_FRAME},
	{.pc = 0x7f5c3a042540, .function = "no_offset", .module = "/usr/lib/libc.so.6",
	 .module_name = "libc.so.6", .module_off = 0x42540, .found_by = FOUND_LINK_REGISTER},
	{.pc = 0x7f5c3b001111, .module = "/usr/lib/libfoo.so", .module_name = "libfoo.so",
	 .module_off = 0x1111, .found_by = FOUND_FRAME_POINTER},
	{.pc = 0x401300, .file = "src/asm.S", .line = 5, .module = "/srv/app/bin/app",
	 .module_name = "app", .module_off = 0x1300, .found_by = FOUND_CFI},
	{.pc = UINT64_MAX, .found_by = FOUND_SCAN},
	{.pc = 0, .function = "evil\x1b[2J\n\xff", .file = "a\tb\xc2\x9b", .line = UINT32_MAX,
	 .module = "/\xe2\x80\xae", .module_name = "\xe2\x80\xae", .module_off = UINT64_MAX,
	 .found_by = FOUND_RECORDED},
};
/* clang-format on */

static const char *const notes[] = {
	"/usr/lib/libfoo.so: no debug information (build-id 0123)",
	"/tmp/\x1b[31mred: file not found",
};

/* The first thread has frames of all forms, the others none of their own. */
static struct report report_of(struct arena *arena, const struct snapshot *snapshot)
{
	struct report report = {
		.snapshot = snapshot,
		.thread_count = snapshot->thread_count,
		.notes = notes,
		.note_count = COUNT_OF(notes),
		.partial = true,
	};

	report.threads = arena_array(arena, struct report_thread, report.thread_count);
	for (size_t i = 0; i < report.thread_count; i++)
		report.threads[i].thread = &snapshot->threads[i];
	report.threads[0].frames =
		arena_array(arena, struct report_frame, COUNT_OF(frame_forms));
	memcpy(report.threads[0].frames, frame_forms, sizeof frame_forms);
	report.threads[0].frame_count = COUNT_OF(frame_forms);
	report.threads[0].elided = 1000000;
	report.threads[0].elided_at = 3;
	return report;
}

static char *printed_text(struct arena *arena, const struct report *report,
			  const struct report_options *options)
{
	return WRITTEN_TO(arena, stream, {
		report_print_head(stream, report->snapshot, options);
		report_print_threads(stream, report, options);
	});
}

static char *printed_json(struct arena *arena, const struct report *report,
			  const struct report_options *options)
{
	return WRITTEN_TO(arena, stream,
			  assert_true(report_print_json(stream, report, options, NULL)));
}

/* Golden files. */

static char *file_text(struct arena *arena, const char *path)
{
	FILE *file = fopen(path, "rb");
	char buffer[4096];
	size_t count;
	char *text;

	if (!file)
		fail_msg("cannot open %s (run from the top of the tree)", path);
	text = WRITTEN_TO(arena, stream, {
		while ((count = fread(buffer, 1, sizeof buffer, file)) > 0)
			fwrite(buffer, 1, count, stream);
	});
	fclose(file);
	return text;
}

static void assert_golden(struct arena *arena, const char *name, const char *text)
{
	const char *path = arena_printf(arena, "tests/golden/%s", name);
	const char *mode = getenv("STACKER_GOLDEN");

	if (mode && strcmp(mode, "write") == 0) {
		FILE *file = fopen(path, "wb");

		assert_non_null(file);
		fputs(text, file);
		assert_int_equal(fclose(file), 0);
	}
	assert_string_equal(text, file_text(arena, path));
}

static const struct {
	const char *name;
	struct snapshot (*snapshot)(struct arena *);
	struct report_options options;
} reports[] = {
	{"report-x86_64", sample_x86_64, {.registers = true, .maps = true, .version = VERSION}},
	{"report-x86_64-verbose",
	 sample_x86_64,
	 {.registers = true,
	  .maps = true,
	  .verbose = true,
	  .from_capture = true,
	  .capture_name = "cap\x1bture.json",
	  .version = VERSION}},
	{"report-x86_64-short", sample_x86_64, {.version = VERSION}},
	{"report-aarch64",
	 sample_aarch64,
	 {.registers = true, .maps = true, .from_capture = true, .version = VERSION}},
	{"report-hostile",
	 sample_hostile,
	 {.registers = false, .maps = true, .from_capture = true, .version = VERSION}},
};

static void reports_are_as_golden(void **state)
{
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(reports); i++) {
		struct snapshot snapshot = reports[i].snapshot(&arena);
		struct report report = report_of(&arena, &snapshot);

		assert_golden(&arena, arena_printf(&arena, "%s.txt", reports[i].name),
			      printed_text(&arena, &report, &reports[i].options));
		assert_golden(&arena, arena_printf(&arena, "%s.json", reports[i].name),
			      printed_json(&arena, &report, &reports[i].options));
	}
	arena_free(&arena);
}

/* Whatever names are in it, a text report holds no control character but its own newlines. */
static void text_is_harmless_to_terminals(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_hostile(&arena);
	struct report report = report_of(&arena, &snapshot);
	const struct report_options options = {
		.registers = true,
		.maps = true,
		.verbose = true,
		.from_capture = true,
		.capture_name = "\x1b]0;title\x07",
	};
	const char *text = printed_text(&arena, &report, &options);

	(void)state;
	for (const char *c = text; *c; c++)
		assert_true(((unsigned char)*c >= 0x20 && *c != 0x7f) || *c == '\n');
	assert_null(strstr(text, "\xc2\x9b"));     /* C1 */
	assert_null(strstr(text, "\xe2\x80\xae")); /* right-to-left override */
	assert_int_equal(utf8_invalid_at((struct bytes){(const uint8_t *)text, strlen(text)}),
			 strlen(text));
	arena_free(&arena);
}

/* The lines that the README documents, word for word. */
static void documented_lines_are_there(void **state)
{
	static const char *const lines[] = {
		"Stacker v" VERSION " - Multi-architecture stack tracer\n"
		"Target architecture: x86_64\n"
		"Attaching to process 1234\n"
		"Found 3 threads\n"
		"Process was stopped for: 2.345ms\n",
		"\n\n=== Memory Maps ===\n",
		"\n\nSymbolizing stack traces...\n\n=== Thread 1 (TID: 1234, Name: 'main') ===\n",
		"\n  Registers (x86_64):\n    RAX: 0x",
		"\n  #0: 0x0000000000401136 in read_all at src/main.rs:42\n",
		"\n  #1: 0x0000000000401200 in copy [inlined] at src/io.rs:10\n",
		" in start_thread+0x2f3 (libc.so.6)\n",
		" in ?? (libfoo.so+0x1111)\n",
		"\n  [stack ends: outermost frame]\n",
	};
	struct arena arena = {0};
	struct snapshot snapshot = sample_x86_64(&arena);
	struct report report = report_of(&arena, &snapshot);
	const char *text = printed_text(&arena, &report, &reports[0].options);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		if (!strstr(text, lines[i]))
			fail_msg("missing: %s", lines[i]);
	arena_free(&arena);
}

static void head_of_a_mere_capture_promises_no_symbols(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_x86_64(&arena);
	const struct report_options options = {.capture_only = true};
	const char *text =
		WRITTEN_TO(&arena, stream, report_print_head(stream, &snapshot, &options));

	(void)state;
	assert_null(strstr(text, "Symbolizing"));
	assert_non_null(strstr(text, "Stacker v" STACKER_VERSION " - "));
	arena_free(&arena);
}

static void stop_time_is_truthful(void **state)
{
	static const struct {
		struct capture_facts facts;
		const char *line;
	} cases[] = {
		{{.method = CAPTURE_PTRACE, .stopped_ns = 1234},
		 "Process was stopped for: 1.234µs\nCapture method: ptrace\n"},
		{{.method = CAPTURE_BPF},
		 "Process was stopped for: 0ns\nCapture method: bpf\n"},
		{{.method = CAPTURE_UNKNOWN},
		 "Process was stopped for: unknown (the capture does not say)\n\n"},
		{{.method = CAPTURE_UNKNOWN, .stopped_ns = 1000000},
		 "Process was stopped for: 1.000ms\n\n"},
	};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct snapshot snapshot = {.arch = &arch_x86_64, .capture = cases[i].facts};
		const struct report_options options = {0};

		assert_non_null(
			strstr(WRITTEN_TO(&arena, stream,
					  report_print_head(stream, &snapshot, &options)),
			       cases[i].line));
	}
	arena_free(&arena);
}

/* json-c reads what was written, and a name comes back as it was. */
static void json_keeps_hostile_names(void **state)
{
	struct arena arena = {0};
	struct snapshot snapshot = sample_hostile(&arena);
	struct report report = report_of(&arena, &snapshot);
	const char *text = printed_json(&arena, &report, &reports[0].options);
	struct json_object *json = json_tokener_parse(text), *threads, *name;

	(void)state;
	assert_non_null(json);
	assert_true(json_object_object_get_ex(json, "threads", &threads));
	for (size_t i = 0; i < snapshot.thread_count; i++) {
		const char *escaped;
		struct bytes bytes;

		assert_true(json_object_object_get_ex(json_object_array_get_idx(threads, i),
						      "thread_name", &name));
		escaped = json_object_get_string(name);
		bytes = text_unescape(&arena, (struct bytes){(const uint8_t *)escaped,
							     strlen(escaped)});
		assert_string_equal((const char *)bytes.at, snapshot.threads[i].name);
	}
	json_object_put(json);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_are_as_golden),
		cmocka_unit_test(text_is_harmless_to_terminals),
		cmocka_unit_test(documented_lines_are_there),
		cmocka_unit_test(head_of_a_mere_capture_promises_no_symbols),
		cmocka_unit_test(stop_time_is_truthful),
		cmocka_unit_test(json_keeps_hostile_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
