/*
 * collector.h: what a collector is to the session. The table of collectors stands in entry.c.
 *
 * Threads: attach is called once, when what it observes is loaded, on the thread that loaded it. observe is called under the
 * session's lock, by whichever thread caused the change; it must be quick and must not record or mark.
 */
#ifndef TP_COLLECTOR_H
#define TP_COLLECTOR_H

#include "base.h"
#include "error.h"
#include "settings.h"

enum tp_observe {
    TP_OBSERVE_NOTHING,
    TP_OBSERVE_MARKS,  /* what may end a step; nothing else costs the program anything */
    TP_OBSERVE_EVENTS, /* marks, and everything that is recorded */
};

/* What a collector does not have is NULL; attach is always there. */
struct tp_collector {
    const char *name;
    uint32_t activity; /* 1 << enum tp_activity */
    /* What can be had here. -errno with error set: nothing at all. Notes on parts that are missing go to the log. */
    int (*attach)(const struct tp_settings *settings, struct tp_error *error);
    int (*observe)(enum tp_observe what);
    /* A number for the place in the program where the calling thread is, the same whenever it is there; 0: not known. From
     * any thread at any time; no lock, no memory. */
    uint64_t (*place)(void);
    /* At the end of the program, on its thread: says what the program did to us meanwhile. */
    void (*check)(void);
    /* The version of what is observed ("2.13.0+cpu"); in which way ("callback"). */
    const char *(*version)(void);
    const char *(*way)(void);
};

#endif
