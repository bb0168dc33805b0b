#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list args;

	if (!e)
		return false;
	e->kind = kind;
	va_start(args, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, args);
	va_end(args);
	return false;
}

bool err_within(struct err *e, const char *fmt, ...)
{
	char inner[sizeof e->text];
	va_list args;
	size_t used;

	if (!e)
		return false;
	memcpy(inner, e->text, sizeof inner);
	va_start(args, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, args);
	va_end(args);
	used = strlen(e->text);
	snprintf(e->text + used, sizeof e->text - used, ": %s", inner);
	return false;
}

enum err_kind err_kind_of(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
	case ESRCH:
		return ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
		return ERR_PERMISSION;
	default:
		return ERR_SYSTEM;
	}
}
