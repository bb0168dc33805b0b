/*
 * output/report: the finished result as plain data. Printers print it and never compute.
 */
#ifndef STACKER_OUTPUT_REPORT_H
#define STACKER_OUTPUT_REPORT_H

#include <stdio.h>

#include "base/err.h"
#include "snapshot/snapshot.h"

/* One printed frame: an inlined level or a real one. Unknown values are NULL or 0. */
struct report_frame {
	uint64_t pc;
	const char *function;
	uint64_t function_off; /* pc - function's start; valid when has_function_off */
	bool has_function_off;
	const char *file;
	uint32_t line, column;
	bool inlined;
	const char *module;      /* path, NULL: no module at this address */
	const char *module_name; /* last part of it */
	const char *build_id;
	uint64_t module_off; /* pc as an address of the module's file (ea); valid with module */
	enum found_by found_by;
};

struct report_thread {
	const struct thread *thread; /* name, registers, why the stack ends */
	struct report_frame *frames; /* innermost first */
	size_t frame_count;
	uint64_t elided; /* frames left out before frames[elided_at] */
	size_t elided_at;
};

struct report {
	const struct snapshot *snapshot;
	struct report_thread *threads;
	size_t thread_count;
	const char *const *notes; /* what the reader should know: missing files, refusals */
	size_t note_count;
	bool partial; /* a thread, part of a stack or a module was left out */
};

struct report_options {
	bool registers, maps;
	bool verbose;             /* how frames were found, columns, notes of each module */
	bool from_capture;        /* symbolize: the banner says where the data comes from */
	const char *capture_name; /* its file, with from_capture; or NULL */
	const char *version;      /* for the banner; NULL: this program's */
	bool capture_only;        /* the head stands alone: nothing is symbolized after it */
};

/* The text report: banner, facts, maps, threads. Printed in two parts, so that
 * a user sees what was captured while symbols are still being read. */
void report_print_head(FILE *out, const struct snapshot *snapshot,
		       const struct report_options *options);
void report_print_threads(FILE *out, const struct report *report,
			  const struct report_options *options);

#define REPORT_FORMAT "stacker-report"
#define REPORT_VERSION 1

/* The JSON report (docs/capture-format.md, "The report"). False only when the JSON library
 * fails; write errors are the stream's. */
bool report_print_json(FILE *out, const struct report *report,
		       const struct report_options *options, struct err *e);

#endif
