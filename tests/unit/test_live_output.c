/* Outputs: what is kept, what is refused, and beside an attacker who exchanges names all the
 * time. (Live: emulators lack what it asks of the kernel.) */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/output.h"

#define NOBODY 65534
#define ROUNDS_SHORT 400 /* OUTPUT_ROUNDS in the environment: another number */
#define MORE 20
#define STUCK_S 240
#define TEXT "what root has written"

static char place[64];
static struct arena arena;

static const char *in_place(const char *name)
{
	return arena_printf(&arena, "%s/%s", place, name);
}

static void put(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);

	assert_true(fd >= 0);
	assert_true(file_write_whole(fd, (struct bytes){(const uint8_t *)text, strlen(text)}));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static const char *text_of(const char *path)
{
	struct bytes text;

	return file_read_all(&arena, AT_FDCWD, path, 1000, &text, NULL) ? (const char *)text.at
									: NULL;
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st;
}

static bool write_to(const char *path, struct err *e)
{
	struct arena scratch = {0};
	struct output out;
	bool ok = output_open(&out, &scratch, path, e);

	if (ok) {
		fputs(TEXT, out.stream);
		ok = output_commit(&out, e);
	}
	arena_free(&scratch);
	return ok;
}

static void written(const char *path)
{
	struct err e = {0};

	if (!write_to(path, &e))
		fail_msg("%s", e.text);
}

static void refused(const char *path, const char *why)
{
	struct err e = {0};

	assert_false(write_to(path, &e));
	if (!strstr(e.text, why))
		fail_msg("'%s' does not say '%s'", e.text, why);
}

static void remove_all(const char *path)
{
	assert_int_equal(system(arena_printf(&arena, "rm -rf '%s'", path)), 0);
}

static int place_make(void **state)
{
	(void)state;
	strcpy(place, "/tmp/stacker-test-output.XXXXXX");
	return mkdtemp(place) && chmod(place, 0711) == 0 ? 0 : -1;
}

static int place_remove(void **state)
{
	(void)state;
	remove_all(place);
	arena_free(&arena);
	return 0;
}

/* ---- What an existing file keeps ---- */

static void test_new_and_replaced(void **state)
{
	const char *path = in_place("plain");

	(void)state;
	written(path);
	assert_int_equal(stat_of(path).st_mode & 07777, 0600);
	assert_string_equal(text_of(path), TEXT);
	put(path, "something that is longer than what will be there", 0644);
	written(path);
	assert_string_equal(text_of(path), TEXT);
	assert_int_equal(stat_of(path).st_mode & 07777, 0644);
}

static void test_abandoned(void **state)
{
	const char *path = in_place("kept");
	struct output out;

	(void)state;
	put(path, "old", 0600);
	assert_true(output_open(&out, &arena, path, NULL));
	fputs(TEXT, out.stream);
	fflush(out.stream);
	assert_string_equal(text_of(path), "old");
	output_abandon(&out);
	assert_string_equal(text_of(path), "old");
}

static void test_owner_is_kept(void **state)
{
	const char *path = in_place("of-nobody");

	(void)state;
	if (geteuid() != 0)
		skip();
	put(path, "old", 0640);
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	written(path);
	assert_int_equal(stat_of(path).st_uid, NOBODY);
	assert_int_equal(stat_of(path).st_gid, NOBODY);
	assert_int_equal(stat_of(path).st_mode & 07777, 0640);
}

/* Filled, but only at the end: until then it is as it was. */
static void test_hard_links_are_kept(void **state)
{
	const char *path = in_place("one"), *other = in_place("two");
	struct output out;

	(void)state;
	put(path, "old, and longer than what comes", 0644);
	assert_int_equal(link(path, other), 0);
	assert_true(output_open(&out, &arena, path, NULL));
	fputs(TEXT, out.stream);
	fflush(out.stream);
	assert_string_equal(text_of(other), "old, and longer than what comes");
	assert_true(output_commit(&out, NULL));
	assert_string_equal(text_of(other), TEXT);
	assert_int_equal(stat_of(path).st_nlink, 2);
}

static void test_links_are_followed(void **state)
{
	const char *target = in_place("target"), *link = in_place("link");

	(void)state;
	put(target, "old", 0600);
	assert_int_equal(symlink("target", link), 0);
	written(link);
	assert_true(S_ISLNK(stat_of(link).st_mode));
	assert_string_equal(text_of(target), TEXT);
	/* One that leads nowhere yet. */
	assert_int_equal(unlink(target), 0);
	written(link);
	assert_string_equal(text_of(target), TEXT);
	assert_int_equal(symlink("circle", in_place("circle")), 0);
	refused(in_place("circle"), strerror(ELOOP));
}

