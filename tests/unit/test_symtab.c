/*
 * symbol/symtab: the ranking rule, case by case, and against a second implementation of it that
 * looks at every symbol for every address.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "elf_image.h"
#include "symbol/symtab.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* clang-format off */
/* Section 1: code 0x1000 to 0x2000; 2: code 0x2000 to 0x2800; 3: data; 4: code up to 2^64. */
static const struct image_section sections[] = {
	{.name = ".text", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .ea = 0x1000,
	 .size = 0x1000},
	{.name = ".fini", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .ea = 0x2000,
	 .size = 0x800},
	{.name = ".data", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_WRITE, .ea = 0x3000,
	 .size = 0x1000},
	{.name = ".high", .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR,
	 .ea = 0xffffffffffff0000, .size = 0xffff},
};
/* clang-format on */

static const struct symtab_asked anything = {NULL, 0};

static struct elf *open_image(struct arena *arena, struct image image)
{
	struct elf *elf = arena_new(arena, struct elf);
	struct err e = {0};

	image.sections = sections;
	image.section_count = COUNT(sections);
	if (!elf_open(elf, arena, image_make(arena, &image), "image", &e))
		fail_msg("%s", e.text);
	return elf;
}

static struct symtab *table_of(struct arena *arena, const struct image_symbol *symbols,
			       size_t count)
{
	struct elf *elf =
		open_image(arena, (struct image){.symbols = symbols, .symbol_count = count});

	return symtab_new(arena, &(struct symtab_sources){.module = elf}, &anything);
}

static const char *name_at(struct symtab *table, uint64_t ea)
{
	struct symtab_symbol symbol;

	return symtab_find(table, ea, &symbol) ? symbol.name : "(none)";
}

/* ---- The rule, case by case ---- */

#define G STB_GLOBAL
#define W STB_WEAK
#define L STB_LOCAL

