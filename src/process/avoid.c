/*
 * What is left out of the next attempt, for each step that can fail to answer.
 */
#include "process/avoid.h"

bool avoid_permits_file(const struct avoid *avoid, const struct map *map)
{
	uint64_t device = step_device(map->device_major, map->device_minor);

	if (avoid->files)
		return false;
	for (size_t i = 0; i < avoid->device_count; i++)
		if (avoid->devices[i] == device)
			return false;
	return true;
}

bool avoid_permits_memory(const struct avoid *avoid, const struct snapshot *snapshot,
			  uint64_t va)
{
	if (avoid->space)
		return false;
	for (size_t i = 0; i < avoid->stack_count; i++) {
		uint64_t bad = avoid->stacks[i];

		if (va == bad ||
		    (snapshot_map_at(snapshot, va) &&
		     snapshot_map_at(snapshot, va) == snapshot_map_at(snapshot, bad)))
			return false;
	}
	return true;
}

static void device_learn(struct avoid *avoid, uint64_t device)
{
	if (avoid->device_count == AVOID_DEVICES)
		avoid->files = true;
	else
		avoid->devices[avoid->device_count++] = device;
}

void avoid_file(struct avoid *avoid, const struct map *map)
{
	device_learn(avoid, step_device(map->device_major, map->device_minor));
}

/* First which stack it is; then that one is left out, and in the end all memory. */
static void stack_learn(struct avoid *avoid, uint64_t va)
{
	if (!avoid->one_by_one)
		avoid->one_by_one = true;
	else if (avoid->stack_count == AVOID_STACKS)
		avoid->space = true;
	else
		avoid->stacks[avoid->stack_count++] = va;
}

bool avoid_learn(struct avoid *avoid, const struct step_at *stuck, bool by_bpf)
{
	switch ((enum step)stuck->what) {
	case STEP_PROGRAM:
		avoid->program = true;
		return true;
	case STEP_MAPS:
		avoid->maps = avoid->space = true;
		return true;
	case STEP_SPACE:
		avoid->space = true;
		return true;
	case STEP_FILE:
		device_learn(avoid, stuck->number);
		return true;
	case STEP_STACKS:
		stack_learn(avoid, stuck->number);
		return true;
	case STEP_TEXTS:
		avoid->texts = true;
		return true;
	case STEP_ATTACH:
	case STEP_STOP:
		avoid->attach = true;
		return by_bpf;
	default:
		return false;
	}
}
