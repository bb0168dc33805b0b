/* Call frame sections assembled for tests: as well-formed, or as little, as is asked for. */
#ifndef STACKER_TESTS_CFI_MAKER_H
#define STACKER_TESTS_CFI_MAKER_H

#include "base/arena.h"
#include "base/bytes.h"

/* A string literal with its size, as bytes. */
#define BYTES(s) ((struct bytes){(const uint8_t *)(s), sizeof(s) - 1})

struct maker {
	struct arena *arena;
	VEC(uint8_t) out;
	uint64_t ea;    /* of the section */
	bool is_eh;     /* .eh_frame, not .debug_frame */
	bool is_64bit;  /* 64-bit lengths */
	size_t started; /* offset of the entry begun, after its length */
};

void make_u8(struct maker *m, uint8_t value);
void make_uint(struct maker *m, uint64_t value, size_t size);
void make_uleb(struct maker *m, uint64_t value);
void make_sleb(struct maker *m, int64_t value);
void make_bytes(struct maker *m, struct bytes bytes);
struct bytes made(const struct maker *m);

/* An entry with its length and CIE mark (of an FDE: `cie`, the offset of its CIE); what comes between
 * begin and end is its body. Return its offset. */
size_t make_cie_begin(struct maker *m);
size_t make_fde_begin(struct maker *m, size_t cie);
void make_end(struct maker *m);

/* The CIEs that compilers make, with pcrel sdata4 in .eh_frame and addresses in .debug_frame. */
size_t make_cie_x86_64(struct maker *m, const char *augmentation);
size_t make_cie_aarch64(struct maker *m, const char *augmentation);
/* An FDE that belongs to one of them. */
size_t make_fde(struct maker *m, size_t cie, uint64_t ea, uint64_t size, struct bytes program);

/* .eh_frame_hdr at `ea` with a table of datarel sdata4 pairs. */
struct table_entry {
	uint64_t function, fde; /* ea */
};
struct bytes make_table(struct arena *arena, uint64_t ea, uint64_t eh_frame_ea,
			const struct table_entry *entries, size_t count);

#endif
