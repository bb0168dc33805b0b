/*
 * arch/path: see the header. A path is copied as bytes, since only its architecture knows all of
 * it.
 */
#include "arch/path.h"

#include <string.h>

/* False when this jump was come by before: the path is the same from there. */
static bool jump_add(struct path_search *search, size_t at)
{
	for (size_t i = 0; i < search->jump_count; i++)
		if (search->jumps[i] == at)
			return false;
	if (search->jump_count == PATH_JUMPS_MAX)
		return false;
	search->jumps[search->jump_count++] = at;
	return true;
}

static struct path *open_slot(const struct path_search *search, size_t index)
{
	return (struct path *)(void *)(search->open + index * search->rules->size);
}

/* Of a conditional jump the path straight on is taken, and the other one stays open. */
static bool jump(struct path_search *search, struct path *path, bool conditional)
{
	if (!jump_add(search, path->at))
		return false;
	if (!conditional) {
		path->at = path->target;
	} else if (search->open_count < search->open_max) {
		struct path *other = open_slot(search, search->open_count++);

		memcpy(other, path, search->rules->size);
		other->at = path->target;
	}
	return true;
}

bool path_run(struct path_search *search, struct path *path)
{
	while (search->goal == PATH_TO_RETURN || path->at != search->goal) {
		enum path_step step;

		if (search->instructions_left == 0)
			return false;
		search->instructions_left--;
		step = search->rules->step(search->text, path);
		if (step == PATH_RETURN || step == PATH_ASTRAY)
			return step == PATH_RETURN && search->goal == PATH_TO_RETURN;
		if (step != PATH_ON && !jump(search, path, step == PATH_BRANCH))
			return false;
	}
	return true;
}

bool path_next(struct path_search *search, struct path *path)
{
	if (search->open_count == 0)
		return false;
	memcpy(path, open_slot(search, --search->open_count), search->rules->size);
	return true;
}