/* clang-format off */
static const struct {
	const char *name;
	struct image_symbol symbols[5];
	uint64_t ea;
	const char *want;
} cases[] = {
	{"first byte of a function", {{"f", 0x1100, 0x10, STT_FUNC, G, 1}}, 0x1100, "f"},
	{"last byte of a function", {{"f", 0x1100, 0x10, STT_FUNC, G, 1}}, 0x110f, "f"},
	{"behind a function", {{"f", 0x1100, 0x10, STT_FUNC, G, 1}}, 0x1110, "(none)"},
	{"before all functions", {{"f", 0x1100, 0x10, STT_FUNC, G, 1}}, 0x10ff, "(none)"},
	{"a function before a label inside it",
	 {{"f", 0x1100, 0x80, STT_FUNC, L, 1}, {"label", 0x1110, 0, STT_NOTYPE, G, 1}},
	 0x1118, "f"},
	{"the innermost of nested functions",
	 {{"outer", 0x1100, 0x80, STT_FUNC, G, 1}, {"inner", 0x1110, 0x10, STT_FUNC, L, 1}},
	 0x1118, "inner"},
	{"the outer one behind the nested one",
	 {{"outer", 0x1100, 0x80, STT_FUNC, G, 1}, {"inner", 0x1110, 0x10, STT_FUNC, L, 1}},
	 0x1120, "outer"},
	{"of overlapping ones the later",
	 {{"a", 0x1100, 0x20, STT_FUNC, G, 1}, {"b", 0x1110, 0x20, STT_FUNC, G, 1}},
	 0x1118, "b"},
	{"global before weak",
	 {{"g", 0x1100, 0x10, STT_FUNC, G, 1}, {"w", 0x1100, 0x10, STT_FUNC, W, 1}},
	 0x1104, "g"},
	{"weak before local",
	 {{"w", 0x1100, 0x10, STT_FUNC, W, 1}, {"l", 0x1100, 0x10, STT_FUNC, L, 1}},
	 0x1104, "w"},
	{"unique is global",
	 {{"u", 0x1100, 0x10, STT_FUNC, STB_GNU_UNIQUE, 1}, {"w", 0x1100, 0x10, STT_FUNC, W, 1}},
	 0x1104, "u"},
	{"the exported alias before glibc's own",
	 {{"__GI_strtok", 0x1100, 0x10, STT_FUNC, L, 1}, {"strtok", 0x1100, 0x10, STT_FUNC, G, 1}},
	 0x1104, "strtok"},
	{"fewer underscores",
	 {{"lock", 0x1100, 0x10, STT_FUNC, G, 1}, {"__lock", 0x1100, 0x10, STT_FUNC, G, 1}},
	 0x1104, "lock"},
	{"__GI_ last, whatever its underscores",
	 {{"____l", 0x1100, 0x10, STT_FUNC, L, 1}, {"__GI_____l", 0x1100, 0x10, STT_FUNC, L, 1}},
	 0x1104, "____l"},
	{"the larger of two at one address",
	 {{"large", 0x1100, 0x20, STT_FUNC, G, 1}, {"small", 0x1100, 0x10, STT_FUNC, G, 1}},
	 0x1104, "large"},
	{"where the better alias ends the larger goes on",
	 {{"large", 0x1100, 0x20, STT_FUNC, L, 1}, {"small", 0x1100, 0x10, STT_FUNC, G, 1}},
	 0x1118, "large"},
	{"the last of equals",
	 {{"one", 0x1100, 0x10, STT_FUNC, G, 1}, {"two", 0x1100, 0x10, STT_FUNC, G, 1}},
	 0x1104, "two"},
	{"a version is no part of a name",
	 {{"memcpy@@V_2.14", 0x1100, 0x10, STT_FUNC, G, 1}}, 0x1104, "memcpy"},
	{"a label reaches to the next symbol",
	 {{"_start", 0x1100, 0, STT_NOTYPE, G, 1}, {"f", 0x1140, 0x10, STT_FUNC, G, 1}},
	 0x113f, "_start"},
	{"and not into unknown code behind that",
	 {{"_start", 0x1100, 0, STT_NOTYPE, G, 1}, {"f", 0x1140, 0x10, STT_FUNC, G, 1}},
	 0x1150, "(none)"},
	{"a function without a size likewise",
	 {{"_init", 0x1100, 0, STT_FUNC, G, 1}, {"f", 0x1140, 0x10, STT_FUNC, G, 1}},
	 0x1130, "_init"},
	{"a label never passes the end of its section",
	 {{"label", 0x1f00, 0, STT_NOTYPE, G, 1}}, 0x2000, "(none)"},
	{"a label at the end of its section names nothing",
	 {{"etext", 0x2000, 0, STT_NOTYPE, G, 1}}, 0x2000, "(none)"},
	{"nor does a size", {{"f", 0x1f00, 0x800, STT_FUNC, G, 1}}, 0x2000, "(none)"},
	{"nor a size that wraps", {{"f", 0x1f00, UINT64_MAX, STT_FUNC, G, 1}}, 0x10, "(none)"},
	{"though it is one up to there", {{"f", 0x1f00, UINT64_MAX, STT_FUNC, G, 1}}, 0x1fff, "f"},
	{"the top of the address space",
	 {{"f", 0xfffffffffffffff0, 0x10, STT_FUNC, G, 4}}, 0xfffffffffffffffe, "f"},
	{"a resolver's own function",
	 {{"strcat", 0x1100, 0x10, STT_GNU_IFUNC, G, 1},
	  {"strcat_ifunc", 0x1100, 0x10, STT_FUNC, L, 1}},
	 0x1104, "strcat_ifunc"},
	{"a resolver that nothing else names",
	 {{"strcat", 0x1100, 0x10, STT_GNU_IFUNC, G, 1}}, 0x1104, "strcat"},
	{"an implementation is not its resolver",
	 {{"strcat", 0x1100, 0x10, STT_GNU_IFUNC, G, 1},
	  {"__strcat_avx2", 0x1200, 0x10, STT_FUNC, L, 1}},
	 0x1204, "__strcat_avx2"},
	{"no mapping symbols", {{"$x", 0x1100, 0, STT_NOTYPE, L, 1}}, 0x1104, "(none)"},
	{"nor do they end a label",
	 {{"f", 0x1100, 0, STT_NOTYPE, G, 1}, {"$d", 0x1104, 0, STT_NOTYPE, L, 1}}, 0x1108, "f"},
	{"no assembler-local labels", {{".L5", 0x1100, 0, STT_NOTYPE, L, 1}}, 0x1104, "(none)"},
	{"no sections", {{"", 0x1000, 0, STT_SECTION, L, 1}}, 0x1104, "(none)"},
	{"no files", {{"a.c", 0x1100, 0x10, STT_FILE, L, SHN_ABS}}, 0x1104, "(none)"},
	{"no data", {{"d", 0x3100, 0x10, STT_OBJECT, G, 3}}, 0x3104, "(none)"},
	{"no labels in data", {{"d", 0x3100, 0, STT_NOTYPE, G, 3}}, 0x3104, "(none)"},
	{"no undefined symbols", {{"u", 0x1100, 0x10, STT_FUNC, G, SHN_UNDEF}}, 0x1104, "(none)"},
	{"no absolute ones", {{"a", 0x1100, 0x10, STT_FUNC, G, SHN_ABS}}, 0x1104, "(none)"},
	{"no symbol outside the section it claims",
	 {{"f", 0x2100, 0x10, STT_FUNC, G, 1}}, 0x2104, "(none)"},
	{"a section beyond the table counts by its segment",
	 {{"f", 0x1100, 0x10, STT_FUNC, G, 0x7000}}, 0x1104, "f"},
};
/* clang-format on */

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct arena arena = {0};
		size_t count = 0;
		struct symtab *table;

		while (count < COUNT(cases[i].symbols) && cases[i].symbols[count].name)
			count++;
		table = table_of(&arena, cases[i].symbols, count);
		if (strcmp(name_at(table, cases[i].ea), cases[i].want) != 0)
			fail_msg("%s: %s, not %s", cases[i].name, name_at(table, cases[i].ea),
				 cases[i].want);
		arena_free(&arena);
	}
}

