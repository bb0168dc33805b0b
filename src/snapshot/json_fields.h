/*
 * snapshot/json_fields: the fields that captures and JSON reports have in common, written one way
 * (docs/capture-format.md). Each function writes members of the object that is open.
 */
#ifndef STACKER_SNAPSHOT_JSON_FIELDS_H
#define STACKER_SNAPSHOT_JSON_FIELDS_H

#include "snapshot/json_out.h"
#include "snapshot/snapshot.h"

/* `format`, `version`, then what says which process this is and how it was captured. */
void json_put_process(struct json_out *out, const char *format, unsigned version,
		      const struct snapshot *snapshot);
/* `memory_maps` and `file_base_addresses`. */
void json_put_maps(struct json_out *out, const struct snapshot *snapshot);
/* `modules`. */
void json_put_modules(struct json_out *out, const struct snapshot *snapshot);

/* `tid`, `thread_name`, `state` and all else of a thread but registers and stack. */
void json_put_thread(struct json_out *out, const struct arch *arch,
		     const struct thread *thread);
/* `registers`: an object by name, or null. */
void json_put_registers(struct json_out *out, const struct arch *arch,
			const struct thread *thread);
/* `end`, `end_detail`, `folded_frames`, `folded_before`: why the stack ends, what it leaves out. */
void json_put_stack_end(struct json_out *out, const struct stack *stack);

#endif
