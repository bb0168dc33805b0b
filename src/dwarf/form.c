#include "dwarf/form.h"

/* A length of 0xffffffff says that a 64-bit length follows; 0xfffffff0 and up are reserved. */
#define LENGTH_64 UINT32_C(0xffffffff)
#define LENGTH_RESERVED UINT32_C(0xfffffff0)

struct form_layout form_layout(uint64_t form)
{
	switch (form) {
#define X(name, value, layout, size) \
	case value:                  \
		return (struct form_layout){LAYOUT_##layout, size};
		DW_FORMS(X)
#undef X
	default:
		return (struct form_layout){LAYOUT_UNKNOWN, 0};
	}
}

int form_fixed_size(struct form_layout layout, struct encoding encoding)
{
	switch (layout.layout) {
	case LAYOUT_FIXED:
		return layout.size;
	case LAYOUT_ADDRESS:
		return encoding.address_size;
	case LAYOUT_OFFSET:
		return encoding.offset_size;
	case LAYOUT_REFERENCE:
		return encoding.version == 2 ? encoding.address_size : encoding.offset_size;
	case LAYOUT_IMPLICIT:
		return 0;
	default:
		return -1;
	}
}

static inline __attribute__((always_inline)) void fixed_read(struct reader *r, unsigned size,
							     struct form_value *out)
{
	if (size == 0) /* DW_FORM_flag_present */
		out->u = 1;
	else if (size == 1)
		out->u = read_u8(r);
	else if (size == 2)
		out->u = read_u16(r);
	else if (size == 4)
		out->u = read_u32(r);
	else if (size == 8)
		out->u = read_u64(r);
	else if (size == 16)
		out->block = read_block(r, 16);
	else
		out->u = read_uint(r, size);
}

static struct bytes string_read(struct reader *r)
{
	const uint8_t *at = r->at;

	read_string(r);
	return reader_failed(r) ? (struct bytes){NULL, 0}
				: (struct bytes){at, (size_t)(r->at - at) - 1};
}

/* An indirect form may not name another one, nor one whose value is not here. */
static void indirect_read(struct reader *r, struct encoding encoding, struct form_value *out)
{
	uint64_t form = read_uleb(r);

	if (form == DW_FORM_indirect || form == DW_FORM_implicit_const)
		reader_fail(r);
	else
		form_read(r, encoding, form, 0, out);
}

/* Inlined with constant `layout` and `size`, so that but one case of each switch remains. */
static inline __attribute__((always_inline)) void layout_read(struct reader *r,
							      struct encoding encoding,
							      enum layout layout, unsigned size,
							      struct form_value *out)
{
	switch (layout) {
	case LAYOUT_FIXED:
		fixed_read(r, size, out);
		break;
	case LAYOUT_ADDRESS:
		out->u = read_address(r, encoding);
		break;
	case LAYOUT_OFFSET:
		out->u = read_offset(r, encoding);
		break;
	case LAYOUT_REFERENCE:
		out->u = encoding.version == 2 ? read_address(r, encoding)
					       : read_offset(r, encoding);
		break;
	case LAYOUT_ULEB:
		out->u = read_uleb(r);
		break;
	case LAYOUT_SLEB:
		out->u = (uint64_t)read_sleb(r);
		break;
	case LAYOUT_STRING:
		out->block = string_read(r);
		break;
	case LAYOUT_BLOCK1:
		out->block = read_block(r, read_u8(r));
		break;
	case LAYOUT_BLOCK2:
		out->block = read_block(r, read_u16(r));
		break;
	case LAYOUT_BLOCK4:
		out->block = read_block(r, read_u32(r));
		break;
	case LAYOUT_BLOCKU:
		out->block = read_block(r, read_uleb(r));
		break;
	case LAYOUT_INDIRECT:
		indirect_read(r, encoding, out);
		break;
	case LAYOUT_IMPLICIT:
	case LAYOUT_UNKNOWN:
		break;
	}
}

void form_read(struct reader *r, struct encoding encoding, uint64_t form, int64_t implicit,
	       struct form_value *out)
{
	*out = (struct form_value){.form = (uint32_t)form, .u = (uint64_t)implicit};
	switch (form) {
#define X(name, value, layout, size)                                  \
	case value:                                                   \
		layout_read(r, encoding, LAYOUT_##layout, size, out); \
		break;
		DW_FORMS(X)
#undef X
	default:
		reader_fail(r);
	}
}

bool unit_length_read(struct reader *r, uint8_t *offset_size)
{
	uint64_t length = read_u32(r);

	*offset_size = 4;
	if (length == LENGTH_64) {
		*offset_size = 8;
		length = read_u64(r);
	} else if (length >= LENGTH_RESERVED) {
		return false;
	}
	if (reader_failed(r))
		return false;
	if (length < reader_left(r))
		reader_limit(r, length);
	return true;
}
