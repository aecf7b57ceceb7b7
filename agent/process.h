/*
 * process.h: the ways into and out of a process: fork, exit, _exit, exec, SIGTERM, SIGINT.
 *
 * Whatever way it takes, the drain does the work (tp_drain_ask_finish) and the thread that leaves waits: so no way needs
 * the heap, a lock of the job, or more than what is async-signal-safe.
 *
 * A signal that would end the process (SIGTERM, SIGINT while their disposition is the default one) is caught, the files are
 * written, and the process ends by that signal. interpose/signal.c hides the handler from the program.
 */
#ifndef TP_PROCESS_H
#define TP_PROCESS_H

#include <signal.h>

#include "base.h"

/* libc's own sigaction; set by the interposer, whose name it has taken. NULL: signals are left alone. */
extern int (*tp_process_real_sigaction)(int, const struct sigaction *, struct sigaction *);

/* Exit and fork handlers; once, before attach: without them nothing would be written. -ENOMEM. */
int tp_process_init(void);

/* Once attached. */
void tp_process_catch_signals(void);

/* True for a signal that we catch while it is at its default, once attached. */
bool tp_process_catches(int signal_number);
bool tp_process_is_our_handler(const struct sigaction *action);
void tp_process_our_action(struct sigaction *ret_action);

/* False also in a child of vfork or a raw clone. Async-signal-safe. */
bool tp_process_is_recorded(void);

/* The process is about to leave without exit handlers (_exit, exec). Returns at once in a child of vfork and where there is
 * nothing to do. Async-signal-safe. */
void tp_process_leave(const char *how);

#endif
