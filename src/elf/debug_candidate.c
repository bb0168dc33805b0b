#include "elf/debug_candidate.h"

#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/file.h"
#include "elf/debug_path.h"

#define CRC_BLOCK ((size_t)64 << 10)

/* Read, not mapped: a debug file of some hundred megabytes must not count as memory used. */
static bool crc_of_file(int fd, uint64_t size, uint32_t *crc)
{
	static uint8_t block[CRC_BLOCK];
	off_t off = 0;
	ssize_t got;

	*crc = 0;
	if (!budget_work(size))
		return false;
	while ((got = pread(fd, block, sizeof block, off)) > 0) {
		*crc = lzma_crc32(block, (size_t)got, *crc);
		off += got;
	}
	return got == 0;
}

/* The dwo_id in the header of the first split unit; false before DWARF 5, where it is no header
 * field. Format: DWARF 5, 7.5.1.2. */
static bool dwo_id_read(struct elf *elf, uint64_t *id)
{
	enum { SPLIT_COMPILE = 5 /* DW_UT_split_compile */ };
	struct bytes info;
	struct reader r;
	bool is_64;
	uint8_t type;

	if (!elf_section_bytes(elf, ".debug_info.dwo", &info, NULL))
		return false;
	r = reader_over(info);
	is_64 = read_u32(&r) == UINT32_MAX;
	reader_skip(&r, is_64 ? 8 : 0);
	if (read_u16(&r) != 5)
		return false;
	type = read_u8(&r);
	read_u8(&r); /* address_size */
	reader_skip(&r, is_64 ? 8 : 4);
	*id = read_u64(&r);
	return type == SPLIT_COMPILE && !reader_failed(&r);
}

/* What .debug_sup of a supplementary file says it is (DWARF 5, 7.3.6); it needs no build-id. */
static struct bytes checksum_read(struct elf *elf)
{
	struct bytes contents = {NULL, 0}, checksum;
	struct reader r;
	bool is_supplementary;

	elf_section_bytes(elf, ".debug_sup", &contents, NULL);
	r = reader_over(contents);
	read_u16(&r); /* version */
	is_supplementary = read_u8(&r) != 0;
	read_string(&r); /* of the other file: none */
	checksum = read_block(&r, read_uleb(&r));
	return is_supplementary ? checksum : (struct bytes){NULL, 0};
}

static const char *why_refused(struct elf *elf, int fd, const struct debug_want *want)
{
	struct bytes build_id = elf->build_id.len ? elf->build_id : checksum_read(elf);
	uint32_t crc;
	uint64_t id;

	if (elf->machine != want->like->machine)
		return "other architecture";
	if (want->build_id.len && build_id.len == 0)
		return "it has no build-id";
	if (want->build_id.len && !bytes_equal(build_id, want->build_id))
		return "other build-id";
	if (want->has_crc && (!crc_of_file(fd, elf->data.len, &crc) || crc != want->crc))
		return "its CRC is not the one in .gnu_debuglink";
	if (want->has_dwo_id && dwo_id_read(elf, &id) && id != want->dwo_id)
		return "other dwo_id";
	return NULL;
}

struct elf *debug_candidate_refuse(struct debugfiles *files, const char *path, const char *why)
{
	if (!files->refused)
		files->refused =
			arena_printf(files->arena, "debug file %s refused: %s", path, why);
	return NULL;
}

static bool is_file(const struct debugfiles *files, int fd, const char *path)
{
	struct err e = {0};
	SCOPED_FD int other = debug_path_open(files, path, &e);
	struct stat sa, sb;

	return other >= 0 && fstat(fd, &sa) == 0 && fstat(other, &sb) == 0 &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

struct elf *debug_candidate(struct debugfiles *files, const char *path,
			    const struct debug_want *want)
{
	struct err e = {0};
	SCOPED_FD int fd = debug_path_open(files, path, &e);
	struct arena *arena = files->opened ? files->opened : files->arena;
	struct bytes data;
	struct elf *elf;
	const char *why;

	if (fd < 0)
		return e.kind == ERR_NOT_FOUND ? NULL
					       : debug_candidate_refuse(files, path, e.text);
	if (is_file(files, fd, want->like->name))
		return NULL;
	path = arena_string(files->arena, path); /* it may be the text of another file */
	if (!file_map_fd(fd, path, &data, &e))
		return debug_candidate_refuse(files, path, e.text);
	elf = arena_new(arena, struct elf);
	why = elf_open(elf, arena, data, path, &e) ? why_refused(elf, fd, want) : e.text;
	if (why) {
		file_unmap(data);
		return debug_candidate_refuse(files, path, why);
	}
	elf->mapped = true;
	return elf;
}
