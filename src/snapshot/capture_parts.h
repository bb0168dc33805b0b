/*
 * snapshot/capture_parts: the parts of a capture, read one by one by capture_read. Each function
 * takes the object that holds its members and leaves the first complaint in node->in.
 */
#ifndef STACKER_SNAPSHOT_CAPTURE_PARTS_H
#define STACKER_SNAPSHOT_CAPTURE_PARTS_H

#include "snapshot/json_in.h"
#include "snapshot/snapshot.h"

/* Linux numbers threads below 2^22; any positive pid_t is taken. */
#define TID_LIMIT INT32_MAX

/* `modules`, then `memory_maps`, which are checked against the number of modules. */
void read_modules(const struct node *document, struct snapshot *out);
void read_maps(const struct node *document, struct snapshot *out);
/* `vdso`, and any object of `address` and `bytes`. */
void read_vdso(const struct node *document, struct snapshot *out);
void read_piece(const struct node *node, struct memory_piece *piece);

/* `code_names`; those that are not in ascending order of address are refused. */
void read_code_names(const struct node *document, struct snapshot *out);

/* One item of `threads`. */
void read_thread(const struct node *node, const struct arch *arch, struct thread *thread);

#endif
