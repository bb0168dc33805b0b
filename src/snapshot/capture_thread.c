/*
 * snapshot/capture_thread: one thread of a capture: what it is, its registers, its stack.
 */
#include <ctype.h>
#include <string.h>

#include "snapshot/capture_parts.h"
#include "snapshot/frame_runs.h"

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
	frame->pc.kind = (uint8_t)kind;
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
		frame->pc.va = node_number(node, UINT64_MAX);
		return;
	}
	frame->pc.va = required_number(node, "pc", UINT64_MAX);
	read_kind(node, frame);
	read_found_by(node, frame);
}

static void read_frame_runs(const struct node *up, struct stack *stack)
{
	struct node list = node_member(up, "frame_runs");
	size_t count = node_count(&list), at = 0;

	for (size_t i = 0; i < count && !up->in->failed; i++) {
		struct node node = node_item(&list, i);
		struct frame like = {.pc.kind = PC_RETURN, .found_by = FOUND_RECORDED};
		size_t frames;

		node_require(&node);
		node_want_object(&node);
		frames = (size_t)required_number(&node, "frames", stack->count - at);
		read_kind(&node, &like);
		read_found_by(&node, &like);
		for (; frames; frames--, at++) {
			stack->frames[at].pc.kind = like.pc.kind;
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
	stack->elided = member_number(up, "folded_frames", UINT64_MAX);
	stack->elided_at = (size_t)member_number(up, "folded_before", stack->count);
}

/* Stacker writes one piece, and one more for each stack that a signal handler interrupted. They are
 * searched one by one for every address that the unwinder reads. */
#define PIECES_MAX 256

static void read_pieces(const struct node *up, struct thread *thread)
{
	struct node list = node_member(up, "stack_memory");
	size_t count = node_count(&list);

	if (count > PIECES_MAX) {
		node_fail(&list, ERR_LIMIT, "has %zu pieces; a stack has at most %d", count,
			  PIECES_MAX);
		return;
	}
	thread->pieces = arena_array(up->in->arena, struct memory_piece, count);
	for (size_t i = 0; i < count && !up->in->failed; i++) {
		struct node node = node_item(&list, i);

		node_require(&node);
		read_piece(&node, &thread->pieces[i]);
	}
	thread->piece_count = count;
}

void read_thread(const struct node *node, const struct arch *arch, struct thread *thread)
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
	thread->tracer_pid = (uint32_t)member_number(node, "tracer_pid", TID_LIMIT);
	thread->tracer_name = member_text(node, "tracer_name");
	thread->stack_missing = member_number(node, "stack_missing", UINT64_MAX);
	read_registers(node, arch, thread);
	read_frames(node, &thread->stack);
	read_stack_end(node, &thread->stack);
	read_pieces(node, thread);
}
