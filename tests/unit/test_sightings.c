/*
 * What two looks at a thread mean: process/sightings with records made up here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "process/sightings.h"

#define TID 100

struct scene {
	struct arena arena;
	struct thread_table table;
	struct sightings sightings;
	uint64_t clock; /* records get ascending times */
	bool by_glance; /* looks are glances */
};

static void scene_open(struct scene *scene, size_t threads, bool follow_new)
{
	uint32_t tids[8];

	*scene = (struct scene){0};
	for (uint32_t i = 0; i < threads; i++)
		tids[i] = TID + i;
	thread_table_prepare(&scene->table, &scene->arena, tids, threads);
	sightings_prepare(&scene->sightings, &scene->arena, arch_host(), &scene->table,
			  follow_new);
}

static struct bpf_record record_of(struct scene *scene, uint32_t tid)
{
	struct bpf_record record = {.seen = {.tid = tid, .switches = 7, .exec_id = 3},
				    .state = 1,
				    .syscall = 35,
				    .priority = 120};

	record.seen.before_ns = ++scene->clock;
	record.seen.after_ns = ++scene->clock;
	record.registers[0] = record.seen.after_ns;
	return record;
}

/* What a look sees of the one thread there is. */
enum seen { ASLEEP, RAN_AND_ASLEEP, ON_CPU, ENDING, NOT_SEEN, IN_32BIT };

static void look(struct scene *scene, enum seen seen, uint64_t *switches)
{
	struct bpf_record record = record_of(scene, TID);

	sightings_begin(&scene->sightings);
	*switches += seen == RAN_AND_ASLEEP;
	record.seen.switches = *switches;
	record.seen.on_cpu = seen == ON_CPU;
	record.seen.is_ending = seen == ENDING;
	record.is_32bit = seen == IN_32BIT;
	if (seen == NOT_SEEN)
		return;
	if (scene->by_glance)
		sighting_glance(&scene->sightings, &record.seen);
	else
		sighting_take(&scene->sightings, &record);
}

static void copy_stacks(struct scene *scene)
{
	sightings_want_stacks(&scene->sightings);
	sightings_have_stacks(&scene->sightings);
}

