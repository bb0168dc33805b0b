#include "process/sleepers.h"

#include "process/priority.h"
#include "process/runners.h"
#include "process/tracee.h"

/* So many threads that ran between two looks are read one by one at once; more, all together once
 * more. */
#define FEW_RUNNERS 32

static void record_take(void *context, const struct bpf_record *record)
{
	sighting_take(context, record);
}

static void glance_take(void *context, const struct bpf_glance *seen)
{
	sighting_glance(context, seen);
}

static bool look(const struct sleepers *sleepers, struct sightings *sightings, struct err *e)
{
	sightings_begin(sightings);
	return iterator_read(sleepers->iterator, record_take, sightings, e);
}

static bool glance(const struct sleepers *sleepers, struct sightings *sightings, struct err *e)
{
	uint64_t begin = tracee_now_ns();
	bool ok;

	sightings_begin(sightings);
	ok = iterator_glance(sleepers->iterator, glance_take, sightings, e);
	sightings->look_ns = tracee_now_ns() - begin;
	return ok;
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

static bool is_done(const struct sightings *sightings)
{
	struct unsettled left = sightings_unsettled(sightings);

	return sightings->exec_seen || left.without_stack + left.others == 0;
}

/* They are held, or left out. */
static bool rest_take(const struct sleepers *sleepers, struct sightings *sightings,
		      struct err *e)
{
	sightings_give_up(sightings, sleepers->never_stop);
	stacks_forget(sleepers->hold->stacks, sightings->table->owners);
	if (!sleepers->never_stop)
		return hold_run(sleepers->hold, false, e);
	gone_find(sleepers, sightings->table);
	return true;
}

/* The last glance makes the pictures' time reach beyond those that were taken later: then all are of
 * one instant, if nobody ran in between. */
static bool runners_take(const struct sleepers *sleepers, struct sightings *sightings,
			 bool realtime, struct err *e)
{
	struct runners runners = {
		.iterator = sleepers->iterator,
		.sightings = sightings,
		.stacks = sleepers->hold->stacks,
		.realtime = realtime,
	};
	bool glanced;

	if (is_done(sightings))
		return true;
	glanced = runners_settle(&runners);
	if (!is_done(sightings)) {
		glanced = false;
		if (!rest_take(sleepers, sightings, e))
			return false;
	}
	return glanced || sightings->exec_seen || glance(sleepers, sightings, e);
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

static bool pictures_take(const struct sleepers *sleepers, struct sightings *sightings,
			  bool realtime, struct err *e)
{
	struct unsettled left;

	if (!first_look(sleepers, sightings, e) || !stacks_read(sleepers, sightings, e) ||
	    !glance(sleepers, sightings, e))
		return false;
	left = sightings_unsettled(sightings);
	if (left.without_stack + left.others > FEW_RUNNERS &&
	    (!look(sleepers, sightings, e) || !stacks_read(sleepers, sightings, e) ||
	     !glance(sleepers, sightings, e)))
		return false;
	return runners_take(sleepers, sightings, realtime, e);
}

bool sleepers_capture(const struct sleepers *sleepers, struct arena *arena, struct err *e)
{
	struct priority before = {0};
	struct sightings sightings;
	uint64_t begin_ns;
	bool ok;

	sightings_prepare(&sightings, arena, sleepers->hold->arch, sleepers->hold->table,
			  sleepers->follow_new);
	if (sleepers->hold->realtime)
		before = priority_raise();
	begin_ns = tracee_now_ns();
	ok = pictures_take(sleepers, &sightings, before.realtime, e);
	sleepers->hold->took_ns = tracee_now_ns() - begin_ns;
	priority_restore(&before);
	sleepers->hold->exec_seen |= sightings.exec_seen;
	return ok;
}
