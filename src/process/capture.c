/*
 * The capture: prepare, take the pictures of the threads, then turn what was read into a
 * snapshot.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "process/attempt.h"
#include "process/files.h"
#include "process/maps.h"
#include "process/method.h"
#include "process/ready.h"
#include "process/trouble.h"

/* An exec in the window starts everything anew with the new program. */
#define TRIES_MAX 10

static bool refused(const struct job *job, struct err *e)
{
	return permission_explain(&job->process, &job->status, e);
}

/* Facts about the machine and the process. */

static const char *timestamp(struct arena *arena)
{
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	return arena_printf(arena, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", utc.tm_year + 1900,
			    utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
			    now.tv_nsec / 1000000);
}

static void arguments_read(struct arena *arena, const struct process *process,
			   struct snapshot *snapshot)
{
	VEC(const char *) arguments = {0};
	struct bytes text;

	if (!file_read_all(arena, process->dir, "cmdline", (size_t)4 << 20, &text, NULL))
		return;
	for (struct reader r = reader_over(text); reader_more(&r);) {
		const char *argument = (const char *)r.at;

		/* A program may have overwritten the last NUL; file_read_all put one behind. */
		reader_skip(&r, strnlen(argument, reader_left(&r)));
		reader_skip(&r, reader_more(&r));
		*vec_push(arena, &arguments) = argument;
	}
	snapshot->arguments = arguments.at;
	snapshot->argument_count = arguments.count;
}

static void facts_read(struct job *job)
{
	struct snapshot *snapshot = &job->out->snapshot;
	struct utsname uts = {0};

	uname(&uts);
	*snapshot = (struct snapshot){
		.arch = arch_host(),
		.stacker_version = STACKER_VERSION,
		.timestamp = timestamp(job->arena),
		.hostname = arena_string(job->arena, uts.nodename),
		.kernel = arena_string(job->arena, uts.release),
		.pid = job->process.pid,
		.executable_path = process_link(&job->process, job->arena, "exe"),
	};
}

