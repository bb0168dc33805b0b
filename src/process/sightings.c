#include "process/sightings.h"

#include <string.h>

/* Threads that are new in a later look than this are newer than the picture. */
#define LAST_LOOK_FOR_NEW 2
/* task_struct.prio of those that are scheduled by niceness begins here. */
#define PRIORITY_NORMAL 100

void sightings_prepare(struct sightings *sightings, struct arena *arena,
		       const struct arch *arch, struct thread_table *table, bool follow_new)
{
	*sightings = (struct sightings){
		.arch = arch,
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

/* The letters of proc(5), of the bits of task_struct.__state (include/linux/sched.h), which did not
 * change since BPF could read threads. Who waits so without being load, as those do that wait for
 * the core dump of another thread, is idle (task_state_index). */
#define TASK_UNINTERRUPTIBLE 0x2U
#define TASK_NOLOAD 0x400U
#define TASK_IDLE (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)

static char state_letter(uint32_t state)
{
	static const char letters[] = "SDTt";

	if (state == 0)
		return 'R';
	if ((state & TASK_IDLE) == TASK_IDLE)
		return 'I';
	for (unsigned bit = 0; bit < sizeof letters - 1; bit++)
		if (state & 1U << bit)
			return letters[bit];
	return 0;
}

static void picture_take(const struct arch *arch, struct held_thread *thread,
			 struct sighting *sighting, const struct bpf_record *record)
{
	thread->has_registers = !record->is_32bit;
	thread->foreign_registers = record->is_32bit;
	thread->kernel_state = state_letter(record->state);
	thread->from_ns = record->seen.after_ns;
	memcpy(thread->registers.at, record->registers, sizeof thread->registers.at);
	thread->call = (struct task_call){record->syscall, thread->registers.at[arch->sp_slot],
					  thread->registers.at[arch->pc_slot]};
	sighting->thread_pointer = record->thread_pointer;
	sighting->switches = record->seen.switches;
	sighting->has_picture = true;
	sighting->has_stack = false;
}

/* As long as it has not run its picture goes on to be true. */
static void settled_glance(struct held_thread *thread, struct sighting *sighting,
			   const struct bpf_glance *seen)
{
	sighting->is_over |= seen->on_cpu || seen->switches != sighting->switches;
	if (!sighting->is_over)
		thread->until_ns = seen->before_ns;
}

static void unsettled_glance(struct held_thread *thread, struct sighting *sighting,
			     const struct bpf_glance *seen)
{
	if (seen->is_ending) {
		thread->state = HELD_GONE;
		thread->has_registers = false;
	} else if (seen->on_cpu || sighting->switches != seen->switches) {
		sighting->has_picture = false;
	} else if (sighting->has_picture && sighting->has_stack) {
		thread->state = HELD_UNTOUCHED;
		thread->until_ns = seen->before_ns;
	}
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

static void exec_look(struct sightings *sightings, const struct bpf_glance *seen)
{
	if (sightings->look == 1 && sightings->seen == 0)
		sightings->exec_id = seen->exec_id;
	sightings->exec_seen |= sightings->exec_id != seen->exec_id;
}

/* The row that was seen, or the table's count: none. */
static size_t seen_take(struct sightings *sightings, const struct bpf_glance *seen)
{
	struct thread_table *table = sightings->table;
	size_t row;

	if (!seen->tid) /* of a pid namespace that is not ours to see */
		return table->count;
	exec_look(sightings, seen);
	sightings->seen++;
	row = row_of(sightings, seen->tid);
	if (row == table->count)
		return row;
	sightings->at[row].look = sightings->look;
	if (table->threads[row].state == HELD_LISTED)
		unsettled_glance(&table->threads[row], &sightings->at[row], seen);
	else if (table->threads[row].state == HELD_UNTOUCHED)
		settled_glance(&table->threads[row], &sightings->at[row], seen);
	return row;
}

void sighting_glance(struct sightings *sightings, const struct bpf_glance *seen)
{
	seen_take(sightings, seen);
}

void sighting_take(struct sightings *sightings, const struct bpf_record *record)
{
	size_t row = seen_take(sightings, &record->seen);
	struct held_thread *thread = &sightings->table->threads[row];
	struct sighting *sighting = &sightings->at[row];

	if (row == sightings->table->count)
		return;
	sighting->cpu = record->cpu;
	sighting->is_realtime = record->priority < PRIORITY_NORMAL;
	memcpy(thread->name, record->name, sizeof thread->name - 1);
	thread->has_name = true;
	thread->seen_state = state_letter(record->state);
	if (thread->state == HELD_LISTED && !record->seen.on_cpu && !sighting->has_picture)
		picture_take(sightings->arch, thread, sighting, record);
}

static bool is_without_stack(const struct sightings *sightings, size_t row)
{
	return sightings->table->threads[row].state == HELD_LISTED &&
	       sightings->at[row].has_picture && !sightings->at[row].has_stack;
}

struct unsettled sightings_unsettled(const struct sightings *sightings)
{
	struct unsettled left = {0};

	for (size_t i = 0; i < sightings->table->count; i++) {
		if (is_without_stack(sightings, i))
			left.without_stack++;
		else if (sightings->table->threads[i].state == HELD_LISTED)
			left.others++;
	}
	return left;
}

bool sighting_wants_stack(struct sightings *sightings, size_t row)
{
	struct held_thread *thread = &sightings->table->threads[row];
	struct stack_owner *owner = &sightings->table->owners[row];
	bool wants = is_without_stack(sightings, row);

	*owner = (struct stack_owner){0};
	if (wants && thread->has_registers)
		*owner = (struct stack_owner){&thread->registers,
					      sightings->at[row].thread_pointer};
	return wants;
}

void sighting_has_stack(struct sightings *sightings, size_t row)
{
	sightings->at[row].has_stack |= is_without_stack(sightings, row);
}

void sightings_want_stacks(struct sightings *sightings)
{
	for (size_t i = 0; i < sightings->table->count; i++)
		sighting_wants_stack(sightings, i);
}

void sightings_have_stacks(struct sightings *sightings)
{
	for (size_t i = 0; i < sightings->table->count; i++)
		sighting_has_stack(sightings, i);
}

void sightings_forget(struct sightings *sightings)
{
	struct thread_table *table = sightings->table;

	for (size_t i = 0; i < table->count; i++) {
		table->owners[i] = (struct stack_owner){0};
		if (table->threads[i].state != HELD_LISTED)
			continue;
		table->owners[i].registers = &table->threads[i].registers;
		sightings->at[i].has_picture = false;
	}
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
