#include "process/runners.h"

#include "base/file.h"
#include "process/occupier.h"
#include "process/tracee.h"

/* Pictures of a thread that waits in line, and of one that runs: it may have been moved to another
 * processor, or another thread may have taken its place. */
#define TRIES 3
/* All of them together. Those that are left are held, all at one time. */
#define ALL_MAX_NS UINT64_C(20000000)
/* A glance at all threads is had while a processor is taken, if it is as short as this. */
#define GLANCE_MAX_NS UINT64_C(60000)
/* Before Linux 6.12 (and 6.1.115, 6.6.59) an iterator of one thread shows main threads only. One of all
 * threads serves instead if they are few. */
#define FEW 256

struct round {
	const struct runners *runners;
	struct occupier occupier;
	uint64_t deadline;
	size_t left; /* unsettled ones */
	bool glanced;
};

static bool is_unsettled(const struct round *round, size_t row)
{
	return round->runners->sightings->table->threads[row].state == HELD_LISTED;
}

/* ---- A record of one thread ---- */

struct wanted {
	uint32_t tid;
	struct bpf_record *record;
	bool found;
};

static void wanted_take(void *context, const struct bpf_record *record)
{
	struct wanted *wanted = context;

	if (record->seen.tid != wanted->tid)
		return;
	*wanted->record = *record;
	wanted->found = true;
}

static bool thread_look(const struct runners *runners, int of_thread, uint32_t tid)
{
	struct bpf_record record;
	struct wanted wanted = {tid, &record,
				of_thread >= 0 && iterator_read_one(of_thread, &record)};

	if (!wanted.found && runners->sightings->table->count <= FEW)
		iterator_read(runners->iterator, wanted_take, &wanted, NULL);
	if (wanted.found)
		sighting_take(runners->sightings, &record);
	return wanted.found;
}

/* ---- A picture of one thread ---- */

/* Looks, copies, looks again. */
static bool picture_take(const struct round *round, int of_thread, size_t row)
{
	const struct runners *runners = round->runners;
	struct thread_table *table = runners->sightings->table;
	uint32_t tid = table->threads[row].tid;
	struct stacks_mark mark = stacks_mark(runners->stacks);

	if (!thread_look(runners, of_thread, tid))
		return false;
	if (sighting_wants_stack(runners->sightings, row)) {
		stacks_copy(runners->stacks, table->owners, row, row + 1);
		sighting_has_stack(runners->sightings, row);
		thread_look(runners, of_thread, tid);
	}
	if (is_unsettled(round, row))
		stacks_take_back(runners->stacks, mark, row);
	return !is_unsettled(round, row);
}

static void glance_take(void *context, const struct bpf_glance *seen)
{
	sighting_glance(context, seen);
}

/* While all that ran are at rest. */
static void others_glance(struct round *round)
{
	struct sightings *sightings = round->runners->sightings;

	if (sightings->look_ns > GLANCE_MAX_NS)
		return;
	sightings_begin(sightings);
	round->glanced =
		iterator_glance(round->runners->iterator, glance_take, sightings, NULL);
}

/* It is on a processor: there it is driven away. */
static bool runner_settle(struct round *round, int of_thread, size_t row)
{
	const struct sighting *sighting = &round->runners->sightings->at[row];
	bool settled = false;

	if (!round->occupier.started && !occupier_start(&round->occupier))
		return false;
	for (int i = 0; i < TRIES && !settled && !sighting->is_realtime; i++) {
		if (!occupier_take(&round->occupier, sighting->cpu))
			return false;
		settled = picture_take(round, of_thread, row);
		if (settled && round->left == 1)
			others_glance(round);
		occupier_leave(&round->occupier);
	}
	return settled;
}

static void thread_settle(struct round *round, size_t row, bool by_force)
{
	const struct runners *runners = round->runners;
	const struct sightings *sightings = runners->sightings;
	SCOPED_FD int of_thread =
		iterator_of_thread(runners->iterator, sightings->table->threads[row].tid);
	bool settled = false;

	for (int i = 0; i < TRIES && !settled && (i == 0 || sightings->at[row].has_picture);
	     i++)
		settled = picture_take(round, of_thread, row);
	if (!settled && by_force)
		settled = runner_settle(round, of_thread, row);
	round->left -= settled;
}

static void pass(struct round *round, bool by_force)
{
	const struct thread_table *table = round->runners->sightings->table;

	for (size_t i = 0; i < table->count && round->left; i++)
		if (is_unsettled(round, i) && tracee_now_ns() < round->deadline)
			thread_settle(round, i, by_force);
}

bool runners_settle(const struct runners *runners)
{
	struct unsettled unsettled = sightings_unsettled(runners->sightings);
	struct round round = {
		.runners = runners,
		.deadline = tracee_now_ns() + ALL_MAX_NS,
		.left = unsettled.without_stack + unsettled.others,
	};

	sightings_forget(runners->sightings);
	stacks_forget(runners->stacks, runners->sightings->table->owners);
	pass(&round, false);
	if (runners->realtime)
		pass(&round, true);
	occupier_end(&round.occupier);
	return round.glanced;
}
