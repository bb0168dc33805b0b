#include "cfi_maker.h"

void make_u8(struct maker *m, uint8_t value)
{
	*vec_push(m->arena, &m->out) = value;
}

void make_uint(struct maker *m, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		make_u8(m, (uint8_t)(value >> 8 * i));
}

void make_uleb(struct maker *m, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		make_u8(m, (uint8_t)(value | 0x80));
	make_u8(m, (uint8_t)value);
}

void make_sleb(struct maker *m, int64_t value)
{
	for (; value < -64 || value > 63; value = (value - (value & 0x7f)) / 128)
		make_u8(m, (uint8_t)(value | 0x80));
	make_u8(m, value & 0x7f);
}

void make_bytes(struct maker *m, struct bytes bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		make_u8(m, bytes.at[i]);
}

struct bytes made(const struct maker *m)
{
	return (struct bytes){m->out.at, m->out.count};
}

static size_t begin(struct maker *m)
{
	size_t off = m->out.count;

	if (m->is_64bit)
		make_uint(m, 0xffffffff, 4);
	make_uint(m, 0, m->is_64bit ? 8 : 4);
	m->started = m->out.count;
	return off;
}

static size_t mark_size(const struct maker *m)
{
	return m->is_64bit && !m->is_eh ? 8 : 4;
}

size_t make_cie_begin(struct maker *m)
{
	size_t off = begin(m);

	make_uint(m, m->is_eh ? 0 : UINT64_MAX, mark_size(m));
	return off;
}

size_t make_fde_begin(struct maker *m, size_t cie)
{
	size_t off = begin(m);

	make_uint(m, m->is_eh ? m->started - cie : cie, mark_size(m));
	return off;
}

void make_end(struct maker *m)
{
	size_t size = m->is_64bit ? 8 : 4;
	uint64_t length = m->out.count - m->started;

	for (size_t i = 0; i < size; i++)
		m->out.at[m->started - size + i] = (uint8_t)(length >> 8 * i);
}

static size_t make_cie(struct maker *m, const char *augmentation, uint64_t code_align,
		       uint8_t return_reg, struct bytes program)
{
	size_t off = make_cie_begin(m);

	make_u8(m, 1);
	make_bytes(m, (struct bytes){(const uint8_t *)augmentation, strlen(augmentation) + 1});
	make_uleb(m, code_align);
	make_sleb(m, -8);
	make_u8(m, return_reg);
	if (augmentation[0] == 'z') {
		make_uleb(m, strchr(augmentation, 'R') ? 1 : 0);
		if (strchr(augmentation, 'R'))
			make_u8(m, 0x1b);
	}
	make_bytes(m, program);
	make_end(m);
	return off;
}

/* def_cfa rsp+8; the return address at CFA-8 */
size_t make_cie_x86_64(struct maker *m, const char *augmentation)
{
	return make_cie(m, augmentation, 1, 16, BYTES("\x0c\x07\x08\x90\x01"));
}

/* def_cfa sp+0 */
size_t make_cie_aarch64(struct maker *m, const char *augmentation)
{
	return make_cie(m, augmentation, 4, 30, BYTES("\x0c\x1f\x00"));
}

size_t make_fde(struct maker *m, size_t cie, uint64_t ea, uint64_t size, struct bytes program)
{
	size_t off = make_fde_begin(m, cie);

	if (m->is_eh) {
		make_uint(m, ea - (m->ea + m->out.count), 4);
		make_uint(m, size, 4);
		make_uleb(m, 0);
	} else {
		make_uint(m, ea, 8);
		make_uint(m, size, 8);
	}
	make_bytes(m, program);
	make_end(m);
	return off;
}

struct bytes make_table(struct arena *arena, uint64_t ea, uint64_t eh_frame_ea,
			const struct table_entry *entries, size_t count)
{
	struct maker m = {.arena = arena};

	make_bytes(&m, BYTES("\x01\x1b\x03\x3b"));
	make_uint(&m, eh_frame_ea - (ea + 4), 4);
	make_uint(&m, count, 4);
	for (size_t i = 0; i < count; i++) {
		make_uint(&m, entries[i].function - ea, 4);
		make_uint(&m, entries[i].fde - ea, 4);
	}
	return made(&m);
}
