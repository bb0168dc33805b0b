/*
 * process/still: files of which every byte can be had at once.
 *
 * Behind a FUSE file system stands a process that may stop answering at any time, also between
 * two pages of a file that is mapped already, and then nothing ends who reads it. So the process
 * that can be left behind reads the file, and the others get the copy.
 */
#ifndef STACKER_PROCESS_STILL_H
#define STACKER_PROCESS_STILL_H

/* Larger files stay where they are: a copy would take too much memory. */
#define STILL_MAX (256L << 20)

/* fd, or instead of it (closed then) a copy of its file in memory, where that is of such a file
 * system. -1 with errno when it cannot be read. */
int still_file(int fd);

#endif
