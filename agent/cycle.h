/*
 * cycle.h: one recording window, from the moment at which it opens until its files are written; and the queue of them.
 *
 *     session opens --> the drain keeps blocks for it --> session closes --> the drain has all of it --> worker writes --> drain removes
 *
 * Windows are times, not moments in the code: a hook that is late by a few records does no harm, and a window may be
 * opened or cut in the past while its records are still in the log (steps.h decides late).
 *
 * Threads: the session writes a cycle until it is closed (under the session's lock); from then on it is const, but for the
 * fields marked "drain". The queue's lock protects the links and the state; it nests in the session's lock.
 */
#ifndef TP_CYCLE_H
#define TP_CYCLE_H

#include "base.h"
#include "clock.h"
#include "steps.h"

/* An edge inside a window: step `number` ended here. */
struct tp_cycle_edge {
    uint64_t time, number;
    uint64_t thread; /* serial */
    uint32_t os_thread;
    enum tp_step_kind kind;
};

#define TP_CYCLE_INLINE_EDGES 8
#define TP_CYCLE_MAX_EDGES 65536

enum tp_cycle_state {
    TP_CYCLE_UNUSED, /* no cycle */
    TP_CYCLE_OPEN,
    TP_CYCLE_CLOSED, /* its end is known; blocks may still be on their way */
    TP_CYCLE_WHOLE,  /* all its blocks are in the log: the worker's */
    TP_CYCLE_WRITTEN, /* the worker is done with it */
};

struct tp_cycle {
    struct tp_cycle *next;
    enum tp_cycle_state state;
    uint64_t begin, end;   /* ticks; end is UINT64_MAX while open */
    uint64_t keep_from;    /* where the window may be cut to later (tp_cycle_may_cut); normally begin */
    bool provisional;      /* open only because it is not known yet which marks are steps */
    bool save;             /* false: its records are let go unseen */
    uint64_t number;       /* of the saved cycles: 0, 1, ... */
    bool partial;          /* the program ended before the schedule did */
    bool steps_by_program; /* edges came from the program's own profiler */
    uint64_t first_step;   /* number of the step in which the window begins */
    struct tp_clock_pair clock_begin, clock_end;
    /* Edges with begin < time <= end, in order. */
    struct tp_cycle_edge *edges, inline_edges[TP_CYCLE_INLINE_EDGES];
    size_t edge_count, edge_capacity;
    uint64_t edges_dropped; /* older ones, beyond TP_CYCLE_MAX_EDGES */
    uint32_t written; /* worker: files that are there; a bit for each writer of output/delivery.c */
    /* drain */
    uint64_t log_begin, log_end; /* where its blocks lie (others may lie between) */
    bool log_begun;
    uint64_t dropped;            /* begins in the window that were let go because the log was full */
    uint64_t dropped_kept;       /* of them, those from keep_from on */
    uint64_t untold;             /* begins that found no free chunk and of which no record tells */
    uint64_t dropped_until;      /* the newest time among them; 0: none */
};

/* Memory that outlives the process, zeroed, for the first cycles (spool.h); more of them lie elsewhere. NULL: none. Before
 * the first open. */
void tp_cycles_use(struct tp_cycle *objects, size_t count);

/* NULL when memory is out: that window is not recorded. Pushed at the end of the queue. */
struct tp_cycle *tp_cycle_open(uint64_t begin);
void tp_cycle_add_edge(struct tp_cycle *cycle, const struct tp_cycle_edge *edge);
/* From now on the window may be cut to begin here: what is older is let go first, and is then not counted as lost. */
void tp_cycle_may_cut(struct tp_cycle *cycle, uint64_t begin);
/* The window begins there: forgets edges up to that time. */
void tp_cycle_cut(struct tp_cycle *cycle, uint64_t begin);
void tp_cycle_close(struct tp_cycle *cycle, uint64_t end, bool save);

/* Drain: walks the queue; NULL after the last. The links are stable for the drain, which alone removes cycles. */
struct tp_cycle *tp_cycle_first(void);
struct tp_cycle *tp_cycle_after(const struct tp_cycle *cycle);
enum tp_cycle_state tp_cycle_state(const struct tp_cycle *cycle);
void tp_cycle_window(const struct tp_cycle *cycle, uint64_t *ret_begin, uint64_t *ret_end);

/* Where the window would begin if it were cut now; its begin, unless it may be. */
uint64_t tp_cycle_kept_from(const struct tp_cycle *cycle);
void tp_cycle_set_state(struct tp_cycle *cycle, enum tp_cycle_state state);
/* count begins were let go, until is the newest time among them (0: they were not the oldest ones). */
void tp_cycle_dropped(struct tp_cycle *cycle, uint64_t count, uint64_t count_kept, uint64_t until);
void tp_cycle_remove(struct tp_cycle *cycle);

/* Worker: the oldest cycle that is not written yet, if it is whole; else NULL. */
struct tp_cycle *tp_cycle_next_whole(void);

/* In a forked child: the parent's cycles are gone. */
void tp_cycles_forget(void);

#endif
