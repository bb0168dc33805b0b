/*
 * base/err: one failure, said once, where it is known.
 *
 * A function that can fail returns bool and takes a `struct err *e` last. It returns
 * `err_set(e, ...)` at the cause. A caller adds words with err_within() only where it knows
 * more than the callee did (the file's name, the section). Nobody but the command line prints.
 * `e` may be NULL where the caller does not want to know why.
 */
#ifndef STACKER_BASE_ERR_H
#define STACKER_BASE_ERR_H

#include <stdbool.h>

enum err_kind {
	ERR_NONE,
	ERR_SYSTEM,      /* a system call failed; the text names it and strerror */
	ERR_USAGE,       /* the command line is wrong */
	ERR_FORMAT,      /* a file is not what it should be: damaged, cut short, lying */
	ERR_NOT_FOUND,   /* process, thread, file or section is not there */
	ERR_PERMISSION,  /* not allowed; the text says the cure */
	ERR_BUSY,        /* already traced by somebody else */
	ERR_MISMATCH,    /* right kind of thing, wrong one: build-id, architecture */
	ERR_LIMIT,       /* larger than a named limit allows */
	ERR_UNSUPPORTED, /* a variant this program does not read */
	ERR_INTERRUPTED, /* the user asked us to end */
};

struct err {
	enum err_kind kind;
	char text[512]; /* one line, no final full stop, no newline */
};

/* Records the failure (formatted as by printf; cut at the size of `text`). Always returns false. */
bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "WORDS: " before the text that is there. Always returns false. */
bool err_within(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Of which kind a system call's errno is. */
enum err_kind err_kind_of(int number);

#endif
