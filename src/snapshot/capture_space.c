/*
 * snapshot/capture_space: the address space in a capture: mappings, modules, pieces of memory.
 */
#include <string.h>

#include "base/sort.h"
#include "base/text.h"
#include "snapshot/capture_parts.h"

/* 20 bytes of SHA-1 are usual; 64 leave room for any other. */
#define BUILD_ID_DIGITS_LIMIT 128

/* Each letter of "rwxp" or its alternative. */
static bool permissions_are_sane(const char *text)
{
	static const char *const allowed[] = {"r-", "w-", "x-", "ps"};

	if (strlen(text) != sizeof allowed / sizeof allowed[0])
		return false;
	for (size_t i = 0; text[i]; i++)
		if (!strchr(allowed[i], text[i]))
			return false;
	return true;
}

static void read_permissions(const struct node *up, struct map *map)
{
	struct node node = node_member(up, "permissions");
	const char *word = node_word(&node);

	memcpy(map->permissions, "---p", sizeof map->permissions);
	if (!word)
		return;
	if (permissions_are_sane(word))
		memcpy(map->permissions, word, sizeof map->permissions);
	else
		node_fail(&node, ERR_FORMAT, "should be like \"r-xp\"");
}

/* Hex digits of a device's half, 32 bits at most. */
static bool parse_device_half(const char *digits, size_t count, uint32_t *out)
{
	uint64_t value = 0;
	char number[2 + 8 + 1] = "0x";

	if (!count || count > 8)
		return false;
	memcpy(number + 2, digits, count);
	*out = 0;
	if (!number_parse(number, count + 2, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static void read_device(const struct node *up, struct map *map)
{
	struct node node = node_member(up, "device");
	const char *word = node_word(&node);
	const char *colon;

	if (!word)
		return;
	colon = strchr(word, ':');
	if (!colon || !parse_device_half(word, (size_t)(colon - word), &map->device_major) ||
	    !parse_device_half(colon + 1, strlen(colon + 1), &map->device_minor))
		node_fail(&node, ERR_FORMAT, "should be like \"fd:01\"");
}

static void read_map(const struct node *node, const struct snapshot *snapshot, struct map *map)
{
	struct node module = node_member(node, "module");

	node_require(node);
	node_want_object(node);
	map->start = required_number(node, "start", UINT64_MAX);
	map->end = required_number(node, "end", UINT64_MAX);
	read_permissions(node, map);
	map->off = member_number(node, "offset", UINT64_MAX);
	read_device(node, map);
	map->inode = member_number(node, "inode", UINT64_MAX);
	map->path = member_text(node, "pathname");
	if (!map->path)
		map->path = "";
	map->deleted = member_flag(node, "deleted");
	map->module = module.json ? (int32_t)node_number(&module, INT32_MAX) : -1;
	if (map->module >= 0 && (size_t)map->module >= snapshot->module_count)
		node_fail(&module, ERR_FORMAT, "is %d, but there are %zu modules",
			  (int)map->module, snapshot->module_count);
	if (map->start >= map->end)
		node_fail(node, ERR_FORMAT, "ends before it begins");
}

void read_maps(const struct node *document, struct snapshot *out)
{
	struct node list = node_member(document, "memory_maps");
	size_t count = node_count(&list);

	out->maps = arena_array(document->in->arena, struct map, count);
	for (size_t i = 0; i < count && !document->in->failed; i++) {
		struct node node = node_item(&list, i);

		read_map(&node, out, &out->maps[i]);
		if (i && out->maps[i].start < out->maps[i - 1].end)
			node_fail(&node, ERR_FORMAT, "begins before the end of the one before");
	}
	out->map_count = count;
}

/* A build-id becomes part of file names: hex digits and nothing else. */
static const char *read_build_id(const struct node *up)
{
	struct node node = node_member(up, "build_id");
	const char *word = node_word(&node);
	size_t length = word ? strlen(word) : 0;

	if (!word)
		return NULL;
	if (!length || length % 2 || length > BUILD_ID_DIGITS_LIMIT ||
	    strspn(word, "0123456789abcdef") != length) {
		node_fail(&node, ERR_FORMAT,
			  "should be lower-case hex digits, two for each byte");
		return NULL;
	}
	return arena_copy(node.in->arena, word, length);
}

static void read_module(const struct node *node, struct snapshot_module *module)
{
	struct node path = node_member(node, "path");
	struct node bias = node_member(node, "load_bias");

	node_require(node);
	node_want_object(node);
	node_require(&path);
	module->path = node_text(&path);
	module->build_id = read_build_id(node);
	module->start = member_number(node, "start", UINT64_MAX);
	module->end = member_number(node, "end", UINT64_MAX);
	module->has_load_bias = bias.json != NULL;
	module->load_bias = node_number(&bias, UINT64_MAX);
	module->is_executable = member_flag(node, "executable");
	module->deleted = member_flag(node, "deleted");
	if (module->start > module->end)
		node_fail(node, ERR_FORMAT, "ends before it begins");
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

/* 0: the same module. Where it is known where they begin, no two begin at one place. */
static int compare_modules(const void *left, const void *right)
{
	const struct snapshot_module *a = *(struct snapshot_module *const *)left;
	const struct snapshot_module *b = *(struct snapshot_module *const *)right;
	int order = compare_numbers(a->start, b->start);

	if (order || a->start)
		return order;
	order = strcmp(a->path, b->path);
	if (!order)
		order = compare_texts(a->build_id, b->build_id);
	return order ? order : a->deleted - b->deleted;
}

/* Each costs an open file and a mapping, whatever it takes in the capture. */
static void check_modules(const struct node *list, const struct snapshot *snapshot)
{
	size_t count = snapshot->module_count;
	struct snapshot_module **sorted =
		arena_array(list->in->arena, struct snapshot_module *, count);
	size_t executables = 0;
	char shown[80];

	for (size_t i = 0; i < count; i++) {
		sorted[i] = &snapshot->modules[i];
		executables += sorted[i]->is_executable;
	}
	if (executables > 1)
		node_fail(list, ERR_FORMAT, "%zu of them are the executable", executables);
	sort(list->in->arena, sorted, count, sizeof *sorted, compare_modules);
	for (size_t i = 1; i < count; i++)
		if (compare_modules(&sorted[i - 1], &sorted[i]) == 0)
			node_fail(list, ERR_FORMAT,
				  "'%s' is there twice, or begins where another does",
				  text_for_message(shown, sizeof shown, sorted[i]->path));
}

void read_modules(const struct node *document, struct snapshot *out)
{
	struct node list = node_member(document, "modules");
	size_t count = node_count(&list);

	out->modules = arena_array(document->in->arena, struct snapshot_module, count);
	for (size_t i = 0; i < count && !document->in->failed; i++) {
		struct node node = node_item(&list, i);

		read_module(&node, &out->modules[i]);
	}
	out->module_count = count;
	if (!document->in->failed)
		check_modules(&list, out);
}

void read_piece(const struct node *node, struct memory_piece *piece)
{
	struct node bytes = node_member(node, "bytes");

	node_want_object(node);
	piece->va = required_number(node, "address", UINT64_MAX);
	node_require(&bytes);
	piece->bytes = node_bytes(&bytes);
	if (piece->bytes.len > UINT64_MAX - piece->va)
		node_fail(node, ERR_FORMAT, "reaches beyond the end of the address space");
}

void read_vdso(const struct node *document, struct snapshot *out)
{
	struct node node = node_member(document, "vdso");

	if (node.json)
		read_piece(&node, &out->vdso);
}

void read_code_names(const struct node *document, struct snapshot *out)
{
	struct node list = node_member(document, "code_names");
	size_t count = node_count(&list);

	out->code_names_left_out = member_text(document, "code_names_left_out");
	out->code_names = arena_array(document->in->arena, struct code_name, count);
	for (size_t i = 0; i < count && !document->in->failed; i++) {
		struct node item = node_item(&list, i);
		struct code_name *name = &out->code_names[i];

		node_require(&item);
		node_want_object(&item);
		name->va = required_number(&item, "address", UINT64_MAX);
		name->start = member_number(&item, "start", UINT64_MAX);
		name->function = member_text(&item, "function");
		if (i && name->va <= name[-1].va)
			node_fail(&item, ERR_FORMAT, "its address is not above the one before");
	}
	out->code_name_count = count;
}
