/*
 * worker.h: the second background thread, of low priority: writes whole cycles, so that taking never waits for writing.
 */
#ifndef TP_WORKER_H
#define TP_WORKER_H

#include "base.h"

int tp_worker_start(void);
void tp_worker_wake(void);
/* Writes what is whole, then ends. Returns when it has; called by the drain. */
void tp_worker_finish(void);
uint64_t tp_worker_cpu_ns(void);
void tp_worker_forget(void);

/* A thread of ours: all signals blocked, a small stack, a name, never recorded. */
int tp_thread_of_ours(void *(*body)(void *), const char *name, size_t stack_bytes, void *ret_pthread);

#endif
