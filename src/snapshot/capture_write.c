/*
 * snapshot/capture_write: a snapshot as a capture file, thread by thread (docs/capture-format.md).
 */
#include "snapshot/capture_file.h"
#include "snapshot/frame_runs.h"
#include "snapshot/json_fields.h"

static void put_piece(struct json_out *out, const struct memory_piece *piece)
{
	json_hex(out, "address", piece->va);
	json_base64(out, "bytes", piece->bytes);
}

static void put_vdso(struct json_out *out, const struct snapshot *snapshot)
{
	if (!snapshot->vdso.bytes.len)
		return;
	json_new_line(out);
	json_open(out, "vdso", '{');
	put_piece(out, &snapshot->vdso);
	json_close(out, '}');
}

static void put_code_names(struct json_out *out, const struct snapshot *snapshot)
{
	if (snapshot->code_names_left_out)
		json_text(out, "code_names_left_out", snapshot->code_names_left_out);
	if (!snapshot->code_name_count)
		return;
	json_new_line(out);
	json_open(out, "code_names", '[');
	for (size_t i = 0; i < snapshot->code_name_count; i++) {
		const struct code_name *name = &snapshot->code_names[i];

		json_open(out, NULL, '{');
		json_hex(out, "address", name->va);
		json_hex(out, "start", name->start);
		json_text(out, "function", name->function);
		json_close(out, '}');
	}
	json_close(out, ']');
}

static void put_stack_memory(struct json_out *out, const struct thread *thread)
{
	json_open(out, "stack_memory", '[');
	for (size_t i = 0; i < thread->piece_count; i++) {
		json_open(out, NULL, '{');
		put_piece(out, &thread->pieces[i]);
		json_close(out, '}');
	}
	json_close(out, ']');
}

/* Written only where the frames are not the usual ones: it would say the same for every thread. */
static void put_frame_runs(struct json_out *out, const struct stack *stack)
{
	if (frames_are_usual(stack))
		return;
	json_open(out, "frame_runs", '[');
	for (size_t at = 0; at < stack->count;) {
		const struct frame *frame = &stack->frames[at];
		size_t length = frame_run_length(stack, at);

		json_open(out, NULL, '{');
		json_count(out, "frames", length);
		json_text(out, "kind", pc_kind_text((enum pc_kind)frame->pc.kind));
		json_text(out, "found_by", found_by_text((enum found_by)frame->found_by));
		json_close(out, '}');
		at += length;
	}
	json_close(out, ']');
}

static void put_stack(struct json_out *out, const struct stack *stack)
{
	json_open(out, "stack_trace", '[');
	for (size_t i = 0; i < stack->count; i++)
		json_hex(out, NULL, stack->frames[i].pc.va);
	json_close(out, ']');
	put_frame_runs(out, stack);
	json_put_stack_end(out, stack);
}

static void put_thread(struct json_out *out, const struct arch *arch,
		       const struct thread *thread, bool with_stacks)
{
	json_new_line(out);
	json_open(out, NULL, '{');
	json_put_thread(out, arch, thread);
	json_put_registers(out, arch, thread);
	put_stack(out, &thread->stack);
	if (with_stacks)
		put_stack_memory(out, thread);
	json_close(out, '}');
}

bool capture_write(FILE *stream, const struct snapshot *snapshot,
		   const struct capture_options *options, struct err *e)
{
	struct json_out out;

	json_out_init(&out, stream);
	json_open(&out, NULL, '{');
	json_put_process(&out, CAPTURE_FORMAT, CAPTURE_VERSION, snapshot);
	json_put_maps(&out, snapshot);
	json_put_modules(&out, snapshot);
	put_code_names(&out, snapshot);
	put_vdso(&out, snapshot);
	json_new_line(&out);
	json_open(&out, "threads", '[');
	for (size_t i = 0; i < snapshot->thread_count; i++)
		put_thread(&out, snapshot->arch, &snapshot->threads[i], options->with_stacks);
	json_new_line(&out);
	json_close(&out, ']');
	json_close(&out, '}');
	sink_char(&out.sink, '\n');
	if (!json_out_finish(&out))
		return err_set(e, ERR_SYSTEM, "write JSON: out of memory");
	return true;
}
