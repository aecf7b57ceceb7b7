/*
 * critical.h: stretches in which a thread of the program holds a lock of ours. A signal that ends the process is put off
 * until the stretch is over: its handler waits for our threads, which may need that lock.
 */
#ifndef TP_CRITICAL_H
#define TP_CRITICAL_H

#include <signal.h>

#include "base.h"

struct tp_critical {
    volatile sig_atomic_t depth;
    volatile sig_atomic_t signal; /* that came meanwhile; 0: none */
};

extern __thread struct tp_critical tp_critical __attribute__((tls_model("initial-exec")));

static inline void tp_critical_begin(void)
{
    tp_critical.depth++;
    __asm__ volatile("" ::: "memory"); /* against the compiler only: the handler runs on this thread */
}

/* Raises what was put off. */
void tp_critical_end(void);

#endif
