/* Fuzzing of a capture file's whole way: read, unwound again where it holds stacks, named, printed. */
#include <stdio.h>

#include "cli/named.h"
#include "cli/pipeline.h"
#include "fuzz.h"
#include "snapshot/capture_file.h"

static void print(const struct report *report)
{
	static FILE *nowhere;
	struct report_options options = {.registers = true, .maps = true, .verbose = true};

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	report_print_head(nowhere, report->snapshot, &options);
	report_print_threads(nowhere, report, &options);
	report_print_json(nowhere, report, &options, NULL);
	fflush(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena arena;
	/* Files that the capture names are not to be found. */
	struct module_search search = {.sysroot = "/nonexistent", .sysroot_dir = -1};
	static const struct named named = {.sysroot = -1};
	struct options options = {.sysroot = "/nonexistent", .quiet = true, .named = &named};
	struct snapshot snapshot;
	struct modules modules;
	struct report report;
	struct err e = {0};

	if (capture_read(&arena, (struct bytes){data, size}, "fuzz", &snapshot, &e) &&
	    modules_open_offline(&modules, &arena, &snapshot, &search, &e)) {
		unwind_all(unwinder_new(&arena, &snapshot, &modules, NULL), &snapshot);
		pipeline_report(&arena, &options, &snapshot, &modules, &report);
		print(&report);
	}
	arena_reset(&arena);
	return 0;
}