static void test_facts_of_a_symbol(void **state)
{
	static const struct image_symbol symbols[] = {
		{"f@@V1", 0x1100, 0x10, STT_FUNC, G, 1},
		{"label", 0x1200, 0, STT_NOTYPE, G, 1},
	};
	struct arena arena = {0};
	struct symtab *table = table_of(&arena, symbols, COUNT(symbols));
	struct symtab_symbol s;

	(void)state;
	assert_true(symtab_find(table, 0x1108, &s));
	assert_int_equal(s.ea, 0x1100);
	assert_int_equal(s.size, 0x10);
	assert_true(s.is_function);
	assert_true(symtab_find(table, 0x1208, &s));
	assert_int_equal(s.ea, 0x1200);
	assert_int_equal(s.size, 0);
	assert_false(s.is_function);
	assert_int_equal(symtab_count(table), 2);
	assert_true(symtab_has(table, 0x1100, "f"));
	assert_false(symtab_has(table, 0x1101, "f"));
	assert_false(symtab_has(table, 0x1100, "ff"));
	arena_free(&arena);
}

/* ---- Where they come from ---- */

static void test_all_tables_are_read(void **state)
{
	static const struct image_symbol dynamic[] = {
		{"dynamic", 0x1100, 0x10, STT_FUNC, G, 1}};
	static const struct image_symbol embedded[] = {
		{"embedded", 0x1200, 0x10, STT_FUNC, L, 1}};
	static const struct image_symbol debug[] = {{"debug", 0x1300, 0x10, STT_FUNC, L, 1},
						    {"better", 0x1100, 0x10, STT_FUNC, G, 1}};
	struct arena arena = {0};
	struct symtab_sources sources = {
		.module = open_image(&arena,
				     (struct image){.dynamic = dynamic, .dynamic_count = 1}),
		.embedded = open_image(&arena,
				       (struct image){.symbols = embedded, .symbol_count = 1}),
		.debug =
			open_image(&arena, (struct image){.symbols = debug, .symbol_count = 2}),
	};
	struct symtab *table = symtab_new(&arena, &sources, &anything);

	(void)state;
	assert_string_equal(name_at(table, 0x1100), "better");
	assert_string_equal(name_at(table, 0x1200), "embedded");
	assert_string_equal(name_at(table, 0x1300), "debug");
	arena_free(&arena);
}

