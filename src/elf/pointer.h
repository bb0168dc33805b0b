/*
 * elf/pointer: pointers as call frame information encodes them (DW_EH_PE_*).
 *
 * Format: Linux Standard Base core specification, "DWARF Exception Header Encoding". The low four
 * bits say how the value is stored, the next three what it is relative to, the top bit that it is
 * the address of the pointer instead of the pointer.
 */
#ifndef STACKER_ELF_POINTER_H
#define STACKER_ELF_POINTER_H

#include "base/bytes.h"

/* clang-format off */
enum {
	EH_PE_ABSPTR = 0x00, EH_PE_ULEB128 = 0x01, EH_PE_UDATA2 = 0x02, EH_PE_UDATA4 = 0x03,
	EH_PE_UDATA8 = 0x04, EH_PE_SIGNED = 0x08, EH_PE_SLEB128 = 0x09, EH_PE_SDATA2 = 0x0a,
	EH_PE_SDATA4 = 0x0b, EH_PE_SDATA8 = 0x0c, EH_PE_FORMAT = 0x0f,

	EH_PE_PCREL = 0x10, EH_PE_TEXTREL = 0x20, EH_PE_DATAREL = 0x30, EH_PE_FUNCREL = 0x40,
	EH_PE_ALIGNED = 0x50, EH_PE_BASE = 0x70,

	EH_PE_INDIRECT = 0x80, EH_PE_OMIT = 0xff,
};
/* clang-format on */

/* What encoded pointers can be relative to, as ea. */
struct pointer_bases {
	uint64_t section;  /* of the first byte of the reader's bytes */
	uint64_t text;     /* of .text; valid when has_text */
	uint64_t data;     /* of the GOT, or of .eh_frame_hdr inside it; valid when has_data */
	uint64_t function; /* of the FDE's function; valid when has_function */
	bool has_text, has_data, has_function;
};

/* Reads one pointer. With EH_PE_OMIT nothing is read and 0 given. The indirection bit is not
 * followed: `*out` is then the address of the pointer. False for an encoding that is none, or one
 * relative to something unknown; running off the end fails the reader and gives true and 0. */
bool pointer_read(struct reader *r, uint8_t encoding, const struct pointer_bases *bases,
		  uint64_t *out, struct err *e);

/* Bytes that one pointer takes; 0 when that is not the same for all values (LEB128, aligned, omitted,
 * or no encoding at all). */
size_t pointer_size(uint8_t encoding);

#endif
