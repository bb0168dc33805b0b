#include "symbol/cache_key.h"

#include <inttypes.h>
#include <string.h>

#include "base/mapping.h"
#include "symbol/cache.h"

/* Where the linker says that this program itself begins in memory. */
extern const uint8_t own_image[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

/* Two builds of one version may differ in what they answer. */
static const char *build_id_own(struct arena *arena)
{
	struct bytes id = {NULL, 0};
	Elf64_Ehdr header;

	memcpy(&header, own_image, sizeof header);
	for (size_t i = 0; header.e_type == ET_DYN && !id.len && i < header.e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, own_image + header.e_phoff + i * sizeof segment,
		       sizeof segment);
		if (segment.p_type == PT_NOTE)
			elf_note_find((struct bytes){own_image + segment.p_vaddr,
						     segment.p_memsz},
				      segment.p_align, "GNU", NT_GNU_BUILD_ID, &id);
	}
	return id.len ? build_id_text(arena, id) : "none";
}

static bool is_settled(const struct mapping_stamp *stamp, int64_t now_ns)
{
	uint64_t changed =
		stamp->mtime_ns > stamp->ctime_ns ? stamp->mtime_ns : stamp->ctime_ns;

	return (int64_t)((uint64_t)now_ns - changed) >= (int64_t)CACHE_SETTLED_NS;
}

const char *cache_key_own(struct arena *arena)
{
	return arena_printf(arena, "stacker " STACKER_VERSION " %s\n", build_id_own(arena));
}

const char *cache_key_stamp(struct arena *arena, const struct store *store,
			    const struct elf *elf)
{
	struct mapping_stamp stamp;

	if (!elf)
		return "none";
	if (!mapping_stamp(elf->data, &stamp) || !is_settled(&stamp, store_now_ns(store)))
		return NULL;
	return arena_printf(arena, "%" PRIx64 ":%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			    stamp.dev, stamp.ino, stamp.size, stamp.mtime_ns, stamp.ctime_ns);
}