static void test_nothing_at_all(void **state)
{
	struct arena arena = {0};
	struct symtab *table = symtab_new(&arena, &(struct symtab_sources){0}, &anything);

	(void)state;
	assert_string_equal(name_at(table, 0), "(none)");
	assert_string_equal(name_at(table, UINT64_MAX), "(none)");
	arena_free(&arena);
}

/* ---- .eh_frame_hdr ends symbols of unknown size ---- */

struct hdr {
	uint8_t version, frame_enc, count_enc, table_enc;
	int32_t frame;
	uint32_t count;
	int32_t table[6];
};

#define REL(ea) ((int32_t)((int64_t)(ea)-IMAGE_EH_FRAME_HDR))

static const struct hdr good_hdr = {
	1, 0x1b, 0x03, 0x3b, 0, 3, {REL(0x1100), 0, REL(0x1140), 0, REL(0x1180), 0}};

static const char *label_at(struct arena *arena, struct bytes hdr, uint64_t ea)
{
	static const struct image_symbol symbols[] = {{"label", 0x1100, 0, STT_NOTYPE, G, 1}};
	struct elf *elf = open_image(arena, (struct image){.symbols = symbols,
							   .symbol_count = 1,
							   .eh_frame_hdr = hdr});
	struct symtab *table =
		symtab_new(arena, &(struct symtab_sources){.module = elf}, &anything);

	return name_at(table, ea);
}

static void test_known_functions_end_a_label(void **state)
{
	struct bytes hdr = {(const uint8_t *)&good_hdr, sizeof good_hdr};
	struct arena arena = {0};

	(void)state;
	assert_string_equal(label_at(&arena, hdr, 0x113f), "label");
	assert_string_equal(label_at(&arena, hdr, 0x1140), "(none)");
	assert_string_equal(label_at(&arena, (struct bytes){NULL, 0}, 0x1140), "label");
	arena_free(&arena);
}

static void test_damaged_eh_frame_hdr(void **state)
{
	struct arena arena = {0};

	(void)state;
	for (size_t len = 0; len < sizeof good_hdr; len++)
		assert_string_equal(label_at(&arena,
					     (struct bytes){(const uint8_t *)&good_hdr, len},
					     0x1140),
				    "label");
	for (size_t at = 0; at < 4; at++) { /* version and encodings that are not read */
		struct hdr bad = good_hdr;

		((uint8_t *)&bad)[at] ^= 0x40;
		assert_string_equal(label_at(&arena,
					     (struct bytes){(uint8_t *)&bad, sizeof bad},
					     0x1140),
				    "label");
	}
	for (int i = 0; i < 2; i++) { /* a count that lies */
		struct hdr bad = good_hdr;

		bad.count = i ? UINT32_MAX : 4;
		assert_string_equal(label_at(&arena,
					     (struct bytes){(uint8_t *)&bad, sizeof bad},
					     0x1140),
				    "label");
	}
	arena_free(&arena);
}

/* ---- Against a second implementation ---- */

static int bind_value(uint8_t bind)
{
	return bind == G ? 2 : bind == W ? 1 : 0;
}

static bool is_function(const struct image_symbol *s)
{
	return s->type == STT_FUNC && s->size;
}

