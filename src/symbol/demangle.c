/*
 * Demangling with libiberty, bounded. The names come from files of other people, and a short
 * mangled name can describe a text of any length: a substitution may hold two references to the
 * substitution before it, and so on, doubling each time. So:
 *
 *   - names longer than NAME_MAX_LENGTH are left as they are. That also bounds libiberty's stack:
 *     it keeps 64 bytes on it for every byte of the name (512 KiB at most) and recurses at most
 *     once per byte;
 *   - C++ and Rust text is taken piece by piece, and a text that passes TEXT_MAX is abandoned by
 *     a jump out of the demangler (its callback interface holds no memory of its own);
 *   - D offers no pieces, so the length that back references can lead to is counted beforehand.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else
#include <demangle.h>
#endif

#include "symbol/symbol.h"

#define NAME_MAX_LENGTH 8192
#define TEXT_MAX 65536
/* libiberty's own limit refuses C++ names of more than 1024 bytes; its parser takes at least a byte
 * for every level, and its printer has another limit, so NAME_MAX_LENGTH does. Not so for Rust,
 * whose back references may point at what contains them: there libiberty's limit stays. */
#define CXX_OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT)
#define RUST_OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* A text that grows; `at` is malloc's. */
struct text {
	jmp_buf too_long;
	char *at;
	size_t len, capacity;
};

static void text_add(const char *piece, size_t len, void *opaque)
{
	struct text *text = opaque;

	if (len == 0)
		return;
	if (len > TEXT_MAX - text->len)
		longjmp(text->too_long, 1);
	if (text->len + len >= text->capacity) {
		text->capacity = 2 * (text->len + len) + 128;
		text->at = realloc(text->at, text->capacity);
		if (!text->at)
			out_of_memory();
	}
	memcpy(text->at + text->len, piece, len);
	text->len += len;
	text->at[text->len] = '\0';
}

typedef int demangler(const char *mangled, int options, demangle_callbackref callback,
		      void *opaque);

static bool run(demangler *demangle_as, int options, const char *name, struct text *text)
{
	text->len = 0;
	if (setjmp(text->too_long))
		return false;
	return demangle_as(name, options, text_add, text) && text->len;
}

/* A D back reference: 'Q', then the distance in base 26, its last digit in lower case. Returns
 * where it points (before `at`), or `at` when it is none. */
static size_t back_reference(const char *name, size_t at)
{
	size_t distance = 0;

	for (size_t i = at + 1; name[i] && distance < NAME_MAX_LENGTH; i++) {
		if (name[i] >= 'a' && name[i] <= 'z') {
			distance = distance * 26 + (size_t)(name[i] - 'a');
			return distance <= at ? at - distance : at;
		}
		if (name[i] < 'A' || name[i] > 'Z')
			break;
		distance = distance * 26 + (size_t)(name[i] - 'A');
	}
	return at;
}

/* A back reference stands at most for everything between the place it names and itself (the
 * demangler refuses those that contain themselves). expanded[i]: how long the first i bytes can
 * become, so counted. */
static bool d_name_is_short(const char *name, size_t len)
{
	uint32_t expanded[NAME_MAX_LENGTH + 1] = {0};

	for (size_t i = 0; i < len; i++) {
		uint32_t cost = 1;

		if (name[i] == 'Q')
			cost += expanded[i] - expanded[back_reference(name, i)];
		expanded[i + 1] = expanded[i] + cost;
		if (expanded[i + 1] > TEXT_MAX)
			return false;
	}
	return true;
}

static bool demangle_d(const char *name, size_t len, struct text *text)
{
	if (!d_name_is_short(name, len))
		return false;
	text->at = cplus_demangle(name, DMGL_PARAMS | DMGL_DLANG);
	return text->at != NULL;
}

static bool is_d_name(const char *name)
{
	return (name[0] == '_' && name[1] == 'D' && name[2] >= '1' && name[2] <= '9') ||
	       strcmp(name, "_Dmain") == 0;
}

/* How a name begins tells whether it is mangled: a C function never is one of these. Rust legacy
 * names look like C++ ones, so Rust is asked first. */
static bool demangle_any(const char *name, size_t len, struct text *text)
{
	bool itanium = name[1] == 'Z' || strncmp(name, "_GLOBAL_", 8) == 0;

	if (is_d_name(name))
		return demangle_d(name, len, text);
	return ((itanium || name[1] == 'R') &&
		run(rust_demangle_callback, RUST_OPTIONS, name, text)) ||
	       (itanium && run(cplus_demangle_v3_callback, CXX_OPTIONS, name, text));
}

const char *demangle(struct arena *arena, const char *name)
{
	size_t len = strnlen(name, NAME_MAX_LENGTH + 1);
	struct text text = {.at = NULL};
	const char *result = name;

	if (len > NAME_MAX_LENGTH || name[0] != '_')
		return name;
	if (demangle_any(name, len, &text))
		result = arena_string(arena, text.at);
	free(text.at);
	return result;
}
