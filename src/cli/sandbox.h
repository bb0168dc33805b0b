/*
 * cli/sandbox: from here on this program only reads files, computes and writes its output.
 *
 * Reading debug information is where hostile files meet the most code. Before it begins, the kernel
 * is asked to refuse whatever that work never needs: other programs, sockets, other processes,
 * executable memory (seccomp: a list of the system calls that remain), and writing anywhere but in
 * the directories named (Landlock, Linux 5.13). What the kernel does not have is left out: this is
 * a second wall, not the first.
 */
#ifndef STACKER_CLI_SANDBOX_H
#define STACKER_CLI_SANDBOX_H

/* For the calling thread and those it makes. `writable` are directories in which files may be made,
 * written, renamed and removed; NULL-terminated. What is open already stays usable. There is no way
 * back. */
void sandbox_enter(const char *const *writable);

#endif
