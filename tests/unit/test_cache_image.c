/*
 * symbol/cache_image: what is written is read again, and nothing else is: files cut short, changed, and
 * files that lie with the right checksum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/cache_image.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LIMIT ((size_t)1 << 20)
#define KEY_SIZE 3

static const struct bytes key = {(const uint8_t *)"key", KEY_SIZE};

static struct symbol_frame chain[] = {
	{.function = "inner", .file = "/src/a.c", .line = 7, .column = 3, .inlined = true},
	{"outer(int)", 0x1000, true, "/src/a.c", UINT32_MAX, UINT32_MAX, false},
};
static struct symbol_frame nothing[] = {{.line = 0}};
static struct symbol_frame empty[] = {
	{.function = "", .file = "", .function_ea = UINT64_MAX, .has_function_ea = true},
};
static const struct symbol_answer answers[] = {
	{0, nothing, COUNT(nothing)},
	{0x1000, chain, COUNT(chain)},
	{0x1004, NULL, 0},
	{0x1008, chain + 1, 1},
	{0x2000, empty, COUNT(empty)},
	{UINT64_MAX, chain, COUNT(chain)},
};

static struct bytes file_of(struct arena *arena)
{
	const struct cache_contents contents = {answers, COUNT(answers), true};

	return cache_image_make(arena, &contents, key, LIMIT);
}

static void same_string(const char *a, const char *b)
{
	if (a && b)
		assert_string_equal(a, b);
	else
		assert_ptr_equal(a, b);
}

static void same_answer(const struct symbol_answer *a, const struct symbol_answer *b)
{
	assert_int_equal(a->ea, b->ea);
	assert_int_equal(a->frame_count, b->frame_count);
	for (size_t i = 0; i < a->frame_count; i++) {
		same_string(a->frames[i].function, b->frames[i].function);
		same_string(a->frames[i].file, b->frames[i].file);
		assert_int_equal(a->frames[i].function_ea, b->frames[i].function_ea);
		assert_int_equal(a->frames[i].has_function_ea, b->frames[i].has_function_ea);
		assert_int_equal(a->frames[i].line, b->frames[i].line);
		assert_int_equal(a->frames[i].column, b->frames[i].column);
		assert_int_equal(a->frames[i].inlined, b->frames[i].inlined);
	}
}

static void test_round_trip(void **state)
{
	static const uint64_t absent[] = {1, 0xfff, 0x1001, 0x2001, UINT64_MAX - 1};
	struct arena arena = {0};
	struct cache_image image;

	(void)state;
	assert_true(cache_image_read(&image, file_of(&arena), key));
	assert_true(image.informed);
	assert_int_equal(image.count, COUNT(answers));
	for (size_t i = 0; i < COUNT(answers); i++) {
		struct symbol_answer found = {.ea = answers[i].ea}, at;

		assert_true(cache_image_find(&image, &arena, &found));
		same_answer(&found, &answers[i]);
		cache_image_at(&image, i, &arena, &at);
		same_answer(&at, &answers[i]);
	}
	for (size_t i = 0; i < COUNT(absent); i++) {
		struct symbol_answer found = {.ea = absent[i]};

		assert_false(cache_image_find(&image, &arena, &found));
	}
	arena_free(&arena);
}

static void test_no_answers(void **state)
{
	const struct cache_contents contents = {NULL, 0, false};
	struct arena arena = {0};
	struct symbol_answer found = {.ea = 0};
	struct cache_image image;

	(void)state;
	assert_true(
		cache_image_read(&image, cache_image_make(&arena, &contents, key, LIMIT), key));
	assert_false(image.informed);
	assert_false(cache_image_find(&image, &arena, &found));
	arena_free(&arena);
}

static void test_limit(void **state)
{
	const struct cache_contents contents = {answers, COUNT(answers), true};
	struct arena arena = {0};
	size_t size = file_of(&arena).len;

	(void)state;
	assert_int_equal(cache_image_make(&arena, &contents, key, size).len, size);
	for (size_t limit = 0; limit < size; limit++)
		assert_int_equal(cache_image_make(&arena, &contents, key, limit).len, 0);
	arena_free(&arena);
}

/* Every string is in the file once. */
static void test_strings_are_shared(void **state)
{
	struct arena arena = {0};
	struct bytes file = file_of(&arena);
	const uint8_t *first = memmem(file.at, file.len, "outer(int)", 10);

	(void)state;
	assert_non_null(first);
	assert_null(
		memmem(first + 1, file.len - (size_t)(first + 1 - file.at), "outer(int)", 10));
	arena_free(&arena);
}

