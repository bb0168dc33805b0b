#include "base/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/trust.h"

#define UNFINISHED ".new" /* ends the name of a file that is being written */
#define UNFINISHED_S 600  /* older ones were left by a program that was ended */
#define LISTED_MAX 65536  /* a directory that somebody filled must not hold us up */
#define WRITABLE_FOR_OTHERS (S_IWGRP | S_IWOTH)

/* ---- The directory ---- */

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

/* Above "stacker". */
static const char *path_above(struct arena *arena)
{
	const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");

	if (cache)
		return cache;
	return home ? arena_printf(arena, "%s/.cache", home) : NULL;
}

const char *store_path(struct arena *arena)
{
	const char *above = path_above(arena);

	return above ? arena_printf(arena, "%s/stacker", above) : NULL;
}

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & WRITABLE_FOR_OTHERS);
}

/* Inside a directory of ours only (who else may write there does not matter: what is opened is looked
 * at). `path` has a slash. */
static void directory_make(struct arena *arena, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);
	struct stat st;

	if (stat(len ? arena_copy(arena, path, len) : "/", &st) == 0 && st.st_uid == geteuid())
		mkdir(path, 0700);
}

static void directories_make(struct arena *arena, const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return;
	if (stat(path_above(arena), &st) != 0)
		directory_make(arena, path_above(arena));
	directory_make(arena, path);
}

bool store_open(struct store *store, struct arena *arena, bool make, struct err *e)
{
	struct stat st;
	const char *lacks;

	*store = (struct store){.path = store_path(arena), .dir = -1};
	if (!store->path)
		return err_set(e, ERR_NOT_FOUND, "neither XDG_CACHE_HOME nor HOME is set");
	lacks = trust_lacks(arena, store->path, TRUST_OWNERS);
	if (lacks)
		return err_set(e, ERR_PERMISSION, "%s: %s", store->path, lacks);
	if (make)
		directories_make(arena, store->path);
	store->dir = open(store->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (store->dir < 0)
		return err_set(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_SYSTEM, "%s: %s",
			       store->path, strerror(errno));
	if (fstat(store->dir, &st) == 0 && is_ours(&st))
		return true;
	close(store->dir);
	store->dir = -1;
	return err_set(e, ERR_PERMISSION, "%s: others may write there", store->path);
}

int64_t store_now_ns(const struct store *store)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec + store->clock_offset_ns;
}

/* ---- One file ---- */

bool store_read(const struct store *store, struct arena *arena, const char *name,
		struct bytes *out)
{
	struct stat st;
	SCOPED_FD int fd = file_open_at(store->dir, name, true, &st);

	return fd >= 0 && is_ours(&st) && (uint64_t)st.st_size <= STORE_FILE_MAX &&
	       file_read_fd(arena, fd, name, STORE_FILE_MAX, out, NULL);
}

/* ---- All files ---- */

enum kind { FOREIGN, WHOLE, BEING_WRITTEN };

static enum kind kind_of(const char *name)
{
	size_t len = strspn(name, "0123456789abcdef-");

	if (!len || len > STORE_NAME_MAX)
		return FOREIGN;
	if (!name[len])
		return WHOLE;
	return strcmp(name + len, UNFINISHED) == 0 ? BEING_WRITTEN : FOREIGN;
}

struct entry {
	const char *name;
	uint64_t size;
	struct timespec written;
	enum kind kind;
};

struct listing {
	VEC(struct entry) entries;
	struct store_size total;
};

