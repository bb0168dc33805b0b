/*
 * arch/aarch64_code: the part of arch_aarch64 that reads instructions to find a caller.
 */
#ifndef STACKER_ARCH_AARCH64_CODE_H
#define STACKER_ARCH_AARCH64_CODE_H

#include "arch/arch.h"

/* See struct arch. */
bool aarch64_frame_by_code(struct bytes text, size_t at, bool called, struct arch_frame *out);
bool aarch64_frame_by_entry(struct bytes text, size_t at, bool called, size_t *entry,
			    struct arch_frame *out);
bool aarch64_is_after_call(struct bytes text, size_t at);

#endif
