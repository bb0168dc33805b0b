/*
 * The step in hand, for the process that waits.
 */
#include "process/step.h"

#include "base/arena.h"

static struct step_at *shown;

void steps_show(struct step_at *where)
{
	shown = where;
}

/* The reader looks only when the count has stood still for long. */
void step_begin(enum step what, uint64_t number, const char *text)
{
	if (!shown)
		return;
	shown->what = what;
	shown->number = number;
	shown->text = text;
	__atomic_store_n(&shown->count, shown->count + 1, __ATOMIC_RELEASE);
}

void step_again(void)
{
	if (shown)
		__atomic_store_n(&shown->count, shown->count + 1, __ATOMIC_RELEASE);
}

const char *step_words(struct arena *arena, uint32_t pid, const struct step_at *step)
{
	unsigned major = (unsigned)(step->number >> 32), minor = (unsigned)step->number;

	switch ((enum step)step->what) {
	case STEP_PROGRAM:
		return step->text ? arena_printf(arena, "its program file %s", step->text)
				  : "its program file";
	case STEP_MAPS:
		return arena_printf(arena, "/proc/%u/maps", pid);
	case STEP_SPACE:
		return "its memory (its lock is held)";
	case STEP_FILE:
		return arena_printf(arena, "the file system %u:%u of %s", major, minor,
				    step->text);
	case STEP_ATTACH:
		return arena_printf(arena,
				    "thread %ju, to be attached to (stopped and frozen, or an "
				    "exec)",
				    (uintmax_t)step->number);
	case STEP_STOP:
		return "threads that were to stop";
	case STEP_STACKS:
		return arena_printf(arena, "the memory of its stacks at 0x%jx",
				    (uintmax_t)step->number);
	case STEP_TEXTS:
		return arena_printf(arena, "/proc/%u/task/%ju/stack", pid,
				    (uintmax_t)step->number);
	case STEP_ROOT:
		return "its root directory";
	case STEP_PERF_MAP:
		return "the perf map in its /tmp";
	case STEP_ARGUMENTS:
		return arena_printf(arena, "/proc/%u/cmdline", pid);
	default:
		return arena_printf(arena, "/proc/%u", pid);
	}
}