/* A descriptor of its own: reading moves the place of the one it is made of. */
static DIR *directory_read(const struct store *store)
{
	int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static void list(const struct store *store, struct arena *arena, struct listing *out)
{
	DIR *dir = directory_read(store);
	struct dirent *item;

	*out = (struct listing){.total = {0, 0}};
	for (size_t left = LISTED_MAX; dir && left && (item = readdir(dir)); left--) {
		enum kind kind = kind_of(item->d_name);
		struct stat st;

		if (kind == FOREIGN ||
		    fstatat(store->dir, item->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    S_ISDIR(st.st_mode))
			continue;
		*vec_push(arena, &out->entries) =
			(struct entry){arena_string(arena, item->d_name), (uint64_t)st.st_size,
				       st.st_mtim, kind};
		out->total.files++;
		out->total.bytes += (uint64_t)st.st_size;
	}
	if (dir)
		closedir(dir);
}

static int compare_age(const void *left, const void *right)
{
	const struct timespec *a = &((const struct entry *)left)->written;
	const struct timespec *b = &((const struct entry *)right)->written;

	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return a->tv_nsec < b->tv_nsec ? -1 : a->tv_nsec > b->tv_nsec;
}

static bool is_too_much(const struct store_size *size)
{
	return size->files > STORE_COUNT_MAX || size->bytes > STORE_TOTAL_MAX;
}

static void take_away(const struct store *store, const struct entry *entry,
		      struct store_size *total)
{
	if (unlinkat(store->dir, entry->name, 0) != 0)
		return;
	total->files--;
	total->bytes -= entry->size;
}

/* `kept` was written just now. */
static void trim(const struct store *store, const char *kept)
{
	struct arena scratch = {0};
	struct listing all;
	int64_t now_s = store_now_ns(store) / INT64_C(1000000000);

	list(store, &scratch, &all);
	if (all.entries.count)
		qsort(all.entries.at, all.entries.count, sizeof all.entries.at[0], compare_age);
	for (size_t i = 0; i < all.entries.count; i++) {
		const struct entry *entry = &all.entries.at[i];
		bool left_over = entry->kind == BEING_WRITTEN &&
				 now_s - entry->written.tv_sec > UNFINISHED_S;

		if (left_over || (entry->kind == WHOLE && is_too_much(&all.total) &&
				  strcmp(entry->name, kept) != 0))
			take_away(store, entry, &all.total);
	}
	arena_free(&scratch);
}

/* ---- Writing ---- */

void store_file_begin(const struct store *store, struct store_file *file)
{
	uint64_t chance;

	file->fd = -1;
	if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
		return;
	signal(SIGXFSZ, SIG_IGN); /* `ulimit -f` is a write error like any other */
	snprintf(file->unfinished, sizeof file->unfinished, "%016llx" UNFINISHED,
		 (unsigned long long)chance);
	file->fd = openat(store->dir, file->unfinished,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

bool store_file_put(struct store_file *file, uint64_t off, struct bytes contents)
{
	while (contents.len) {
		ssize_t put = pwrite(file->fd, contents.at, contents.len, (off_t)off);

		if (put < 0 && errno != EINTR)
			return false;
		off += put > 0 ? (uint64_t)put : 0;
		contents = bytes_from(contents, put > 0 ? (uint64_t)put : 0);
	}
	return true;
}

void store_file_drop(const struct store *store, struct store_file *file)
{
	if (file->fd < 0)
		return;
	close(file->fd);
	unlinkat(store->dir, file->unfinished, 0);
	file->fd = -1;
}

/* No fsync: what a crash leaves is found out by who reads it. */
bool store_file_finish(const struct store *store, struct store_file *file, const char *name)
{
	bool ok;

	if (file->fd < 0)
		return false;
	ok = close(file->fd) == 0 && kind_of(name) == WHOLE &&
	     renameat(store->dir, file->unfinished, store->dir, name) == 0;
	file->fd = -1;
	if (ok)
		trim(store, name);
	else
		unlinkat(store->dir, file->unfinished, 0);
	return ok;
}

bool store_write(const struct store *store, const char *name, struct bytes contents)
{
	struct store_file file;

	if (contents.len > STORE_FILE_MAX || kind_of(name) != WHOLE)
		return false;
	store_file_begin(store, &file);
	if (file.fd < 0)
		return false;
	if (store_file_put(&file, 0, contents))
		return store_file_finish(store, &file, name);
	store_file_drop(store, &file);
	return false;
}

int store_file_open(const struct store *store, const char *name, uint64_t *size)
{
	struct stat st;
	int fd = file_open_at(store->dir, name, true, &st);

	*size = fd >= 0 ? (uint64_t)st.st_size : 0;
	if (fd < 0 || (is_ours(&st) && *size <= STORE_PIECES_MAX))
		return fd;
	close(fd);
	return -1;
}

void store_remove(const struct store *store, const char *name)
{
	if (kind_of(name) == WHOLE)
		unlinkat(store->dir, name, 0);
}

/* ---- Looking after it ---- */

struct store_size store_measure(const struct store *store)
{
	struct arena scratch = {0};
	struct listing all;

	list(store, &scratch, &all);
	arena_free(&scratch);
	return all.total;
}

struct store_size store_clear(const struct store *store)
{
	struct arena scratch = {0};
	struct store_size before, left;
	struct listing all;

	list(store, &scratch, &all);
	before = left = all.total;
	for (size_t i = 0; i < all.entries.count; i++)
		take_away(store, &all.entries.at[i], &left);
	arena_free(&scratch);
	return (struct store_size){before.files - left.files, before.bytes - left.bytes};
}
