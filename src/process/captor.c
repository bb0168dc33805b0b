/*
 * The capture by a process that can be left behind.
 *
 * Nearly everything that is asked of another process can block for as long as somebody pleases,
 * some of it where not even SIGKILL helps at once. So a child does it. What it finds it puts into
 * memory that both see, at the same addresses; open files come over a socket. It says what it
 * asks before it asks (process/step). We wait: for its word that it is done, for signals, and for
 * the time to be over. A child that is silent too long is killed, which lets go of every thread
 * that it traces, and another one does the same without what did not answer (process/avoid). One
 * that cannot even be killed is left behind: it has none of our files open.
 *
 * Silent means: for a share of --timeout the same step, and none of its threads runs or could run
 * (on a machine with more to do than processors that is no silence). Each silence takes half of
 * what is left, so that several still fit into the whole.
 */
#include "process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/signals.h"
#include "base/urgency.h"
#include "process/post.h"
#include "process/room.h"
#include "process/tracers.h"

/* The least share of the time that a step has to answer. */
#define SHARE_MIN_NS UINT64_C(20000000)
/* A child that was busy at the end of its share is looked at again after this. */
#define BUSY_NS UINT64_C(10000000)
/* A child that a signal was handed to: a hold ends within 2 ms. */
#define FAREWELL_NS UINT64_C(100000000)
#define NAP_NS 100000L
/* Beyond the hold's own limit. */
#define STOP_SPARE_NS UINT64_C(100000000)
#define SILENCES_MAX 12
#define MS UINT64_C(1000000)

