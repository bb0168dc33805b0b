/*
 * output/json: the report for programs (docs/capture-format.md, "The report"). Everything a
 * capture says about the process and its threads is said here in the same words.
 */
#include "output/report.h"
#include "snapshot/json_fields.h"

static void put_frame(struct json_out *out, const struct report_frame *frame)
{
	json_open(out, NULL, '{');
	json_hex(out, "pc", frame->pc);
	json_text(out, "function", frame->function);
	json_count_or_null(out, "function_offset", frame->has_function_off,
			   frame->function_off);
	json_text(out, "file", frame->file);
	json_count_or_null(out, "line", frame->line > 0, frame->line);
	json_count_or_null(out, "column", frame->column > 0, frame->column);
	json_flag(out, "inlined", frame->inlined);
	json_text(out, "module", frame->module);
	json_text(out, "build_id", frame->build_id);
	if (frame->module)
		json_hex(out, "offset", frame->module_off);
	else
		json_null(out, "offset");
	json_text(out, "found_by", found_by_text(frame->found_by));
	json_close(out, '}');
}

/* As json_put_stack_end does it for captures; the place is counted in report frames here. */
static void put_stack(struct json_out *out, const struct report_thread *thread)
{
	struct stack end = thread->thread->stack;

	end.elided = thread->elided;
	end.elided_at = thread->elided_at;
	json_open(out, "frames", '[');
	for (size_t i = 0; i < thread->frame_count; i++) {
		json_new_line(out);
		put_frame(out, &thread->frames[i]);
	}
	json_close(out, ']');
	json_put_stack_end(out, &end);
}

static void put_thread(struct json_out *out, const struct report_thread *thread,
		       const struct arch *arch, const struct report_options *options)
{
	json_new_line(out);
	json_open(out, NULL, '{');
	json_put_thread(out, arch, thread->thread);
	if (options->registers)
		json_put_registers(out, arch, thread->thread);
	put_stack(out, thread);
	json_close(out, '}');
}

static void put_notes(struct json_out *out, const struct report *report)
{
	json_new_line(out);
	json_open(out, "notes", '[');
	for (size_t i = 0; i < report->note_count; i++) {
		json_new_line(out);
		json_text(out, NULL, report->notes[i]);
	}
	json_close(out, ']');
}

bool report_print_json(FILE *stream, const struct report *report,
		       const struct report_options *options, struct err *e)
{
	const struct snapshot *snapshot = report->snapshot;
	struct json_out out;

	json_out_init(&out, stream);
	json_open(&out, NULL, '{');
	json_put_process(&out, REPORT_FORMAT, REPORT_VERSION, snapshot);
	if (options->maps)
		json_put_maps(&out, snapshot);
	json_put_modules(&out, snapshot);
	json_new_line(&out);
	json_flag(&out, "partial", report->partial);
	put_notes(&out, report);
	json_new_line(&out);
	json_open(&out, "threads", '[');
	for (size_t i = 0; i < report->thread_count; i++)
		put_thread(&out, &report->threads[i], snapshot->arch, options);
	json_new_line(&out);
	json_close(&out, ']');
	json_close(&out, '}');
	sink_char(&out.sink, '\n');
	return json_out_finish(&out) || err_set(e, ERR_SYSTEM, "write JSON: out of memory");
}