static bool program_head(const struct job *job, uint8_t *head, size_t size)
{
	int fd;
	bool whole;

	if (job->avoid->program)
		return false;
	step_begin(STEP_PROGRAM, 0, job->out->snapshot.executable_path);
	fd = openat(job->process.dir, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	whole = fd >= 0 && read(fd, head, size) == (ssize_t)size;
	fd_close_scoped(&fd);
	step_begin(STEP_PROCESS, 0, NULL);
	return whole;
}

/* A 32-bit program has another register set, stack layout and ELF class. */
static bool program_check(const struct job *job, struct err *e)
{
	uint8_t head[EI_NIDENT + 4] = {0};
	uint16_t machine;

	if (!program_head(job, head, sizeof head))
		return true; /* not readable: the registers will tell */
	machine = (uint16_t)(head[EI_NIDENT + 2] | head[EI_NIDENT + 3] << 8);
	if (head[EI_CLASS] == ELFCLASS32)
		return err_set(
			e, ERR_UNSUPPORTED,
			"process %u (%s) is a 32-bit program: only 64-bit ones are supported",
			job->process.pid, job->status.name);
	if (machine != arch_host()->elf_machine)
		return err_set(
			e, ERR_UNSUPPORTED,
			"process %u (%s) is of another architecture than this stacker (%s)",
			job->process.pid, job->status.name, arch_host()->name);
	return true;
}

/* Of the memory that the image had; by name, as it is now, if `opened` is -1. */
static bool maps_text(struct job *job, int opened, struct bytes *text, struct err *e)
{
	bool ok;

	step_begin(STEP_MAPS, 0, NULL);
	ok = opened >= 0 ? file_read_fd(job->arena, opened, "maps", MAPS_TEXT_MAX, text, e)
			 : file_read_all(job->arena, job->process.dir, "maps", MAPS_TEXT_MAX,
					 text, e);
	step_begin(STEP_PROCESS, 0, NULL);
	return ok;
}

/* When the memory is gone already, that of the next program: then it will be seen that it changed. */
static bool first_maps_text(struct job *job, struct bytes *text, struct err *e)
{
	int opened = job->image.maps;

	return (opened >= 0 && maps_text(job, opened, text, NULL) && text->len) ||
	       maps_text(job, -1, text, e);
}

static bool maps_read(struct job *job, struct err *e)
{
	struct snapshot *snapshot = &job->out->snapshot;
	struct bytes text;
	struct err why = {0};

	if (job->avoid->maps)
		return true;
	if (!first_maps_text(job, &text, &why)) {
		if (why.kind == ERR_PERMISSION)
			return refused(job, e);
		if (why.kind == ERR_NOT_FOUND)
			return err_set(e, ERR_NOT_FOUND, "process %u is gone",
				       job->process.pid);
		*e = why;
		return err_within(e, "process %u", job->process.pid);
	}
	maps_parse(job->arena, text, &snapshot->maps, &snapshot->map_count);
	if (snapshot->map_count == 0)
		return err_set(e, ERR_NOT_FOUND, "process %u (%s) has no memory: it is ending",
			       job->process.pid, job->status.name);
	return true;
}

static bool threads_list(struct job *job, struct err *e)
{
	const struct capture_request *request = job->request;
	size_t room = job->status.threads + 64, found;
	struct task_stat stat;

	if (request->tids) {
		job->tid_count = request->tid_count;
		job->tids = arena_array(job->own, uint32_t, request->tid_count);
		memcpy(job->tids, request->tids, request->tid_count * sizeof job->tids[0]);
	} else {
		for (;; room = found + 64) {
			job->tids = arena_array(job->own, uint32_t, room);
			found = task_list(&job->process, job->tids, room);
			if (found <= room)
				break;
		}
		job->tid_count = found;
	}
	if (job->tid_count == 0)
		return err_set(e, ERR_NOT_FOUND, "process %u is gone", job->process.pid);
	for (size_t i = 0; request->tids && i < job->tid_count; i++) {
		step_begin(STEP_PROCESS, job->tids[i], NULL);
		if (!task_stat(&job->process, job->tids[i], &stat))
			return err_set(e, ERR_NOT_FOUND, "process %u has no thread %u",
				       job->process.pid, job->tids[i]);
	}
	return true;
}

static bool prepare(struct job *job, struct err *e)
{
	facts_read(job);
	if (!process_status(&job->process, &job->status, e) ||
	    !process_check(&job->process, &job->status, e) || !program_check(job, e) ||
	    !method_choose(job, e) || !maps_read(job, e))
		return false;
	files_open(job->out, job->arena, &job->process, job->avoid);
	step_begin(STEP_PROCESS, 0, NULL);
	if (!threads_list(job, e))
		return false;
	job->hold = (struct hold){
		.process = &job->process,
		.arch = job->out->snapshot.arch,
		.timeout_ns = job->request->timeout_ns,
		.realtime = job->request->realtime,
		.rolling = job->request->rolling,
		.table = &job->table,
		.stacks = &job->stacks,
	};
	thread_table_prepare(&job->table, job->own, job->tids, job->tid_count);
	job->hold.listing = arena_array(job->own, uint32_t, job->table.capacity);
	memory_ready(job->hold.listing, job->table.capacity * sizeof job->hold.listing[0]);
	if (!stacks_reserve(&job->stacks, job->own, &job->out->snapshot, job->request,
			    job->table.capacity, e))
		return false;
	job->stacks.avoid = job->avoid;
	stacks_ready(&job->stacks, job->table.count);
	return true;
}

/* The maps as they are now: they know code that was loaded between the first reading and the
 * hold (dlopen, or a program that is just starting). */
static struct map *maps_again(struct job *job, size_t *count)
{
	struct bytes text;
	struct map *maps;

	*count = 0;
	if (job->avoid->maps || !maps_text(job, -1, &text, NULL))
		return NULL;
	maps_parse(job->arena, text, &maps, count);
	return maps;
}

static void maps_refresh(struct job *job, struct map *maps, size_t count)
{
	struct snapshot *snapshot = &job->out->snapshot;

	if (count == 0 || maps_have_same_code(snapshot->maps, snapshot->map_count, maps, count))
		return;
	captured_close(job->out);
	snapshot->maps = maps;
	snapshot->map_count = count;
	files_open(job->out, job->arena, &job->process, job->avoid);
}

static size_t count_in_state(const struct thread_table *table, enum held_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		count += table->threads[i].state == state;
	return count;
}

/* Nothing at all could be held: say why. */
static bool outcome_check(struct job *job, struct err *e)
{
	const struct thread_table *table = &job->table;

	if (job->hold.ended_by)
		return err_set(e, ERR_INTERRUPTED, "ended by signal %d", job->hold.ended_by);
	if (count_in_state(table, HELD_STOPPED) || count_in_state(table, HELD_LATE) ||
	    count_in_state(table, HELD_UNTOUCHED) || count_in_state(table, HELD_RUNNING) ||
	    count_in_state(table, HELD_UNSETTLED) || count_in_state(table, HELD_UNSEEN))
		return true;
	if (count_in_state(table, HELD_REFUSED)) {
		if (job->patience.seen.pid)
			return tracer_explain(job->process.pid, &job->patience.seen, e);
		return refused(job, e);
	}
	return err_set(e, ERR_NOT_FOUND, "process %u ended while it was being traced",
		       job->process.pid);
}

enum again { AGAIN_NOT, AGAIN_EXEC, AGAIN_REFUSED };

/* The maps must not be of one program and the registers of the next. */
static bool try_once(struct job *job, enum again *again, struct err *e)
{
	struct map *maps;
	size_t map_count;
	bool ok;

	*again = AGAIN_NOT;
	image_open(&job->image, &job->process, !job->avoid->maps);
	if (!prepare(job, e))
		return false;
	job->attempt->by_bpf = iterator_is_open(&job->iterator);
	step_begin(STEP_WORK, 0, NULL);
	if (!method_run(job, e))
		return false;
	job->attempt->by_bpf = iterator_is_open(&job->iterator);
	step_begin(STEP_PROCESS, 0, NULL);
	maps = maps_again(job, &map_count);
	if (job->hold.exec_seen || image_changed(&job->image, job->request->pid, job->own) ||
	    (map_count == 0 && !job->avoid->maps && !process_is_gone(job->request->pid)))
		*again = AGAIN_EXEC;
	else if (method_is_refused_for_now(job))
		*again = AGAIN_REFUSED;
	if (*again)
		return true;
	ok = outcome_check(job, e);
	if (ok) {
		maps_refresh(job, maps, map_count);
		snapshot_fill(job);
		if (job->out->files_lacking)
			files_open_needed(job->out, job->arena, &job->process, job->avoid);
	}
	return ok;
}

const char *process_bpf_missing(void)
{
	return iterator_missing();
}

bool attempt_threads(struct attempt *attempt, struct err *e)
{
	struct arena own = {0};
	struct job job = {.attempt = attempt,
			  .avoid = &attempt->avoid,
			  .out = attempt->out,
			  .arena = attempt->arena,
			  .own = &own,
			  .request = attempt->request,
			  .process = PROCESS_CLOSED,
			  .image = IMAGE_NONE,
			  .iterator = ITERATOR_CLOSED};
	enum again again = AGAIN_EXEC;
	bool ok = false;

	*job.out = (struct captured){.root = -1};
	for (int tries = 0; again && tries < TRIES_MAX; tries += again == AGAIN_EXEC) {
		captured_close(job.out);
		step_begin(STEP_PROCESS, 0, NULL);
		process_close(&job.process);
		stacks_release(&job.stacks);
		ok = process_open(&job.process, job.request->pid, e);
		if (!ok)
			break;
		ok = try_once(&job, &again, e);
		image_close(&job.image);
	}
	if (ok && again)
		ok = err_set(e, ERR_BUSY,
			     "process %u kept starting other programs (exec): try again",
			     job.request->pid);
	iterator_close(&job.iterator); /* `own` and the stacks go with this process */
	attempt->process = job.process;
	attempt->status = job.status;
	if (!ok)
		process_close(&attempt->process);
	return ok;
}

void attempt_extras(struct attempt *attempt)
{
	struct captured *out = attempt->out;

	step_begin(STEP_ROOT, 0, NULL);
	out->root = process_foreign_root(&attempt->process);
	step_begin(STEP_PERF_MAP, 0, NULL);
	perf_map_read(out, attempt->arena, &attempt->process, &attempt->status);
	step_begin(STEP_ARGUMENTS, 0, NULL);
	if (!attempt->avoid.space)
		arguments_read(attempt->arena, &attempt->process, &out->snapshot);
	step_end();
	process_close(&attempt->process);
}