static void test_long_name(void **state)
{
	char name[256];

	(void)state;
	memset(name, 'n', 255);
	name[255] = '\0';
	written(in_place(name));
	written(in_place(name));
	assert_string_equal(text_of(in_place(name)), TEXT);
}

static void test_not_a_file(void **state)
{
	(void)state;
	refused(in_place("."), "is a directory");
	refused(place, "is a directory");
	refused("/", "is a directory");
	refused(in_place("none/x"), strerror(ENOENT));
	put(in_place("file"), "", 0600);
	refused(in_place("file/x"), strerror(ENOTDIR));
	refused(in_place("file/"), strerror(ENOTDIR));
}

/* ---- Open descriptors ---- */

static void descriptor_case(const char *format)
{
	const char *path = in_place("log");
	int fd;

	put(path, "before ", 0600);
	fd = open(path, O_WRONLY | O_APPEND);
	written(arena_printf(&arena, format, fd));
	close(fd);
	assert_string_equal(text_of(path), "before " TEXT);
}

static void test_descriptors(void **state)
{
	int fd;

	(void)state;
	descriptor_case("/dev/fd/%d");
	descriptor_case("/proc/self/fd/%d");
	descriptor_case("/proc/thread-self/fd/%d");
	descriptor_case("//proc/../proc/self/./fd//%d");
	descriptor_case(arena_printf(&arena, "/proc/%d/fd/%%d", getpid()));
	fd = open("/dev/null", O_RDONLY);
	refused(arena_printf(&arena, "/dev/fd/%d", fd), "reading only");
	close(fd);
	refused(arena_printf(&arena, "/dev/fd/%d", fd), strerror(EBADF));
}

static void test_link_to_a_descriptor(void **state)
{
	int fd = open(in_place("deleted"), O_RDWR | O_CREAT, 0600);
	const char *link = in_place("to-descriptor");
	char text[64] = "";

	(void)state;
	assert_int_equal(symlink(arena_printf(&arena, "/proc/self/fd/%d", fd), link), 0);
	assert_int_equal(unlink(in_place("deleted")), 0);
	written(link);
	assert_true(S_ISLNK(stat_of(link).st_mode));
	assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
	assert_string_equal(text, TEXT);
	assert_int_equal(access(in_place("deleted"), F_OK), -1);
	close(fd);
}

/* ---- What others have made ---- */

static const char *sticky_make(void)
{
	const char *path = in_place("sticky");

	if (mkdir(path, 0700) != 0)
		assert_int_equal(errno, EEXIST);
	assert_int_equal(chmod(path, 01777), 0);
	return path;
}

static void test_of_others(void **state)
{
	const char *sticky = sticky_make(), *victim = in_place("victim");
	const char *file = arena_printf(&arena, "%s/file", sticky);
	const char *link = arena_printf(&arena, "%s/link", sticky);
	const char *up = arena_printf(&arena, "%s/up", sticky);
	const char *fifo = arena_printf(&arena, "%s/fifo", sticky);

	(void)state;
	if (geteuid() != 0)
		skip();
	put(victim, "precious", 0600);
	put(file, "theirs", 0666);
	assert_int_equal(mkfifo(fifo, 0666), 0);
	assert_int_equal(symlink(victim, link) | symlink(place, up), 0);
	assert_int_equal(lchown(file, NOBODY, NOBODY) | lchown(link, NOBODY, NOBODY) |
				 lchown(up, NOBODY, NOBODY) | lchown(fifo, NOBODY, NOBODY),
			 0);
	refused(file, "a file of another user (uid 65534)");
	refused(fifo, "a FIFO of another user (uid 65534)");
	refused(link, "'link' is a link of another user (uid 65534)");
	refused(arena_printf(&arena, "%s/victim", up), "'up' is a link of another user");
	assert_string_equal(text_of(file), "theirs");
	assert_string_equal(text_of(victim), "precious");
	/* Our own there: replaced, for our eyes only. */
	assert_int_equal(lchown(file, 0, 0), 0);
	written(file);
	assert_int_equal(stat_of(file).st_mode & 07777, 0600);
	assert_int_equal(lchown(link, 0, 0), 0);
	written(link);
	assert_string_equal(text_of(victim), TEXT);
	remove_all(sticky);
}

static void test_socket(void **state)
{
	const char *path = in_place("socket");

	(void)state;
	assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
	refused(path, "is a socket");
}

/* ---- Beside an attacker ---- */

struct arrangement {
	const char *directory; /* in which the attacker plays */
	const char *path;      /* to which root writes */
	const char *victims;   /* a directory of root's; nothing in it may change */
	const char *victim;    /* a file in it */
};

/* `out` becomes now a file, now a link to the victim, now a FIFO; `sub` now a directory, now a
 * link to the victim's. The exit status says whether the FIFO was fed. */