/* The end by the rule, with every symbol looked at. */
static uint64_t end_of(const struct image_symbol *all, size_t count,
		       const struct image_symbol *s)
{
	uint64_t end = s->size ? s->ea + s->size : 0x2000;

	for (size_t i = 0; !s->size && i < count; i++)
		if (all[i].ea > s->ea && all[i].ea < end)
			end = all[i].ea;
	return end < 0x2000 ? end : 0x2000;
}

/* Is `a` the better name at this address? Names are all alike but for their order. */
static bool better(const struct image_symbol *all, size_t count, const struct image_symbol *a,
		   const struct image_symbol *b)
{
	uint64_t end_a = end_of(all, count, a), end_b = end_of(all, count, b);

	if (is_function(a) != is_function(b))
		return is_function(a);
	if (a->ea != b->ea)
		return a->ea > b->ea;
	if (bind_value(a->bind) != bind_value(b->bind))
		return bind_value(a->bind) > bind_value(b->bind);
	/* Sizes are compared before symbols without one are ended by others. */
	if (!a->size)
		end_a = 0x2000;
	if (!b->size)
		end_b = 0x2000;
	return end_a != end_b ? end_a > end_b : a > b;
}

static const char *slow_name_at(const struct image_symbol *all, size_t count, uint64_t ea)
{
	const struct image_symbol *best = NULL;

	for (size_t i = 0; i < count; i++) {
		if (all[i].ea > ea || ea >= end_of(all, count, &all[i]))
			continue;
		if (!best || better(all, count, &all[i], best))
			best = &all[i];
	}
	return best ? best->name : "(none)";
}

static uint32_t dice(uint32_t *seed, uint32_t sides)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % sides;
}

static void symbols_throw(struct arena *arena, struct image_symbol *symbols, size_t count,
			  uint32_t *seed)
{
	static const uint8_t binds[] = {G, W, L}, types[] = {STT_FUNC, STT_FUNC, STT_NOTYPE};

	for (size_t i = 0; i < count; i++)
		symbols[i] = (struct image_symbol){
			.name = arena_printf(arena, "s%zu", i),
			.ea = 0x1000 + dice(seed, 64) * 4,
			.size = dice(seed, 4) ? dice(seed, 64) : 0,
			.type = types[dice(seed, 3)],
			.bind = binds[dice(seed, 3)],
			.section = 1,
		};
}

static void test_against_the_slow_way(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		struct arena arena = {0};
		struct image_symbol symbols[24];
		size_t count = 1 + round % COUNT(symbols);
		uint32_t seed = round;
		struct symtab *table;

		symbols_throw(&arena, symbols, count, &seed);
		table = table_of(&arena, symbols, count);
		for (uint64_t ea = 0xff0; ea < 0x1200; ea++)
			if (strcmp(name_at(table, ea), slow_name_at(symbols, count, ea)) != 0)
				fail_msg("round %u, 0x%llx: %s, not %s", round,
					 (unsigned long long)ea, name_at(table, ea),
					 slow_name_at(symbols, count, ea));
		arena_free(&arena);
	}
}

static void same_names(struct symtab *some, struct symtab *all, uint64_t ea)
{
	for (unsigned i = 0; i < 24; i++) {
		char name[16];

		snprintf(name, sizeof name, "s%u", i);
		assert_int_equal(symtab_has(some, ea, name), symtab_has(all, ea, name));
	}
}

static void same_answers(struct symtab *some, struct symtab *all, uint64_t ea)
{
	struct symtab_symbol a, b;

	assert_string_equal(name_at(some, ea), name_at(all, ea));
	if (symtab_find(all, ea, &a))
		same_names(some, all, a.ea);
	assert_int_equal(symtab_nearest(some, ea, 0x1000, &a),
			 symtab_nearest(all, ea, 0x1000, &b));
	if (!symtab_nearest(all, ea, 0x1000, &b))
		return;
	assert_string_equal(a.name, b.name);
	same_names(some, all, b.ea);
}

