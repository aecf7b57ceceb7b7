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

struct tp_collector {
    const char *name;
    uint32_t activity; /* 1 << enum tp_activity */
    /* What can be had here. -errno with error set: nothing at all. Notes on parts that are missing go to the log. */
    int (*attach)(const struct tp_settings *settings, struct tp_error *error);
    int (*observe)(enum tp_observe what);
    /* At the end of the program, on its thread: says what the program did to us meanwhile. */
    void (*check)(void);
    /* What is observed, and how, in a few words ("PyTorch 2.13.0 by callbacks"). */
    const char *(*describe)(void);
};

#endif