static void attack(const struct arrangement *a, const int *ended)
{
	const char *const names[] = {"link", "fifo", "file"};
	int fifo;
	char byte;

	if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || chdir(a->directory) != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		_exit(99);
	umask(0);
	mkfifo("pipe", 0666);
	fifo = open("pipe", O_RDWR | O_NONBLOCK);
	for (unsigned i = 0; !__atomic_load_n(ended, __ATOMIC_RELAXED); i++) {
		const char *name = names[i % 3];
		bool done = symlink(a->victim, "link") == 0;

		done |= link("pipe", "fifo") == 0;
		close(open("file", O_WRONLY | O_CREAT, 0666));
		done |= mkdir("sub", 0777) == 0;
		done |= symlink(a->victims, "sublink") == 0;
		done |= renameat2(AT_FDCWD, "out", AT_FDCWD, name, RENAME_EXCHANGE) == 0;
		done |= rename(name, "out") == 0;
		done |= renameat2(AT_FDCWD, "sub", AT_FDCWD, "sublink", RENAME_EXCHANGE) == 0;
		if (done && i % 5 == 0)
			unlink("out");
	}
	_exit(fifo >= 0 && read(fifo, &byte, 1) == 1 ? 1 : 0);
}

static unsigned rounds(void)
{
	const char *text = getenv("OUTPUT_ROUNDS");

	return text ? (unsigned)strtoul(text, NULL, 10) : ROUNDS_SHORT;
}

/* Is it in a file that others can read? */
static bool is_readable_for_others(const char *path)
{
	SCOPED_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	char text[sizeof TEXT] = "";
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_uid != 0 || (st.st_mode & 077)) &&
	       pread(fd, text, sizeof TEXT - 1, 0) > 0 && strcmp(text, TEXT) == 0;
}

static void victims_check(const struct arrangement *a)
{
	SCOPED_FD int fd = open(a->victim, O_RDONLY);
	char text[64] = "", out[128];

	assert_true(read(fd, text, sizeof text - 1) > 0);
	assert_string_equal(text, "precious");
	snprintf(out, sizeof out, "%s/out", a->victims);
	assert_int_equal(access(out, F_OK), -1);
}

/* So that there is something to be careful of. */
static void thing_await(const char *path)
{
	struct stat st;

	for (int tries = 0; tries < 200 && lstat(path, &st) != 0; tries++)
		sched_yield();
}

static void rounds_play(const struct arrangement *a)
{
	unsigned good = 0, bad = 0;

	/* Both happen, but how often goes by who is quicker: some more, then, without waiting. */
	for (unsigned i = 0; i < rounds() || (i < MORE * rounds() && !(good && bad)); i++) {
		struct err e = {0};

		if (i < rounds())
			thing_await(a->path);
		if (write_to(a->path, &e))
			good++;
		else
			bad++;
		assert_false(is_readable_for_others(a->path));
		victims_check(a);
		unlink(a->path);
	}
	print_message("%s: %u written, %u refused\n", a->path, good, bad);
	assert_true(good && bad);
}

static void attacked(const struct arrangement *a)
{
	int *ended = mmap(NULL, sizeof *ended, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t attacker;
	int status;

	put(a->victim, "precious", 0600);
	attacker = fork();
	if (attacker == 0)
		attack(a, ended);
	alarm(STUCK_S);
	rounds_play(a);
	alarm(0);
	__atomic_store_n(ended, 1, __ATOMIC_RELAXED);
	assert_int_equal(waitpid(attacker, &status, 0), attacker);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	munmap(ended, sizeof *ended);
}

static void attacked_in(const char *directory, const char *name)
{
	const char *victims = in_place("victims");
	struct arrangement a = {
		.directory = directory,
		.path = arena_printf(&arena, "%s/%s", directory, name),
		.victims = victims,
		.victim = arena_printf(&arena, "%s/victim", victims),
	};

	mkdir(victims, 0755);
	attacked(&a);
	remove_all(directory);
}

static void test_attacked_in_a_sticky_directory(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	attacked_in(sticky_make(), "out");
	attacked_in(sticky_make(), "sub/out");
}

static const char *theirs_make(void)
{
	const char *path = in_place("theirs");

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	return path;
}

static void test_attacked_in_their_directory(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	attacked_in(theirs_make(), "out");
	attacked_in(theirs_make(), "sub/out");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_and_replaced),
		cmocka_unit_test(test_abandoned),
		cmocka_unit_test(test_owner_is_kept),
		cmocka_unit_test(test_hard_links_are_kept),
		cmocka_unit_test(test_links_are_followed),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_not_a_file),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_link_to_a_descriptor),
		cmocka_unit_test(test_of_others),
		cmocka_unit_test(test_socket),
		cmocka_unit_test(test_attacked_in_a_sticky_directory),
		cmocka_unit_test(test_attacked_in_their_directory),
	};

	return cmocka_run_group_tests(tests, place_make, place_remove);
}