/* A table for some addresses says of them what the table of all says. */
static void test_a_table_for_some_addresses(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < 1000; round++) {
		struct arena arena = {0};
		struct image_symbol symbols[24];
		size_t count = 1 + round % COUNT(symbols);
		uint32_t seed = round;
		uint64_t at[4], ea = 0xff0;
		struct symtab_asked asked = {at, 1 + round % 4};
		struct symtab *all, *some;
		struct elf *elf;

		symbols_throw(&arena, symbols, count, &seed);
		for (size_t i = 0; i < 4; i++)
			at[i] = ea += dice(&seed, 0x80);
		elf = open_image(&arena,
				 (struct image){.symbols = symbols, .symbol_count = count});
		all = symtab_new(&arena, &(struct symtab_sources){.module = elf}, &anything);
		some = symtab_new(&arena, &(struct symtab_sources){.module = elf}, &asked);
		for (size_t i = 0; i < asked.count; i++)
			same_answers(some, all, at[i]);
		arena_free(&arena);
	}
}

/* A hundred thousand symbols that all begin at one address or all cover each other: look-ups stay
 * fast because they are decided when the table is made. */
static void test_hostile_tables(void **state)
{
	enum { MANY = 100000 };

	(void)state;
	for (int nested = 0; nested < 2; nested++) {
		struct arena arena = {0};
		struct image_symbol *symbols = arena_array(&arena, struct image_symbol, MANY);
		struct symtab *table;

		for (uint32_t i = 0; i < MANY; i++)
			symbols[i] = (struct image_symbol){
				.name = "f",
				.ea = nested ? 0xffffffffffff0000 + i % 0x8000 : 0x1000,
				.size = 0x10000 - i % 0x10000,
				.type = STT_FUNC,
				.bind = G,
				.section = nested ? 4 : 1,
			};
		table = table_of(&arena, symbols, MANY);
		for (uint64_t ea = 0; ea < MANY; ea++)
			name_at(table, nested ? 0xffffffffffff0000 + ea : ea);
		assert_string_equal(name_at(table, nested ? 0xffffffffffff8000 : 0x1fff), "f");
		arena_free(&arena);
	}
}

/* Many names of one function that are megabytes of underscores, in one string. */
static void test_long_strange_names(void **state)
{
	enum { MANY = 2000, LENGTH = 1 << 20 };
	struct arena arena = {0};
	struct image_symbol *symbols = arena_array(&arena, struct image_symbol, MANY);
	char *name = arena_alloc(&arena, LENGTH + 1, 1);
	clock_t begin;
	struct elf *elf;
	struct elf_section *section;
	struct symtab_symbol found;

	(void)state;
	memset(name, '_', LENGTH);
	for (uint32_t i = 0; i < MANY; i++)
		symbols[i] = (struct image_symbol){i ? "f" : name, 0x1000, 16, STT_FUNC, G, 1};
	elf = open_image(&arena, (struct image){.symbols = symbols, .symbol_count = MANY});
	section = elf_section(elf, ".symtab");
	assert_non_null(section);
	for (uint32_t i = 1; i < MANY; i++) {
		uint32_t name_off = 1 + i;

		memcpy((uint8_t *)(uintptr_t)elf->data.at + section->off +
			       (i + 1) * sizeof(Elf64_Sym),
		       &name_off, sizeof name_off);
	}
	begin = clock();
	assert_true(symtab_find(symtab_new(&arena, &(struct symtab_sources){.module = elf},
					   &anything),
				0x1000, &found));
	assert_int_equal(found.name[0], '_');
	assert_true(clock() - begin < CLOCKS_PER_SEC);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_facts_of_a_symbol),
		cmocka_unit_test(test_all_tables_are_read),
		cmocka_unit_test(test_nothing_at_all),
		cmocka_unit_test(test_known_functions_end_a_label),
		cmocka_unit_test(test_damaged_eh_frame_hdr),
		cmocka_unit_test(test_against_the_slow_way),
		cmocka_unit_test(test_a_table_for_some_addresses),
		cmocka_unit_test(test_hostile_tables),
		cmocka_unit_test(test_long_strange_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
