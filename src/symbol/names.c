#include "symbol/names.h"

#include <string.h>

#include "symbol/symbol.h"

#define FIRST_SLOTS 512

/* Where a section is one long text, every byte of it begins a name: copies could take their
 * product. Names of programs have some ten thousand characters at the most, and all that are
 * asked for in one run some ten megabytes. */
#define TEXT_LONG ((size_t)64 << 10)
#define KEPT_MAX ((size_t)256 << 20)

/* As FNV-1a, but eight bytes at a time. */
static uint64_t hash_of(const char *text, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325), word;

	for (; len >= sizeof word; text += sizeof word, len -= sizeof word) {
		memcpy(&word, text, sizeof word);
		hash = (hash ^ word) * UINT64_C(0x100000001b3);
		hash ^= hash >> 32;
	}
	for (; len; text++, len--)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* The slot of this text, or the free one where it belongs. */
static uint32_t *slot_of(const struct names *names, const char *text, uint64_t hash)
{
	size_t i = hash & (names->slot_count - 1);

	for (;; i = (i + 1) & (names->slot_count - 1)) {
		uint32_t slot = names->slots[i];

		if (!slot || (names->all.at[slot - 1].hash == hash &&
			      strcmp(names->all.at[slot - 1].text, text) == 0))
			return &names->slots[i];
	}
}

static void grow(struct names *names)
{
	names->slot_count = names->slot_count ? names->slot_count * 2 : FIRST_SLOTS;
	names->slots = arena_array(names->arena, uint32_t, names->slot_count);
	for (size_t i = 0; i < names->all.count; i++) {
		const struct name *name = &names->all.at[i];

		*slot_of(names, name->text, name->hash) = (uint32_t)i + 1;
	}
}

/* Index + 1; 0: it is not kept. */
static uint32_t name_by_text(struct names *names, const char *text)
{
	size_t len = strnlen(text, TEXT_LONG);
	uint64_t hash;
	uint32_t *slot;

	if (len == TEXT_LONG)
		return 0;
	hash = hash_of(text, len);
	if (2 * (names->all.count + 1) > names->slot_count)
		grow(names);
	slot = slot_of(names, text, hash);
	if (*slot || names->kept + len > KEPT_MAX)
		return *slot;
	*vec_push(names->arena, &names->all) =
		(struct name){.text = arena_copy(names->arena, text, len), .hash = hash};
	names->kept += len;
	return *slot = (uint32_t)names->all.count;
}

/* NULL: it is not kept. */
static struct name *name_of(struct names *names, const char *text)
{
	size_t place =
		(size_t)(((uintptr_t)text * UINT64_C(0x9e3779b97f4a7c15)) >> 32) % NAMES_SEEN;
	struct name_seen *seen;

	if (!names->seen)
		names->seen = arena_array(names->arena, struct name_seen, NAMES_SEEN);
	seen = &names->seen[place];
	if (seen->at != text)
		*seen = (struct name_seen){text, name_by_text(names, text)};
	names->borrowed |= !seen->name;
	return seen->name ? &names->all.at[seen->name - 1] : NULL;
}

const char *names_kept(struct names *names, const char *text)
{
	const struct name *name = text ? name_of(names, text) : NULL;

	return name ? name->text : text;
}

const char *names_demangled(struct names *names, const char *text)
{
	struct name *name = text ? name_of(names, text) : NULL;

	if (!name)
		return text ? demangle(names->arena, text) : NULL;
	if (!name->plain)
		name->plain = demangle(names->arena, name->text);
	return name->plain;
}

void names_forget(struct names *names)
{
	if (names->seen)
		memset(names->seen, 0, NAMES_SEEN * sizeof *names->seen);
}