static void test_other_key(void **state)
{
	static const char *const others[] = {"", "k", "kez", "keyy", "ke"};
	struct arena arena = {0};
	struct bytes file = file_of(&arena);
	struct cache_image image;

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(cache_image_read(&image, file,
					      (struct bytes){(const uint8_t *)others[i],
							     strlen(others[i])}));
	arena_free(&arena);
}

/* At its true length, so that the sanitizers see what is read behind it. */
static bool is_read(struct arena *arena, const uint8_t *at, size_t len, bool sealed)
{
	uint8_t *copy = (uint8_t *)arena_copy(arena, at, len);
	struct cache_image image;
	bool good;

	if (sealed && len >= CACHE_HEAD_SIZE)
		cache_image_seal(copy, len);
	good = cache_image_read(&image, (struct bytes){copy, len}, key);
	for (size_t i = 0; good && i < image.count; i++) {
		struct symbol_answer answer;

		cache_image_at(&image, i, arena, &answer);
		for (size_t f = 0; f < answer.frame_count; f++)
			if (answer.frames[f].function)
				assert_true(strlen(answer.frames[f].function) < len);
	}
	return good;
}

static void test_cut_short(void **state)
{
	struct arena arena = {0};
	struct bytes file = file_of(&arena);

	(void)state;
	for (size_t len = 0; len < file.len; len++) {
		assert_false(is_read(&arena, file.at, len, false));
		assert_false(is_read(&arena, file.at, len, true));
	}
	assert_true(is_read(&arena, file.at, file.len, false));
	arena_free(&arena);
}

static void test_flipped_bits(void **state)
{
	struct arena arena = {0};
	struct bytes file = file_of(&arena);
	uint8_t *copy = (uint8_t *)arena_copy(&arena, file.at, file.len);

	(void)state;
	for (size_t bit = 0; bit < file.len * 8; bit++) {
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(is_read(&arena, copy, file.len, false));
		is_read(&arena, copy, file.len, true); /* may be right, must be harmless */
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	arena_free(&arena);
}

#define ADDRESSES (CACHE_HEAD_SIZE + KEY_SIZE)
#define FRAMES (ADDRESSES + COUNT(answers) * CACHE_ADDRESS_SIZE)

static void test_lies(void **state)
{
	static const struct {
		const char *what;
		size_t off;
		uint32_t value;
	} lies[] = {
		{"magic", 0, 0},
		{"older version", 16, CACHE_VERSION - 1},
		{"newer version", 16, CACHE_VERSION + 1},
		{"no key", 24, 0},
		{"key longer than the file", 24, UINT32_MAX},
		{"no addresses", 28, 0},
		{"too many addresses", 28, UINT32_MAX},
		{"fewer frames", 32, 1},
		{"too many frames", 32, UINT32_MAX},
		{"no strings", 36, 0},
		{"too many strings", 36, UINT32_MAX},
		{"not ascending", ADDRESSES, 0x1001},
		{"twice the same", ADDRESSES + CACHE_ADDRESS_SIZE, 0},
		{"frames begin behind the last", ADDRESSES + 8, 1000},
		{"more frames than there are", ADDRESSES + 12, 1000},
		{"frames of another", ADDRESSES + CACHE_ADDRESS_SIZE + 8, 0},
		{"frames of nobody", ADDRESSES + (COUNT(answers) - 1) * CACHE_ADDRESS_SIZE + 12,
		 1},
		{"function behind the strings", FRAMES + 8, 1000},
		{"file far behind the strings", FRAMES + 12, UINT32_MAX},
	};
	struct arena arena = {0};
	struct bytes file = file_of(&arena);

	(void)state;
	for (size_t i = 0; i < COUNT(lies); i++) {
		uint8_t *copy = (uint8_t *)arena_copy(&arena, file.at, file.len);

		memcpy(copy + lies[i].off, &lies[i].value, sizeof lies[i].value);
		if (is_read(&arena, copy, file.len, true))
			fail_msg("%s: taken", lies[i].what);
	}
	arena_free(&arena);
}

static void test_last_string_without_end(void **state)
{
	struct arena arena = {0};
	struct bytes file = file_of(&arena);
	uint8_t *copy = (uint8_t *)arena_copy(&arena, file.at, file.len);

	(void)state;
	copy[file.len - 1] = 'x';
	assert_false(is_read(&arena, copy, file.len, true));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_no_answers),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_strings_are_shared),
		cmocka_unit_test(test_other_key),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_last_string_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
