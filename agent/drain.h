/*
 * drain.h: the background thread. It takes what threads recorded, keeps what a window wants (blocks in the log), lets the
 * rest go, keeps memory ready ahead of need, and hands whole cycles to the worker. All signals are blocked on it, and it
 * uses neither the job's heap nor its locks.
 *
 * It looks every 1 to 5 ms while records come, and sleeps while nothing is recorded: hooks never wake it.
 */
#ifndef TP_DRAIN_H
#define TP_DRAIN_H

#include "base.h"

int tp_drain_start(void); /* drain and worker; -errno */

/* Something changed: a cycle was closed, recording began. Any thread, also a signal handler. */
void tp_drain_wake(void);

/* Asks for the end: last transitions, all files, the report. Async-signal-safe. */
void tp_drain_ask_finish(const char *how);

/* Waits for it, at most that long. True when done. Async-signal-safe. */
bool tp_drain_wait_finished(uint64_t limit_ms);

/* At exit, once finished: the thread is gone too. Not in a signal handler. */
void tp_drain_join(void);

void tp_drain_forget(void); /* in a forked child: there is no such thread */

struct tp_drain_cost {
    uint64_t drain_cpu_ns, worker_cpu_ns;
    uint64_t records_taken_bytes;
};
void tp_drain_get_cost(struct tp_drain_cost *ret_cost);

#endif
