/*
 * base/inside: what a path leads to for somebody who has another root directory.
 *
 * `root` is a descriptor of that root. Absolute symbolic links begin there, `..` does not leave
 * it, and links that the kernel makes (those of /proc) are no shortcut. Answers are O_PATH
 * descriptors: nothing is opened yet; -1 with errno. The last component is followed unless
 * `nofollow`.
 */
#ifndef STACKER_BASE_INSIDE_H
#define STACKER_BASE_INSIDE_H

#include <stdbool.h>

/* By openat2(2) (Linux 5.6); where that is missing or refused, by inside_walk. */
int inside_open(int root, const char *path, bool nofollow);

/* Component by component. */
int inside_walk(int root, const char *path, bool nofollow);

#endif