/* Stacks are copied after each look. A look is at times {1, 2}, {3, 4}, ... */
static void looks_make_pictures(void **state)
{
	static const struct {
		const char *name;
		enum seen looks[4];
		size_t count;
		enum held_state outcome;
		uint64_t from, until; /* when it is untouched */
	} cases[] = {
		{"asleep", {ASLEEP, ASLEEP}, 2, HELD_UNTOUCHED, 2, 3},
		{"one look is none", {ASLEEP}, 1, HELD_LISTED, 0, 0},
		{"stays asleep", {ASLEEP, ASLEEP, ASLEEP}, 3, HELD_UNTOUCHED, 2, 5},
		{"ran once", {ASLEEP, RAN_AND_ASLEEP, ASLEEP}, 3, HELD_UNTOUCHED, 4, 5},
		{"ran twice", {ASLEEP, RAN_AND_ASLEEP, RAN_AND_ASLEEP}, 3, HELD_LISTED, 0, 0},
		{"on a CPU, then asleep", {ON_CPU, ASLEEP, ASLEEP}, 3, HELD_UNTOUCHED, 4, 5},
		{"on a CPU at last", {ASLEEP, ON_CPU}, 2, HELD_LISTED, 0, 0},
		/* The count is the same until it leaves the CPU again. */
		{"on a CPU in between", {ASLEEP, ON_CPU, ASLEEP}, 3, HELD_LISTED, 0, 0},
		{"always on a CPU", {ON_CPU, ON_CPU, ON_CPU}, 3, HELD_LISTED, 0, 0},
		{"ran after it was settled",
		 {ASLEEP, ASLEEP, RAN_AND_ASLEEP},
		 3,
		 HELD_UNTOUCHED,
		 2,
		 3},
		{"on a CPU after it was settled",
		 {ASLEEP, ASLEEP, ON_CPU},
		 3,
		 HELD_UNTOUCHED,
		 2,
		 3},
		{"its time does not begin again",
		 {ASLEEP, ASLEEP, ON_CPU, ASLEEP},
		 4,
		 HELD_UNTOUCHED,
		 2,
		 3},
		{"ends after it was settled",
		 {ASLEEP, ASLEEP, NOT_SEEN},
		 3,
		 HELD_UNTOUCHED,
		 2,
		 3},
		{"ended before", {ENDING}, 1, HELD_GONE, 0, 0},
		{"ended meanwhile", {ASLEEP, ENDING}, 2, HELD_GONE, 0, 0},
		{"not seen again", {ASLEEP, NOT_SEEN}, 2, HELD_LISTED, 0, 0},
		{"never seen", {NOT_SEEN, NOT_SEEN}, 2, HELD_LISTED, 0, 0},
		{"missed once", {ASLEEP, NOT_SEEN, ASLEEP}, 3, HELD_UNTOUCHED, 2, 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene scene;
		uint64_t switches = 7;
		const struct held_thread *thread;

		scene_open(&scene, 1, true);
		for (size_t n = 0; n < cases[i].count; n++) {
			look(&scene, cases[i].looks[n], &switches);
			copy_stacks(&scene);
		}
		sightings_give_up(&scene.sightings, false);
		thread = &scene.table.threads[0];
		if (thread->state != cases[i].outcome)
			fail_msg("%s: state %d", cases[i].name, thread->state);
		assert_int_equal(thread->has_registers, thread->state == HELD_UNTOUCHED);
		if (thread->state == HELD_UNTOUCHED) {
			if (thread->from_ns != cases[i].from ||
			    thread->until_ns != cases[i].until)
				fail_msg("%s: from %ju until %ju", cases[i].name,
					 (uintmax_t)thread->from_ns,
					 (uintmax_t)thread->until_ns);
			/* The registers are those of the beginning. */
			assert_int_equal(thread->registers.at[0], thread->from_ns);
			assert_int_equal(thread->call.number, 35);
			assert_int_equal(thread->call.sp,
					 thread->registers.at[arch_host()->sp_slot]);
		}
		arena_free(&scene.arena);
	}
}

/* The first look makes a picture, the glances after it say whether that holds. A glance makes none. */
static void glances_settle_pictures(void **state)
{
	static const struct {
		const char *name;
		enum seen looks[4];
		size_t count;
		enum held_state outcome;
		uint64_t from, until;
	} cases[] = {
		{"asleep", {ASLEEP, ASLEEP}, 2, HELD_UNTOUCHED, 2, 3},
		{"stays asleep", {ASLEEP, ASLEEP, ASLEEP}, 3, HELD_UNTOUCHED, 2, 5},
		{"ran", {ASLEEP, RAN_AND_ASLEEP}, 2, HELD_LISTED, 0, 0},
		{"ran, and sleeps since",
		 {ASLEEP, RAN_AND_ASLEEP, ASLEEP, ASLEEP},
		 4,
		 HELD_LISTED,
		 0,
		 0},
		{"on a CPU", {ON_CPU, ASLEEP, ASLEEP}, 3, HELD_LISTED, 0, 0},
		{"on a CPU at last", {ASLEEP, ON_CPU}, 2, HELD_LISTED, 0, 0},
		{"on a CPU after it was settled",
		 {ASLEEP, ASLEEP, ON_CPU, ASLEEP},
		 4,
		 HELD_UNTOUCHED,
		 2,
		 3},
		{"ended meanwhile", {ASLEEP, ENDING}, 2, HELD_GONE, 0, 0},
		{"not seen", {ASLEEP, NOT_SEEN}, 2, HELD_LISTED, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene scene;
		uint64_t switches = 7;
		const struct held_thread *thread;

		scene_open(&scene, 1, true);
		for (size_t n = 0; n < cases[i].count; n++) {
			scene.by_glance = n > 0;
			look(&scene, cases[i].looks[n], &switches);
			copy_stacks(&scene);
		}
		thread = &scene.table.threads[0];
		if (thread->state != cases[i].outcome)
			fail_msg("%s: state %d", cases[i].name, thread->state);
		if (thread->state == HELD_UNTOUCHED &&
		    (thread->from_ns != cases[i].from || thread->until_ns != cases[i].until))
			fail_msg("%s: from %ju until %ju", cases[i].name,
				 (uintmax_t)thread->from_ns, (uintmax_t)thread->until_ns);
		arena_free(&scene.arena);
	}
}

/* Forgotten pictures are taken anew, even when the thread did not run. */
static void a_forgotten_picture_is_taken_again(void **state)
{
	struct scene scene;
	uint64_t switches = 7;

	(void)state;
	scene_open(&scene, 1, true);
	look(&scene, ASLEEP, &switches);
	copy_stacks(&scene);
	sightings_forget(&scene.sightings);
	assert_non_null(scene.table.owners[0].registers);
	assert_false(sighting_wants_stack(&scene.sightings, 0));
	look(&scene, ASLEEP, &switches);
	assert_true(sighting_wants_stack(&scene.sightings, 0));
	assert_non_null(scene.table.owners[0].registers);
	sighting_has_stack(&scene.sightings, 0);
	look(&scene, ASLEEP, &switches);
	assert_int_equal(scene.table.threads[0].state, HELD_UNTOUCHED);
	assert_int_equal(scene.table.threads[0].from_ns, 4);
	sightings_forget(&scene.sightings);
	assert_null(scene.table.owners[0].registers);
	arena_free(&scene.arena);
}

/* Of a thread that runs: where, and whether it can be driven from there. Its name comes along. */
static void records_tell_where_it_runs(void **state)
{
	static const struct {
		int32_t priority;
		bool is_realtime;
	} cases[] = {{-1, true},   {0, true},    {98, true},  {99, true},
		     {100, false}, {120, false}, {139, false}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene scene;
		struct bpf_record record;

		scene_open(&scene, 1, true);
		record = record_of(&scene, TID);
		record.seen.on_cpu = true;
		record.state = 0;
		record.cpu = 5;
		record.priority = cases[i].priority;
		memcpy(record.name, "fifteen letters", sizeof record.name);
		sightings_begin(&scene.sightings);
		sighting_take(&scene.sightings, &record);
		assert_int_equal(scene.sightings.at[0].cpu, 5);
		assert_int_equal(scene.sightings.at[0].is_realtime, cases[i].is_realtime);
		assert_true(scene.table.threads[0].has_name);
		assert_string_equal(scene.table.threads[0].name, "fifteen letters");
		assert_int_equal(scene.table.threads[0].seen_state, 'R');
		assert_int_equal(scene.table.threads[0].kernel_state, 0);
		arena_free(&scene.arena);
	}
}

/* Why a thread that is not to be stopped has no picture: as the last look saw it. */
static void spared_threads_have_a_reason(void **state)
{
	static const struct {
		const char *name;
		enum seen looks[3];
		enum held_state outcome;
	} cases[] = {
		{"always on a CPU", {ON_CPU, ON_CPU, ON_CPU}, HELD_RUNNING},
		{"on a CPU at last", {ASLEEP, RAN_AND_ASLEEP, ON_CPU}, HELD_RUNNING},
		{"on a CPU, then asleep", {ON_CPU, ON_CPU, ASLEEP}, HELD_UNSETTLED},
		{"always asleep, but ran",
		 {ASLEEP, RAN_AND_ASLEEP, RAN_AND_ASLEEP},
		 HELD_UNSETTLED},
		{"never seen", {NOT_SEEN, NOT_SEEN, NOT_SEEN}, HELD_UNSEEN},
		{"not seen at last", {ASLEEP, RAN_AND_ASLEEP, NOT_SEEN}, HELD_UNSEEN},
		{"on a CPU, not seen at last", {ON_CPU, ON_CPU, NOT_SEEN}, HELD_UNSEEN},
		{"ended", {ASLEEP, ENDING, NOT_SEEN}, HELD_GONE},
		{"asleep", {ASLEEP, ASLEEP, ASLEEP}, HELD_UNTOUCHED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene scene;
		uint64_t switches = 7;

		scene_open(&scene, 1, true);
		for (size_t n = 0; n < 3; n++) {
			look(&scene, cases[i].looks[n], &switches);
			copy_stacks(&scene);
		}
		sightings_give_up(&scene.sightings, true);
		if (scene.table.threads[0].state != cases[i].outcome)
			fail_msg("%s: state %d", cases[i].name, scene.table.threads[0].state);
		arena_free(&scene.arena);
	}
}

/* Without a copy of its stack in between two looks mean nothing. */
static void no_picture_without_a_stack(void **state)
{
	struct scene scene;
	uint64_t switches = 7;

	(void)state;
	scene_open(&scene, 1, true);
	look(&scene, ASLEEP, &switches);
	look(&scene, ASLEEP, &switches);
	assert_int_equal(scene.table.threads[0].state, HELD_LISTED);
	assert_int_equal(sightings_unsettled(&scene.sightings).without_stack, 1);
	copy_stacks(&scene);
	assert_int_equal(sightings_unsettled(&scene.sightings).without_stack, 0);
	assert_int_equal(sightings_unsettled(&scene.sightings).others, 1);
	look(&scene, ASLEEP, &switches);
	assert_int_equal(scene.table.threads[0].state, HELD_UNTOUCHED);
	assert_int_equal(sightings_unsettled(&scene.sightings).others, 0);
	arena_free(&scene.arena);
}

static void a_32bit_thread_has_no_registers(void **state)
{
	struct scene scene;
	uint64_t switches = 7;

	(void)state;
	scene_open(&scene, 1, true);
	look(&scene, IN_32BIT, &switches);
	sightings_want_stacks(&scene.sightings);
	assert_null(scene.table.owners[0].registers);
	sightings_have_stacks(&scene.sightings);
	look(&scene, IN_32BIT, &switches);
	assert_int_equal(scene.table.threads[0].state, HELD_UNTOUCHED);
	assert_false(scene.table.threads[0].has_registers);
	assert_true(scene.table.threads[0].foreign_registers);
	arena_free(&scene.arena);
}

/* Threads that the list did not have are taken in two looks; with --tid none is. */
static void new_threads(void **state)
{
	(void)state;
	for (int follow_new = 0; follow_new < 2; follow_new++) {
		struct scene scene;

		scene_open(&scene, 1, follow_new);
		for (uint32_t n = 0; n < 4; n++) {
			struct bpf_record record = record_of(&scene, TID + n);

			sightings_begin(&scene.sightings);
			sighting_take(&scene.sightings, &record);
		}
		assert_int_equal(scene.table.count, follow_new ? 2 : 1);
		arena_free(&scene.arena);
	}
}

/* More new threads than there is room for: said, and nothing is written behind the table. */
static void too_many_new_threads(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene, 1, true);
	sightings_begin(&scene.sightings);
	for (uint32_t n = 0; n < 200; n++) {
		struct bpf_record record = record_of(&scene, TID + n);

		sighting_take(&scene.sightings, &record);
	}
	assert_int_equal(scene.table.count, scene.table.capacity);
	assert_true(scene.table.overflow);
	assert_int_equal(scene.sightings.seen, 200);
	arena_free(&scene.arena);
}

/* A record without an id is of another pid namespace. */
static void threads_of_elsewhere(void **state)
{
	struct scene scene;
	struct bpf_record record;

	(void)state;
	scene_open(&scene, 1, true);
	record = record_of(&scene, 0);
	sightings_begin(&scene.sightings);
	sighting_take(&scene.sightings, &record);
	assert_int_equal(scene.sightings.seen, 0);
	assert_int_equal(scene.table.count, 1);
	arena_free(&scene.arena);
}

static void an_exec_is_noticed(void **state)
{
	struct scene scene;
	uint64_t switches = 7;
	struct bpf_record record;

	(void)state;
	scene_open(&scene, 1, true);
	look(&scene, ASLEEP, &switches);
	look(&scene, ASLEEP, &switches);
	assert_false(scene.sightings.exec_seen);
	record = record_of(&scene, TID);
	record.seen.exec_id++;
	sightings_begin(&scene.sightings);
	sighting_take(&scene.sightings, &record);
	assert_true(scene.sightings.exec_seen);
	arena_free(&scene.arena);
}

/* What was held is the hold's. */
static void held_threads_are_left_alone(void **state)
{
	struct scene scene;
	uint64_t switches = 7;

	(void)state;
	scene_open(&scene, 1, true);
	look(&scene, ON_CPU, &switches);
	scene.table.threads[0].state = HELD_STOPPED;
	look(&scene, ASLEEP, &switches);
	copy_stacks(&scene);
	look(&scene, ASLEEP, &switches);
	sightings_give_up(&scene.sightings, false);
	assert_int_equal(scene.table.threads[0].state, HELD_STOPPED);
	arena_free(&scene.arena);
}

static void states_have_their_letters(void **state)
{
	static const struct {
		uint32_t state;
		char letter;
	} cases[] = {
		{0, 'R'},      {1, 'S'},  {2, 'D'},     {0x102, 'D'},  {4, 'T'},   {0x108, 't'},
		{0x2001, 'S'}, {0x80, 0}, {0x402, 'I'}, {0x2402, 'I'}, {0x400, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene scene;
		struct bpf_record record;

		scene_open(&scene, 1, true);
		record = record_of(&scene, TID);
		record.state = cases[i].state;
		sightings_begin(&scene.sightings);
		sighting_take(&scene.sightings, &record);
		assert_int_equal(scene.table.threads[0].kernel_state, cases[i].letter);
		arena_free(&scene.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_make_pictures),
		cmocka_unit_test(glances_settle_pictures),
		cmocka_unit_test(a_forgotten_picture_is_taken_again),
		cmocka_unit_test(records_tell_where_it_runs),
		cmocka_unit_test(spared_threads_have_a_reason),
		cmocka_unit_test(no_picture_without_a_stack),
		cmocka_unit_test(a_32bit_thread_has_no_registers),
		cmocka_unit_test(new_threads),
		cmocka_unit_test(too_many_new_threads),
		cmocka_unit_test(threads_of_elsewhere),
		cmocka_unit_test(an_exec_is_noticed),
		cmocka_unit_test(held_threads_are_left_alone),
		cmocka_unit_test(states_have_their_letters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
