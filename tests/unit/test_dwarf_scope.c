/* C++ functions without a linkage name get the namespaces and classes their entries stand in;
 * damage and depth cost no more than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dwarf/constants.h"
#include "dwarf_program.h"
#include "elf_image.h"

#define C_PLUS_PLUS_14 0x21
#define C11 0x1d

enum {
	ROOT = 1,
	NAMESPACE,
	UNNAMED,
	CLASS,
	ELSEWHERE, /* a class whose name stands in a type unit */
	DECLARATION,
	ABSTRACT,
	OUTER,
	INLINED,
	FUNCTION,
};

/* What stands around the declaration of `wait`. */
struct shape {
	unsigned language;
	const uint8_t *scopes; /* outermost first, ended by 0 */
	unsigned copies;       /* of the innermost scope */
	unsigned siblings;     /* the value of DW_AT_sibling where it lies; 0: the truth */
	uint32_t origin;       /* the inlined instance's; 0: the truth */
	const char *linkage;   /* what the abstract instance has, or NULL */
	const char *expected;
};

static void put_abbrevs(struct writer *w, const struct shape *shape)
{
	put_abbrev(w, ROOT, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data1,
		   DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
	put_abbrev(w, NAMESPACE, DW_TAG_namespace, true, DW_AT_name, DW_FORM_string,
		   DW_AT_sibling, DW_FORM_ref4, 0);
	put_abbrev(w, UNNAMED, DW_TAG_namespace, true, DW_AT_sibling, DW_FORM_ref4, 0);
	put_abbrev(w, CLASS, DW_TAG_class_type, true, DW_AT_name, DW_FORM_string, 0);
	put_abbrev(w, ELSEWHERE, DW_TAG_class_type, true, DW_AT_signature, DW_FORM_ref_sig8, 0);
	put_abbrev(w, FUNCTION, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, 0);
	put_abbrev(w, DECLARATION, DW_TAG_subprogram, false, DW_AT_name, DW_FORM_string, 0);
	if (shape->linkage)
		put_abbrev(w, ABSTRACT, DW_TAG_subprogram, false, DW_AT_specification,
			   DW_FORM_ref4, DW_AT_linkage_name, DW_FORM_string, 0);
	else
		put_abbrev(w, ABSTRACT, DW_TAG_subprogram, false, DW_AT_specification,
			   DW_FORM_ref4, 0);
	put_abbrev(w, OUTER, DW_TAG_subprogram, true, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
		   DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
	put_abbrev(w, INLINED, DW_TAG_inlined_subroutine, false, DW_AT_abstract_origin,
		   DW_FORM_ref4, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0);
	put_u8(w, 0);
}

static void put_scope(struct writer *info, const struct shape *shape, uint8_t kind, char letter)
{
	const char name[] = {letter, 0};

	put_uleb(info, kind);
	if (kind == NAMESPACE || kind == CLASS || kind == FUNCTION)
		put_string(info, name);
	if (kind == ELSEWHERE)
		put_u64(info, 1);
	if (kind == NAMESPACE || kind == UNNAMED)
		put_u32(info, shape->siblings);
}

/* The scopes with a decoy before what is looked for; returns where `wait` is declared. */
static uint32_t put_declaration(struct writer *info, const struct shape *shape)
{
	size_t depth = 0;
	uint32_t off;

	put_scope(info, shape, CLASS, 'Z');
	put_uleb(info, DECLARATION);
	put_string(info, "decoy");
	put_u8(info, 0);
	for (const uint8_t *kind = shape->scopes; *kind; kind++)
		for (unsigned i = 0; i < (kind[1] ? 1 : shape->copies); i++)
			put_scope(info, shape, *kind, (char)('A' + depth++ % 26));
	off = (uint32_t)info->out.count;
	put_uleb(info, DECLARATION);
	put_string(info, "wait");
	for (size_t i = 0; i < depth; i++)
		put_u8(info, 0);
	return off;
}

static struct bytes info_of(struct arena *arena, const struct shape *shape)
{
	struct writer info = writer_begin(arena, 4, 4);
	size_t begin = unit_begin(&info, 0);
	uint32_t declaration, abstract;

	put_uleb(&info, ROOT);
	put_u8(&info, shape->language);
	put_address(&info, 0x1000);
	put_u32(&info, 0x100);
	declaration = put_declaration(&info, shape);
	abstract = (uint32_t)info.out.count;
	put_uleb(&info, ABSTRACT);
	put_u32(&info, declaration);
	if (shape->linkage)
		put_string(&info, shape->linkage);
	put_uleb(&info, OUTER);
	put_string(&info, "main");
	put_address(&info, 0x1000);
	put_u32(&info, 0x100);
	put_uleb(&info, INLINED);
	put_u32(&info, shape->origin ? shape->origin : abstract);
	put_address(&info, 0x1010);
	put_u32(&info, 0x10);
	put_u8(&info, 0);
	put_u8(&info, 0);
	unit_end(&info, begin);
	return writer_bytes(&info);
}

/* What the inlined instance is qualified as in a file of this shape. */
static void check_shape(const struct shape *shape, bool asked)
{
	struct arena arena = {0};
	struct writer abbrev = writer_begin(&arena, 4, 4);
	struct image_section sections[3] = {image_code(".text", 0x1000, 0x1000)};
	struct image image = {.sections = sections, .section_count = 3};
	struct dwarf_answer answer = {.ea = 0x1010};
	struct dwarf *dwarf;
	struct elf elf;

	put_abbrevs(&abbrev, shape);
	sections[1] = image_plain(".debug_info", info_of(&arena, shape));
	sections[2] = image_plain(".debug_abbrev", writer_bytes(&abbrev));
	assert_true(elf_open(&elf, &arena, image_make(&arena, &image), "test", NULL));
	dwarf = dwarf_open(&arena, &elf, NULL);
	if (asked)
		dwarf_qualify_names(dwarf);
	dwarf_lookup(dwarf, &answer, 1);
	assert_int_equal(answer.frame_count, 2);
	if (!shape->origin)
		assert_string_equal(answer.frames[0].name, "wait");
	if (asked && shape->expected)
		assert_string_equal(answer.frames[0].qualified, shape->expected);
	else
		assert_null(answer.frames[0].qualified);
	assert_string_equal(answer.frames[1].name, "main");
	assert_null(answer.frames[1].qualified);
	arena_free(&arena);
}

static const uint8_t nested[] = {NAMESPACE, NAMESPACE, CLASS, 0},
		     hidden[] = {UNNAMED, CLASS, 0}, local[] = {NAMESPACE, FUNCTION, CLASS, 0},
		     alone[] = {0}, elsewhere[] = {NAMESPACE, ELSEWHERE, 0},
		     classes[] = {CLASS, 0};

static void check_qualified(void **state)
{
	static const struct shape shapes[] = {
		{C_PLUS_PLUS_14, nested, 1, 0, 0, NULL, "A::B::C::wait"},
		{C_PLUS_PLUS_14, hidden, 1, 0, 0, NULL, "(anonymous namespace)::B::wait"},
		{C_PLUS_PLUS_14, local, 1, 0, 0, NULL, "C::wait"},
		{C_PLUS_PLUS_14, alone, 1, 0, 0, NULL, NULL},
		{C_PLUS_PLUS_14, elsewhere, 1, 0, 0, NULL, NULL},
		{C_PLUS_PLUS_14, nested, 1, 0, 0, "_ZN1A1B1C4waitEv", NULL},
		{C11, nested, 1, 0, 0, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		check_shape(&shapes[i], true);
		check_shape(&shapes[i], false);
	}
}

/* The root is a level, too: 63 classes fit. */
static void check_depth(void **state)
{
	char expected[256] = "";
	struct shape shape = {C_PLUS_PLUS_14, classes, 63, 0, 0, NULL, expected};

	(void)state;
	for (unsigned i = 0; i < 63; i++)
		memcpy(expected + 3 * i, (const char[]){(char)('A' + i % 26), ':', ':'}, 3);
	memcpy(expected + 3 * 63, "wait", sizeof "wait");
	check_shape(&shape, true);
	shape = (struct shape){C_PLUS_PLUS_14, classes, 64, 0, 0, NULL, NULL};
	check_shape(&shape, true);
	shape.copies = 5000;
	check_shape(&shape, true);
}

/* A sibling that points back (a loop) or out of the unit is not followed; an origin that is none
 * gives no name. */
static void check_lies(void **state)
{
	const struct shape shapes[] = {
		{C_PLUS_PLUS_14, nested, 1, 1, 0, NULL, "A::B::C::wait"},
		{C_PLUS_PLUS_14, nested, 1, 12, 0, NULL, "A::B::C::wait"},
		{C_PLUS_PLUS_14, nested, 1, 0xfffffff0, 0, NULL, "A::B::C::wait"},
		{C_PLUS_PLUS_14, nested, 1, 0, 0xfffffff0, NULL, NULL},
		{C_PLUS_PLUS_14, nested, 1, 0, 2, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		check_shape(&shapes[i], true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_qualified),
		cmocka_unit_test(check_depth),
		cmocka_unit_test(check_lies),
	};

	return cmocka_run_group_tests_name("dwarf/scope", tests, NULL, NULL);
}
