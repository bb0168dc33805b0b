#include "unwind/code_frames.h"

static struct code_frame *place_of(struct code_frames *frames, const struct code_question *q,
				   size_t from)
{
	uint64_t mixed = (q->pc ^ (uint64_t)from << 7) * 2 + q->called;

	return &frames->at[(mixed * 2 + q->by_entry) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}
_Static_assert(CODE_FRAMES == 1 << (64 - 58), "all bits of the hash, and no more");

static void ask(const struct code_question *q, struct code_frame *answer)
{
	const struct arch *arch = q->arch;

	*answer = (struct code_frame){
		.pc = q->pc,
		.known = true,
		.called = q->called,
		.by_entry = q->by_entry,
		.from = answer->from,
		.entry = answer->from,
	};
	if (q->by_entry)
		answer->found = arch->frame_by_entry(q->text, q->at, q->called, &answer->entry,
						     &answer->frame);
	else
		answer->found = arch->frame_by_code(q->text, q->at, q->called, &answer->frame);
}

bool code_frame(struct code_frames *frames, const struct code_question *q, size_t *entry,
		struct arch_frame *out)
{
	size_t from = q->by_entry ? *entry : 0;
	struct code_frame *answer = place_of(frames, q, from);

	if (!answer->known || answer->pc != q->pc || answer->from != from ||
	    answer->called != q->called || answer->by_entry != q->by_entry) {
		answer->from = from;
		ask(q, answer);
	}
	if (q->by_entry)
		*entry = answer->entry;
	*out = answer->frame;
	return answer->found;
}
