#include "unwind/entry.h"

/* The longest augmentation string in use is "zPLRSBG"; the limit keeps hostile ones from costing
 * more than their worth, as a CIE is read again for each run of FDEs that name it. */
#define AUGMENTATION_MAX 16

#define LENGTH_64BIT UINT32_C(0xffffffff)    /* a 64-bit length follows */
#define LENGTH_RESERVED UINT32_C(0xfffffff0) /* from here up: not lengths */

enum { ADDRESS_SIZE = 8 };

/* .debug_frame marks a CIE by all ones, .eh_frame by 0. The mark of .eh_frame is 4 bytes wide also
 * after a 64-bit length (LSB); that of .debug_frame is as wide as offsets are. */
static void read_mark(const struct cfi_section *section, struct entry *out)
{
	bool wide = out->is_64bit && !section->is_eh;
	uint64_t at = reader_offset(&out->body);
	uint64_t mark = wide ? read_u64(&out->body) : read_u32(&out->body);

	if (section->is_eh) {
		out->is_cie = mark == 0;
		out->cie_off =
			at - mark; /* wraps for a lying one; the section's size refuses it */
	} else {
		out->is_cie = mark == (wide ? UINT64_MAX : UINT32_MAX);
		out->cie_off = mark;
	}
}

bool entry_read(const struct cfi_section *section, uint64_t off, struct entry *out,
		struct err *e)
{
	struct reader r = reader_at(section->bytes, off);
	uint64_t length = read_u32(&r);

	*out = (struct entry){.off = off};
	if (length == LENGTH_64BIT) {
		out->is_64bit = true;
		length = read_u64(&r);
	} else if (length >= LENGTH_RESERVED) {
		return err_set(e, ERR_FORMAT, "reserved length 0x%lx", (unsigned long)length);
	}
	reader_limit(&r, length);
	if (!reader_ok(&r, "length", e))
		return false;
	out->next = (uint64_t)(r.end - r.begin);
	out->body = r;
	if (length == 0 && section->is_eh)
		out->is_terminator = true;
	else
		read_mark(section, out);
	return reader_ok(&out->body, "CIE mark", e);
}

/* One letter of an augmentation that starts with 'z', with its data. False for an unknown one: what
 * comes after it cannot be understood, but 'z' tells how long it all is. */
static bool read_letter(const struct cfi_section *section, struct cie *cie, char letter,
			struct reader *r)
{
	uint64_t personality;

	switch (letter) {
	case 'R':
		cie->pointer_encoding = read_u8(r);
		return true;
	case 'L':
		cie->lsda_encoding = read_u8(r);
		return true;
	case 'P':
		return pointer_read(r, read_u8(r), &section->bases, &personality, NULL);
	case 'S':
		cie->signal_frame = true;
		return true;
	case 'B': /* aarch64: return addresses are signed with the B key */
	case 'G': /* aarch64: memory tagging */
		return true;
	default:
		return false;
	}
}

/* A letter that is not known ends what can be understood of the data. That is no harm unless it
 * hides how addresses are encoded. */
static bool read_augmentation_data(const struct cfi_section *section, struct cie *cie,
				   const char *letters, struct reader *r, struct err *e)
{
	uint64_t size = read_uleb(r);
	struct reader data = *r;

	reader_skip(r, size);
	reader_limit(&data, size);
	while (*letters && read_letter(section, cie, *letters, &data))
		letters++;
	if (reader_failed(&data))
		reader_fail(r);
	if (strchr(letters, 'R'))
		return err_set(e, ERR_UNSUPPORTED, "CIE: augmentation letter '%c'", *letters);
	return true;
}

static bool read_augmentation(const struct cfi_section *section, struct cie *cie,
			      const char *letters, struct reader *r, struct err *e)
{
	if (letters[0] == '\0')
		return true;
	if (letters[0] != 'z')
		return err_set(e, ERR_UNSUPPORTED, "CIE: augmentation \"%s\"", letters);
	cie->has_augmentation_data = true;
	return read_augmentation_data(section, cie, letters + 1, r, e);
}

