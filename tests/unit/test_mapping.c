/* Mapped files that become shorter while they are read. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mapping.h"

#define PAGES 4

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* A mapped file of PAGES pages full of 'x'. */
static struct bytes mapped(FILE **file, const char *name)
{
	struct bytes bytes = {NULL, 0};
	struct err e = {0};

	*file = tmpfile();
	assert_non_null(*file);
	for (size_t i = 0; i < PAGES * page_size(); i++)
		fputc('x', *file);
	fflush(*file);
	assert_true(file_map_fd(fileno(*file), name, &bytes, &e));
	return bytes;
}

static uint8_t byte_at(struct bytes bytes, size_t at)
{
	return ((const volatile uint8_t *)bytes.at)[at];
}

static void test_file_cut(void **state)
{
	FILE *whole_file, *cut_file;
	struct bytes whole = mapped(&whole_file, "whole"), cut = mapped(&cut_file, "cut");
	size_t at = 0;

	(void)state;
	mappings_guard();
	assert_null(mapping_next_cut(&at));
	assert_int_equal(ftruncate(fileno(cut_file), (off_t)page_size()), 0);
	assert_int_equal(byte_at(cut, 2 * page_size()), 0);
	assert_int_equal(byte_at(cut, PAGES * page_size() - 1), 0);
	assert_int_equal(byte_at(cut, page_size() - 1), 'x');
	assert_int_equal(byte_at(cut, page_size()), 0);
	assert_int_equal(byte_at(whole, PAGES * page_size() - 1), 'x');
	assert_string_equal(mapping_next_cut(&at), "cut");
	assert_null(mapping_next_cut(&at));
	file_unmap(cut);
	at = 0;
	assert_null(mapping_next_cut(&at));
	file_unmap(whole);
	fclose(whole_file);
	fclose(cut_file);
}

/* What a child that does this ends by; it must not be mended. */
static int ends_by(void (*act)(struct bytes), struct bytes bytes)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		mappings_guard();
		act(bytes);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void send_it(struct bytes bytes)
{
	(void)bytes;
	raise(SIGBUS);
}

static void read_last(struct bytes bytes)
{
	mapping_forget(bytes);
	byte_at(bytes, bytes.len - 1);
}

static void test_other_bus_errors(void **state)
{
	FILE *file;
	struct bytes bytes = mapped(&file, "unknown");

	(void)state;
	assert_int_equal(ends_by(send_it, bytes), SIGBUS);
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	assert_int_equal(ends_by(read_last, bytes), SIGBUS);
	file_unmap(bytes);
	fclose(file);
}

#define MANY 700

/* Some are forgotten, and others take their places, in no order of addresses. */
static void test_many(void **state)
{
	struct bytes kept[MANY];
	struct mapping_stamp stamp;
	FILE *file = tmpfile();
	struct err e = {0};

	(void)state;
	for (size_t round = 1; round <= 4; round++) {
		for (size_t i = 0; i < MANY; i++) {
			if (round > 1 && i * 7 % round == 1)
				file_unmap(kept[i]);
			else if (round > 1)
				continue;
			assert_int_equal(ftruncate(fileno(file), (off_t)(i * 3 + round)), 0);
			assert_true(file_map_fd(fileno(file), "many", &kept[i], &e));
		}
		for (size_t i = 0; i < MANY; i++) {
			struct bytes other = {kept[i].at + 1, kept[i].len};

			assert_true(mapping_stamp(kept[i], &stamp));
			assert_int_equal(stamp.size, kept[i].len);
			assert_false(mapping_stamp(other, &stamp));
		}
	}
	for (size_t i = 0; i < MANY; i++) {
		struct bytes bytes = kept[i];

		file_unmap(bytes);
		assert_false(mapping_stamp(bytes, &stamp));
	}
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_cut),
		cmocka_unit_test(test_other_bus_errors),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
