#include "process/sightings.h"

#include <string.h>

/* Threads that are new in a later look than this are newer than the picture. */
#define LAST_LOOK_FOR_NEW 2

void sightings_prepare(struct sightings *sightings, struct arena *arena,
		       struct thread_table *table, bool follow_new)
{
	*sightings = (struct sightings){
		.table = table,
		.at = arena_array(arena, struct sighting, table->capacity),
		.follow_new = follow_new,
	};
	memset(sightings->at, 0, table->capacity * sizeof sightings->at[0]);
}

void sightings_begin(struct sightings *sightings)
{
	sightings->look++;
	sightings->seen = 0;
}

/* The letters of proc(5), of the bits of task_struct.__state that never changed. */
static char state_letter(uint32_t state)
{
	static const char letters[] = "SDTt";

	if (state == 0)
		return 'R';
	for (unsigned bit = 0; bit < sizeof letters - 1; bit++)
		if (state & 1U << bit)
			return letters[bit];
	return 0;
}

static void picture_take(struct held_thread *thread, struct sighting *sighting,
			 const struct bpf_record *record)
{
	thread->has_registers = !record->is_32bit;
	thread->foreign_registers = record->is_32bit;
	thread->kernel_state = state_letter(record->state);
	thread->from_ns = record->after_ns;
	memcpy(thread->registers.at, record->registers, sizeof thread->registers.at);
	thread->call =
		(struct task_call){record->syscall, thread->registers.at[arch_host()->sp_slot],
				   thread->registers.at[arch_host()->pc_slot]};
	sighting->thread_pointer = record->thread_pointer;
	sighting->switches = record->switches;
	sighting->has_picture = true;
	sighting->has_stack = false;
}

static void unsettled_take(struct held_thread *thread, struct sighting *sighting,
			   const struct bpf_record *record)
{
	if (record->is_ending) {
		thread->state = HELD_GONE;
		thread->has_registers = false;
	} else if (record->on_cpu) {
		sighting->has_picture = false;
	} else if (!sighting->has_picture || sighting->switches != record->switches) {
		picture_take(thread, sighting, record);
	} else if (sighting->has_stack) {
		thread->state = HELD_UNTOUCHED;
		thread->until_ns = record->before_ns;
	}
}

/* As long as it has not run its picture goes on to be true. */
static void settled_take(struct held_thread *thread, struct sighting *sighting,
			 const struct bpf_record *record)
{
	sighting->is_over |= record->on_cpu || record->switches != sighting->switches;
	if (!sighting->is_over)
		thread->until_ns = record->before_ns;
}

/* Index of the record's thread in the table, or its count when it is none of ours. */
static size_t row_of(struct sightings *sightings, uint32_t tid)
{
	size_t index = thread_index(sightings->table, tid);

	if (index < sightings->table->count || !sightings->follow_new ||
	    sightings->look > LAST_LOOK_FOR_NEW || !thread_add(sightings->table, tid))
		return index;
	return sightings->table->count - 1;
}

static void exec_look(struct sightings *sightings, const struct bpf_record *record)
{
	if (sightings->look == 1 && sightings->seen == 0)
		sightings->exec_id = record->exec_id;
	sightings->exec_seen |= sightings->exec_id != record->exec_id;
}

void sighting_take(struct sightings *sightings, const struct bpf_record *record)
{
	size_t row;

	if (!record->tid) /* of a pid namespace that is not ours to see */
		return;
	exec_look(sightings, record);
	sightings->seen++;
	row = row_of(sightings, record->tid);
	if (row == sightings->table->count)
		return;
	sightings->at[row].look = sightings->look;
	if (sightings->table->threads[row].state == HELD_LISTED)
		unsettled_take(&sightings->table->threads[row], &sightings->at[row], record);
	else if (sightings->table->threads[row].state == HELD_UNTOUCHED)
		settled_take(&sightings->table->threads[row], &sightings->at[row], record);
}

static bool wants_stack(const struct sightings *sightings, size_t row)
{
	return sightings->table->threads[row].state == HELD_LISTED &&
	       sightings->at[row].has_picture && !sightings->at[row].has_stack;
}

struct unsettled sightings_unsettled(const struct sightings *sightings)
{
	struct unsettled left = {0};

	for (size_t i = 0; i < sightings->table->count; i++) {
		if (wants_stack(sightings, i))
			left.without_stack++;
		else if (sightings->table->threads[i].state == HELD_LISTED)
			left.others++;
	}
	return left;
}

void sightings_want_stacks(struct sightings *sightings)
{
	struct thread_table *table = sightings->table;

	for (size_t i = 0; i < table->count; i++) {
		table->owners[i] = (struct stack_owner){0};
		if (wants_stack(sightings, i) && table->threads[i].has_registers)
			table->owners[i] = (struct stack_owner){
				&table->threads[i].registers,
				sightings->at[i].thread_pointer,
			};
	}
}

void sightings_have_stacks(struct sightings *sightings)
{
	for (size_t i = 0; i < sightings->table->count; i++)
		if (wants_stack(sightings, i))
			sightings->at[i].has_stack = true;
}

static enum held_state spared_state(const struct sightings *sightings,
				    const struct sighting *sighting)
{
	if (sighting->look != sightings->look)
		return HELD_UNSEEN;
	return sighting->has_picture ? HELD_UNSETTLED : HELD_RUNNING;
}

void sightings_give_up(struct sightings *sightings, bool never_stop)
{
	struct thread_table *table = sightings->table;

	for (size_t i = 0; i < table->count; i++) {
		struct held_thread *thread = &table->threads[i];

		table->owners[i] = (struct stack_owner){0};
		if (thread->state != HELD_LISTED)
			continue;
		table->owners[i].registers = &thread->registers;
		thread->has_registers = thread->foreign_registers = false;
		thread->kernel_state = 0;
		thread->from_ns = 0;
		if (never_stop)
			thread->state = (uint8_t)spared_state(sightings, &sightings->at[i]);
	}
}