/* GCC 2's "eh": an address in front of everything else, and no 'z' data. */
static const char *skip_old_augmentation(const char *letters, struct reader *r)
{
	if (letters[0] != 'e' || letters[1] != 'h')
		return letters;
	reader_skip(r, ADDRESS_SIZE);
	return letters + 2;
}

static bool read_cie_body(const struct cfi_section *section, struct cie *cie, struct reader *r,
			  struct err *e)
{
	uint8_t version = read_u8(r);
	const char *letters = read_string(r);
	uint8_t address_size = ADDRESS_SIZE;

	if (version != 1 && version != 3 && version != 4)
		return err_set(e, ERR_UNSUPPORTED, "CIE version %u", version);
	if (strlen(letters) > AUGMENTATION_MAX)
		return err_set(e, ERR_FORMAT, "CIE: augmentation too long");
	letters = skip_old_augmentation(letters, r);
	if (version == 4) {
		address_size = read_u8(r);
		cie->segment_size = read_u8(r);
	}
	cie->code_align = read_uleb(r);
	cie->data_align = read_sleb(r);
	cie->return_reg = version == 1 ? read_u8(r) : read_uleb(r);
	if (reader_failed(r))
		return true;
	if (address_size != ADDRESS_SIZE)
		return err_set(e, ERR_UNSUPPORTED, "CIE: addresses of %u bytes", address_size);
	return read_augmentation(section, cie, letters, r, e);
}

bool cie_read(const struct cfi_section *section, uint64_t off, struct cie *out, struct err *e)
{
	struct entry entry;

	*out = (struct cie){
		.off = off,
		.pointer_encoding = EH_PE_ABSPTR,
		.lsda_encoding = EH_PE_OMIT,
	};
	if (off >= section->bytes.len)
		return err_set(e, ERR_FORMAT, "CIE at 0x%lx: outside of the section",
			       (unsigned long)off);
	if (!entry_read(section, off, &entry, e))
		return err_within(e, "CIE at 0x%lx", (unsigned long)off);
	if (!entry.is_cie)
		return err_set(e, ERR_FORMAT, "CIE at 0x%lx: is none", (unsigned long)off);
	if (!read_cie_body(section, out, &entry.body, e) || !reader_ok(&entry.body, "CIE", e))
		return err_within(e, "CIE at 0x%lx", (unsigned long)off);
	out->program = entry.body;
	return true;
}

/* The size of the code is stored in the same format, but is relative to nothing. */
static bool read_range(const struct cfi_section *section, const struct cie *cie,
		       struct fde *out, struct reader *r, struct err *e)
{
	uint8_t encoding = cie->pointer_encoding;

	if (encoding == EH_PE_OMIT || (encoding & EH_PE_INDIRECT))
		return err_set(e, ERR_UNSUPPORTED, "pointer encoding 0x%02x", encoding);
	if (!pointer_read(r, encoding, &section->bases, &out->ea, e))
		return false;
	if ((encoding & EH_PE_BASE) == EH_PE_ALIGNED)
		encoding = EH_PE_ABSPTR;
	/* Without its sign: a function is not of negative size, but may be larger than 2 GiB. */
	return pointer_read(r, encoding & EH_PE_FORMAT & (uint8_t)~EH_PE_SIGNED,
			    &section->bases, &out->size, e);
}

bool fde_read(const struct cfi_section *section, const struct entry *entry,
	      const struct cie *cie, struct fde *out, struct err *e)
{
	struct reader r = entry->body;

	*out = (struct fde){.cie = cie};
	reader_skip(&r, cie->segment_size);
	if (!read_range(section, cie, out, &r, e))
		return false;
	if (cie->has_augmentation_data)
		reader_skip(&r, read_uleb(&r));
	if (!reader_ok(&r, "FDE", e))
		return false;
	if (out->size > UINT64_MAX - out->ea)
		return err_set(e, ERR_FORMAT, "FDE: code range wraps around");
	out->program = r;
	return true;
}