struct captor {
	const struct capture_request *request;
	struct captured *out;
	struct arena *arena;
	struct avoid avoid;
	struct room *room;
	pid_t child;
	int socket;
	int signals;      /* a signalfd of those that end us */
	sigset_t before;  /* our signal mask */
	uint64_t left_ns; /* of the time for silences */
	const char *unanswered;
	size_t silences;
	bool usable; /* all but the extras is there */
	bool done;
	int ended_by;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- The child ---- */

static void files_close_others(int socket)
{
	int handle = open("/", O_PATH);

	for (int fd = 0; fd <= STDERR_FILENO && handle >= 0; fd++)
		if (fd != socket)
			dup2(handle, fd);
	if (syscall(SYS_close_range, 3, socket - 1, 0) != 0 ||
	    syscall(SYS_close_range, socket + 1, ~0U, 0) != 0)
		for (int fd = 3; fd < 1024; fd++)
			if (fd != socket)
				close(fd);
}

/* Nothing of ours may be kept from its end by one that is left behind: no pipe of a reader who
 * waits, no directory. */
static void child_begin(const struct captor *captor, pid_t parent, int socket)
{
	sigset_t ends = signals_that_end();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (int number = 1; number < _NSIG; number++)
		if (sigismember(&ends, number) == 1)
			signal(number, SIG_DFL);
	pthread_sigmask(SIG_SETMASK, &captor->before, NULL);
	files_close_others(socket);
	if (chdir("/") != 0)
		_exit(1);
}

static void child_main(const struct captor *captor, int socket)
{
	struct room *room = captor->room;
	struct capture_request request = *captor->request;
	struct captured *found = &room->captured;

	urgency_go_on();
	request.never_stop |= room->attempt.avoid.attach;
	room->attempt.request = &request;
	steps_show(&room->attempt.step);
	room->ok = attempt_threads(&room->attempt, &room->e);
	if (room->ok && post_files(socket, found->files, found->snapshot.module_count)) {
		captured_close(found);
		post_word(socket, POST_USABLE, -1);
		attempt_extras(&room->attempt);
	}
	post_word(socket, POST_DONE, found->root);
}

static bool not_made(const struct captor *captor, const char *what, struct err *e)
{
	if (errno == EMFILE || errno == ENFILE)
		return err_set(
			e, ERR_SYSTEM,
			"process %u: too many open files here: raise the limit (ulimit -n)",
			captor->request->pid);
	return err_set(e, ERR_SYSTEM, "making %s: %s", what, strerror(errno));
}

static bool child_start(struct captor *captor, struct err *e)
{
	int pair[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return not_made(captor, "a socket", e);
	captor->child = fork();
	if (captor->child == 0) {
		child_begin(captor, parent, pair[1]);
		child_main(captor, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	captor->socket = pair[0];
	if (captor->child > 0)
		return true;
	close(pair[0]);
	return err_set(e, ERR_SYSTEM, "starting the process that reads: %s", strerror(errno));
}

/* When it was done it traces nobody, and may take its time. Else what it traces is let go when it
 * ends: that is waited for, but not long. It may be where nothing can end it. */
static void child_end(struct captor *captor)
{
	uint64_t until = now_ns() + (captor->done ? 0 : FAREWELL_NS);

	kill(captor->child, SIGKILL);
	close(captor->socket);
	while (waitpid(captor->child, NULL, WNOHANG) == 0 && now_ns() < until)
		nanosleep(&(struct timespec){0, NAP_NS}, NULL);
}

/* Does one of its threads run, or wait for nothing but a processor, or for somebody who stopped
 * it (Ctrl-Z, a debugger)? */
static bool child_is_busy(pid_t child)
{
	struct process process;
	struct task_stat stat;
	uint32_t tids[8];
	size_t count;
	bool busy = false;

	if (!process_open(&process, (uint32_t)child, NULL))
		return false;
	count = task_list(&process, tids, sizeof tids / sizeof tids[0]);
	for (size_t i = 0; i < count && i < sizeof tids / sizeof tids[0]; i++)
		busy |= task_stat(&process, tids[i], &stat) && strchr("RTt", stat.state);
	process_close(&process);
	return busy;
}

/* ---- Waiting ---- */

static uint64_t share_of(const struct captor *captor, const struct step_at *step)
{
	uint64_t share = captor->left_ns / 2, whole = captor->request->timeout_ns;

	if (step->what == STEP_STOP)
		return whole + STOP_SPARE_NS;
	return share < SHARE_MIN_NS ? SHARE_MIN_NS : share;
}

/* A message, or the end of the child. */
static void post_take(struct captor *captor)
{
	struct captured *found = &captor->room->captured;
	struct post post;

	if (!post_receive(captor->socket, &post)) {
		captor->done = true;
		return;
	}
	switch (post.kind) {
	case POST_FILES:
		if (!captor->out->files)
			captor->out->files =
				post_files_room(captor->arena, found->snapshot.module_count);
		post_files_take(&post, captor->out->files, found->snapshot.module_count);
		break;
	case POST_USABLE:
		captor->usable = true;
		break;
	case POST_DONE:
		captor->out->root = post.count ? post.files[0] : -1;
		captor->done = true;
	}
}

static void signal_take(struct captor *captor)
{
	struct signalfd_siginfo info;

	if (read(captor->signals, &info, sizeof info) == (ssize_t)sizeof info)
		captor->ended_by = (int)info.ssi_signo;
}

/* Until something came, or the time is over. */
static void something_await(struct captor *captor, uint64_t until)
{
	struct pollfd fds[] = {{captor->socket, POLLIN, 0}, {captor->signals, POLLIN, 0}};
	uint64_t now = now_ns(), wait = until > now ? until - now : 0;

	if (poll(fds, 2, (int)((wait + MS - 1) / MS)) <= 0)
		return;
	if (fds[1].revents)
		signal_take(captor);
	else
		post_take(captor);
}

/* Waits for the child to be done, to be silent (true, `stuck` is what it asks), or to be ended. */
static bool child_await(struct captor *captor, struct step_at *stuck)
{
	const struct step_at *step = &captor->room->attempt.step;
	uint32_t count = __atomic_load_n(&step->count, __ATOMIC_ACQUIRE), seen;
	uint64_t since = now_ns(), more = 0;

	while (!captor->done && !captor->ended_by) {
		something_await(captor, since + share_of(captor, step) + more);
		seen = __atomic_load_n(&step->count, __ATOMIC_ACQUIRE);
		if (seen != count) {
			since = now_ns();
			more = 0;
			count = seen;
		} else if (now_ns() - since >= share_of(captor, step) + more) {
			*stuck = *step;
			if (!child_is_busy(captor->child))
				return true;
			more = now_ns() - since - share_of(captor, step) + BUSY_NS;
		}
	}
	return false;
}

/* It gets the signal, too: threads that it holds are let go with more care than by the kernel. */
static void farewell(struct captor *captor)
{
	uint64_t until = now_ns() + FAREWELL_NS;

	kill(captor->child, captor->ended_by);
	while (!captor->done && now_ns() < until)
		something_await(captor, until);
}

/* ---- What did not answer ---- */

/* The search for the one stack is a step between, not a result. */
static void silence_note(struct captor *captor, const struct step_at *stuck)
{
	const char *what;
	uint64_t share = share_of(captor, stuck);

	captor->silences++;
	captor->left_ns -= share < captor->left_ns ? share : captor->left_ns;
	if (stuck->what == STEP_STACKS && !captor->avoid.one_by_one)
		return;
	what = step_words(captor->arena, captor->request->pid, stuck);
	captor->unanswered = captor->unanswered ? arena_printf(captor->arena, "%s; %s",
							       captor->unanswered, what)
						: what;
}

static bool gave_up(const struct captor *captor, const struct step_at *stuck, struct err *e)
{
	const char *hint = stuck->what == STEP_ATTACH && !captor->room->attempt.by_bpf
				   ? ", and --method bpf needs no stop"
				   : "";

	return err_set(e, ERR_BUSY,
		       "process %u: no answer within %jums from %s: --timeout waits longer%s",
		       captor->request->pid, (uintmax_t)(captor->request->timeout_ns / MS),
		       captor->unanswered, hint);
}

/* ---- Attempts ---- */

static void room_adopt(struct captor *captor)
{
	struct captured *found = &captor->room->captured;

	found->files = captor->out->files;
	found->root = captor->out->root;
	if (!found->files)
		found->files = post_files_room(captor->arena, found->snapshot.module_count);
	*captor->out = *found;
	captor->out->snapshot.capture.unanswered = captor->unanswered;
	room_trim(captor->room);
}

static void files_forget(struct captor *captor)
{
	captor->out->snapshot.module_count =
		captor->out->files ? captor->room->captured.snapshot.module_count : 0;
	captured_close(captor->out);
	*captor->out = (struct captured){.root = -1};
	captor->usable = captor->done = false;
}

static bool child_failed(const struct captor *captor, struct err *e)
{
	const struct room *room = captor->room;

	if (room->e.kind != ERR_NONE) {
		*e = room->e;
		return false;
	}
	return err_set(e, ERR_SYSTEM,
		       "process %u: the process that reads it was ended (out of memory?)",
		       captor->request->pid);
}

enum outcome { OUTCOME_GOOD, OUTCOME_BAD, OUTCOME_AGAIN };

static enum outcome attempt_judge(struct captor *captor, const struct step_at *stuck,
				  bool silent, struct err *e)
{
	if (silent)
		silence_note(captor, stuck);
	if (captor->ended_by) {
		err_set(e, ERR_INTERRUPTED, "ended by signal %d", captor->ended_by);
		return OUTCOME_BAD;
	}
	if (captor->usable) {
		room_adopt(captor);
		return OUTCOME_GOOD;
	}
	if (!silent) {
		child_failed(captor, e);
		return OUTCOME_BAD;
	}
	if (captor->silences < SILENCES_MAX &&
	    avoid_learn(&captor->avoid, stuck, captor->room->attempt.by_bpf))
		return OUTCOME_AGAIN;
	gave_up(captor, stuck, e);
	return OUTCOME_BAD;
}

static enum outcome attempt_once(struct captor *captor, struct err *e)
{
	struct step_at stuck = {.what = STEP_WORK};
	enum outcome outcome;
	bool silent;

	captor->room = room_make(captor->request, &captor->avoid, e);
	if (!captor->room)
		return OUTCOME_BAD;
	if (!child_start(captor, e)) {
		room_free(captor->room);
		return OUTCOME_BAD;
	}
	silent = child_await(captor, &stuck);
	if (captor->ended_by)
		farewell(captor);
	child_end(captor);
	outcome = attempt_judge(captor, &stuck, silent, e);
	if (outcome != OUTCOME_GOOD) {
		files_forget(captor);
		room_free(captor->room);
	}
	return outcome;
}

static enum outcome attempts(struct captor *captor, struct err *e)
{
	enum outcome outcome = OUTCOME_AGAIN;

	if (captor->signals < 0) {
		not_made(captor, "a descriptor for signals", e);
		return OUTCOME_BAD;
	}
	while (outcome == OUTCOME_AGAIN)
		outcome = attempt_once(captor, e);
	close(captor->signals);
	return outcome;
}

bool process_capture(struct captured *out, struct arena *arena,
		     const struct capture_request *request, struct err *e)
{
	struct captor captor = {.request = request,
				.out = out,
				.arena = arena,
				.left_ns = request->timeout_ns};
	sigset_t ends = signals_that_end();
	struct err why = {0};
	bool good;

	*out = (struct captured){.root = -1};
	if (request->pid == (uint32_t)getpid())
		return err_set(e, ERR_UNSUPPORTED, "process %u is this stacker itself",
			       request->pid);
	if (!request->never_stop && !own_tracers_check(request->pid, e))
		return false;
	pthread_sigmask(SIG_BLOCK, &ends, &captor.before);
	captor.signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	good = attempts(&captor, &why) == OUTCOME_GOOD;
	pthread_sigmask(SIG_SETMASK, &captor.before, NULL);
	if (captor.ended_by)
		raise(captor.ended_by); /* everyone is let go: now it may end us */
	if (!good && e)
		*e = why;
	return good;
}
