#include "process/sleepers.h"

#include "process/sightings.h"

/* Pictures of a thread that runs now and then. */
#define TRIES 2

static void record_take(void *context, const struct bpf_record *record)
{
	sighting_take(context, record);
}

static bool look(const struct sleepers *sleepers, struct sightings *sightings, struct err *e)
{
	sightings_begin(sightings);
	return iterator_read(sleepers->iterator, record_take, sightings, e);
}

static bool stacks_read(const struct sleepers *sleepers, struct sightings *sightings,
			struct err *e)
{
	struct stacks *stacks = sleepers->hold->stacks;

	sightings_want_stacks(sightings);
	stacks_forget(stacks, sightings->table->owners);
	stacks->tid = sleepers->hold->process->living;
	stacks_copy(stacks, sightings->table->owners, 0, sightings->table->count);
	sightings_have_stacks(sightings);
	return !stacks->refused || err_set(e, ERR_PERMISSION, "its memory may not be read");
}

/* The last look makes the pictures' time reach beyond the hold: then all are of one instant. */
static bool runners_hold(const struct sleepers *sleepers, struct sightings *sightings,
			 struct err *e)
{
	return hold_run(sleepers->hold, false, e) &&
	       (!sleepers->hold->end_ns || look(sleepers, sightings, e));
}

/* Not seen does not mean gone: before Linux 6.7 a look may end early, when the thread exits at
 * which the kernel's last portion ended. The hold finds out about each; here they are looked
 * up. */
static void gone_find(const struct sleepers *sleepers, struct thread_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		struct held_thread *thread = &table->threads[i];

		if (held_is_spared(thread->state) &&
		    task_has_ended(sleepers->hold->process, thread->tid))
			thread->state = HELD_GONE;
	}
}

static bool runners_take(const struct sleepers *sleepers, struct sightings *sightings,
			 struct err *e)
{
	struct unsettled left = sightings_unsettled(sightings);

	sightings_give_up(sightings, sleepers->never_stop);
	stacks_forget(sleepers->hold->stacks, sightings->table->owners);
	if (sleepers->never_stop)
		gone_find(sleepers, sightings->table);
	if (sleepers->never_stop || left.without_stack + left.others == 0)
		return true;
	return runners_hold(sleepers, sightings, e);
}

/* When it fails for whatever reason, nothing has been touched yet: all are listed, as before. */
static bool first_look(const struct sleepers *sleepers, struct sightings *sightings,
		       struct err *e)
{
	if (!look(sleepers, sightings, e)) {
		sightings_give_up(sightings, false);
		e->kind = ERR_UNSUPPORTED;
		return false;
	}
	return sightings->seen ||
	       err_set(e, ERR_UNSUPPORTED, "the BPF task iterator does not show it");
}

bool sleepers_capture(const struct sleepers *sleepers, struct arena *arena, struct err *e)
{
	struct sightings sightings;

	sightings_prepare(&sightings, arena, sleepers->hold->table, sleepers->follow_new);
	if (!first_look(sleepers, &sightings, e))
		return false;
	for (int i = 0; i < TRIES && sightings_unsettled(&sightings).without_stack; i++) {
		if (!stacks_read(sleepers, &sightings, e) || !look(sleepers, &sightings, e))
			return false;
	}
	if (!sightings.exec_seen && !runners_take(sleepers, &sightings, e))
		return false;
	sleepers->hold->exec_seen |= sightings.exec_seen;
	return true;
}
