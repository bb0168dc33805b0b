#include "elf/pointer.h"

size_t pointer_size(uint8_t encoding)
{
	static const uint8_t sizes[EH_PE_FORMAT + 1] = {
		[EH_PE_ABSPTR] = 8, [EH_PE_UDATA2] = 2, [EH_PE_UDATA4] = 4, [EH_PE_UDATA8] = 8,
		[EH_PE_SIGNED] = 8, [EH_PE_SDATA2] = 2, [EH_PE_SDATA4] = 4, [EH_PE_SDATA8] = 8,
	};

	if (encoding == EH_PE_OMIT || (encoding & EH_PE_BASE) == EH_PE_ALIGNED)
		return 0;
	return sizes[encoding & EH_PE_FORMAT];
}

/* The stored value, sign-extended where the format is a signed one. */
static bool read_stored(struct reader *r, uint8_t encoding, uint64_t *out, struct err *e)
{
	size_t size = pointer_size(encoding & EH_PE_FORMAT);

	*out = 0;
	if ((encoding & EH_PE_FORMAT) == EH_PE_ULEB128)
		*out = read_uleb(r);
	else if ((encoding & EH_PE_FORMAT) == EH_PE_SLEB128)
		*out = (uint64_t)read_sleb(r);
	else if (size == 0)
		return err_set(e, ERR_UNSUPPORTED, "pointer encoding 0x%02x", encoding);
	else if (encoding & EH_PE_SIGNED)
		*out = (uint64_t)read_sint(r, (unsigned)size);
	else
		*out = read_uint(r, (unsigned)size);
	return true;
}

/* What is added to the stored value; `at_ea` is where the value is stored. */
static bool base_of(uint8_t encoding, const struct pointer_bases *bases, uint64_t at_ea,
		    uint64_t *out)
{
	switch (encoding & EH_PE_BASE) {
	case EH_PE_ABSPTR:
		*out = 0;
		return true;
	case EH_PE_PCREL:
		*out = at_ea;
		return true;
	case EH_PE_TEXTREL:
		*out = bases->text;
		return bases->has_text;
	case EH_PE_DATAREL:
		*out = bases->data;
		return bases->has_data;
	case EH_PE_FUNCREL:
		*out = bases->function;
		return bases->has_function;
	default:
		return false;
	}
}

bool pointer_read(struct reader *r, uint8_t encoding, const struct pointer_bases *bases,
		  uint64_t *out, struct err *e)
{
	uint64_t at_ea = bases->section + reader_offset(r);
	uint64_t base, stored;

	*out = 0;
	if (encoding == EH_PE_OMIT)
		return true;
	/* An aligned pointer is an absolute one after padding, whatever its other bits say. */
	if ((encoding & EH_PE_BASE) == EH_PE_ALIGNED) {
		reader_skip(r, -at_ea & 7);
		*out = read_u64(r);
		return true;
	}
	if (!base_of(encoding, bases, at_ea, &base))
		return err_set(e, ERR_UNSUPPORTED, "pointer encoding 0x%02x: unknown base",
			       encoding);
	if (!read_stored(r, encoding, &stored, e))
		return false;
	if (!reader_failed(r))
		*out = base + stored;
	return true;
}
