/*
 * spans.h: time ranges of threads, kept in about ten bytes each, and given back thread by thread in the order that
 * torch's tables are built in: by begin, of equal begins the longer first, of equal ranges by their serial.
 *
 * Ranges may come in any order. Those that come in order, as in the files of profilers, are written as they come, each
 * as what differs from the one before. Others wait until there are many, are sorted, and become a run of their own;
 * the runs of a thread are merged when they are read.
 */
#ifndef TP_SPANS_H
#define TP_SPANS_H

#include "../agent/arena.h"
#include "../agent/base.h"

struct tp_span {
    int64_t start_ns, end_ns; /* end_ns >= start_ns */
    uint64_t serial;          /* the caller's, rising as they are added */
    uint32_t label;           /* the caller's */
    uint64_t id;              /* the caller's; 0: none */
    /* Rare: they cost nothing where all of them are 0. */
    uint64_t flops;
    int64_t bytes, device_bytes;
    uint32_t stack;
    uint64_t sequence, forward_thread;
};

struct tp_spans;
struct tp_spans_reader;

struct tp_spans *tp_spans_new(struct tp_arena *arena); /* NULL: out of memory */

/* Threads are numbers from 0 on, without gaps. 0 or -ENOMEM. */
int tp_spans_add(struct tp_spans *spans, uint32_t thread, const struct tp_span *span);
/* No more will be added. 0 or -ENOMEM. */
int tp_spans_end(struct tp_spans *spans);

uint32_t tp_spans_threads(const struct tp_spans *spans);
uint64_t tp_spans_count(const struct tp_spans *spans);

/* After the end. A reader may be opened again for another thread: it takes the place of the one before. */
struct tp_spans_reader *tp_spans_reader_new(struct tp_arena *arena); /* NULL: out of memory */
int tp_spans_open(struct tp_spans_reader *reader, const struct tp_spans *spans, uint32_t thread); /* 0 or -ENOMEM */
bool tp_spans_next(struct tp_spans_reader *reader, struct tp_span *ret);

#endif
