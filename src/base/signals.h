/*
 * base/signals: the signals by which somebody asks the program to end, where it must end in an order of
 * its own: threads are released first, files removed, programs that it runs ended.
 */
#ifndef STACKER_BASE_SIGNALS_H
#define STACKER_BASE_SIGNALS_H

#include <signal.h>

/* SIGINT, SIGTERM, SIGHUP and SIGQUIT, without those that are ignored (nohup, background jobs). A signal
 * that is blocked is kept even where it is ignored, so only these may be waited for. */
sigset_t signals_that_end(void);

/* Until stdout_pipe_may_end_us, a write to a pipe that nobody reads any more is an error like
 * any other. From then on it ends the program without a word, as it ends others (`| head`); for
 * when no process is held and no file is half written. Where it was ignored all along, it stays
 * so. */
void stdout_pipe_guard(void);
void stdout_pipe_may_end_us(void);

#endif
