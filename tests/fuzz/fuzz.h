/* What all fuzz entries are: one function of bytes (libFuzzer's), that a bounded runner calls too. */
#ifndef STACKER_FUZZ_H
#define STACKER_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

/* Always 0. Finds by what the sanitizers see, by abort() and by time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
