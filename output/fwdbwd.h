/*
 * fwdbwd.h: which forward operator a backward operator belongs to, as torch.profiler links them (collection.cpp,
 * generateForwardBackwardLinks): the key is the forward's logical thread and the sequence number; among the forwards
 * of one key the one with the latest start counts; the first backward operator of that key to end takes it; links are
 * numbered from 1 in the order in which backward operators end.
 *
 * A stream: forwards wait in a table of fixed size. A set that is full lets its oldest forward go: one whose backward
 * has not come while some hundred thousand younger ones were seen. Ranges that end on another thread take no part.
 */
#ifndef TP_FWDBWD_H
#define TP_FWDBWD_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "model.h"

struct tp_fwdbwd_forward {
    uint64_t thread; /* logical; 0: the place is free */
    int64_t sequence;
    uint64_t start_ns;
    uint32_t os_id;
};

struct tp_fwdbwd {
    struct tp_arena *arena;
    struct tp_fwdbwd_forward *table;
    size_t sets; /* a power of two */
    uint64_t links;
    const struct tp_event **backwards; /* of the segment at hand */
    size_t capacity;
};

/* Called for each link; forward is valid during the call. */
typedef void tp_fwdbwd_link(void *context, uint64_t id, const struct tp_fwdbwd_forward *forward,
                            const struct tp_event *backward);

/* 0 or -ENOMEM. */
int tp_fwdbwd_init(struct tp_fwdbwd *flow, struct tp_arena *arena);
int tp_fwdbwd_segment(struct tp_fwdbwd *flow, const struct tp_event *events, size_t count, tp_fwdbwd_link *link,
                      void *context);

#endif
