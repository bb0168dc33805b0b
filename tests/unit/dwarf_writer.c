#include "dwarf_writer.h"

#include <stdarg.h>
#include <string.h>

struct writer writer_begin(struct arena *arena, uint16_t version, uint8_t offset_size)
{
	return (struct writer){.arena = arena, .encoding = {version, 8, offset_size}};
}

struct bytes writer_bytes(const struct writer *w)
{
	return (struct bytes){w->out.at, w->out.count};
}

void put_bytes(struct writer *w, const void *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		*vec_push(w->arena, &w->out) = ((const uint8_t *)at)[i];
}

/* Both architectures are little-endian, as the files are. */
static void put_uint(struct writer *w, uint64_t value, size_t size)
{
	put_bytes(w, &value, size);
}

void put_u8(struct writer *w, uint64_t value)
{
	put_uint(w, value, 1);
}

void put_u16(struct writer *w, uint64_t value)
{
	put_uint(w, value, 2);
}

void put_u32(struct writer *w, uint64_t value)
{
	put_uint(w, value, 4);
}

void put_u64(struct writer *w, uint64_t value)
{
	put_uint(w, value, 8);
}

void put_uleb(struct writer *w, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(w, value | 0x80);
	put_u8(w, value);
}

void put_sleb(struct writer *w, int64_t value)
{
	for (; value < -64 || value > 63; value >>= 7)
		put_u8(w, ((uint64_t)value & 0x7f) | 0x80);
	put_u8(w, (uint64_t)value & 0x7f);
}

void put_string(struct writer *w, const char *text)
{
	put_bytes(w, text, strlen(text) + 1);
}

void put_offset(struct writer *w, uint64_t value)
{
	put_uint(w, value, w->encoding.offset_size);
}

void put_address(struct writer *w, uint64_t value)
{
	put_uint(w, value, w->encoding.address_size);
}

size_t plain_length_begin(struct writer *w)
{
	put_offset(w, 0);
	return w->out.count;
}

void plain_length_end(struct writer *w, size_t begin)
{
	uint64_t length = w->out.count - begin;

	memcpy(w->out.at + begin - w->encoding.offset_size, &length, w->encoding.offset_size);
}

size_t length_begin(struct writer *w)
{
	if (w->encoding.offset_size == 8)
		put_u32(w, 0xffffffff);
	return plain_length_begin(w);
}

void length_end(struct writer *w, size_t begin)
{
	plain_length_end(w, begin);
}

void put_abbrev(struct writer *w, unsigned code, unsigned tag, int children, ...)
{
	va_list list;
	unsigned name;

	put_uleb(w, code);
	put_uleb(w, tag);
	put_u8(w, (uint64_t)children);
	va_start(list, children);
	while ((name = va_arg(list, unsigned)) != 0) {
		unsigned form = va_arg(list, unsigned);

		put_uleb(w, name);
		put_uleb(w, form);
		if (form == DW_FORM_implicit_const)
			put_sleb(w, va_arg(list, int));
	}
	va_end(list);
	put_u16(w, 0);
}

size_t unit_begin(struct writer *w, uint64_t abbrev_off)
{
	size_t begin = length_begin(w);

	put_u16(w, w->encoding.version);
	if (w->encoding.version >= 5) {
		put_u8(w, DW_UT_compile);
		put_u8(w, w->encoding.address_size);
		put_offset(w, abbrev_off);
	} else {
		put_offset(w, abbrev_off);
		put_u8(w, w->encoding.address_size);
	}
	return begin;
}

void unit_end(struct writer *w, size_t begin)
{
	length_end(w, begin);
}
