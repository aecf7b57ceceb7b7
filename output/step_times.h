/*
 * step_times.h: the times of all steps of the process, recorded or not. Every step is kept up to a number; beyond it,
 * or when memory is out, count, sum and extremes go on, and median and percentile come from a histogram (within 2 %).
 *
 * A step is 16 bytes, kept in the clock's own ticks: the rate is known best at the end.
 *
 * Threads: one at a time (the caller's lock); add asks the kernel for memory once in 4096 steps and never uses the
 * heap.
 */
#ifndef TP_STEP_TIMES_H
#define TP_STEP_TIMES_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "../agent/clock.h"
#include "../agent/steps.h"

#define TP_STEP_TIMES_MAX 1000000
#define TP_STEP_KIND_COUNT 4 /* of enum tp_step_kind */

struct tp_step_chunk;

struct tp_step_sums {
    uint64_t count, kept, total, first, least, most; /* ticks */
    uint64_t *histogram;                             /* NULL: no memory */
};

struct tp_step_times {
    struct tp_arena *arena;
    struct tp_step_chunk *chunks, *last;
    uint64_t max, count, kept;
    struct tp_step_sums kinds[TP_STEP_KIND_COUNT];
};

/* max 0: TP_STEP_TIMES_MAX. */
void tp_step_times_init(struct tp_step_times *times, struct tp_arena *arena, uint64_t max);
void tp_step_times_add(struct tp_step_times *times, uint64_t number, uint64_t begin, uint64_t end,
                       enum tp_step_kind kind);

struct tp_step_time {
    uint64_t number, begin, end; /* ticks */
    enum tp_step_kind kind;
};

/* Walks the kept steps in their order. Begin with a zeroed cursor. False at the end. */
struct tp_step_cursor {
    const struct tp_step_chunk *chunk;
    size_t at;
    bool begun;
};
bool tp_step_times_next(const struct tp_step_times *times, struct tp_step_cursor *cursor, struct tp_step_time *ret);

struct tp_step_statistics {
    uint64_t count;
    uint64_t first_ns, mean_ns, median_ns, p95_ns, min_ns, max_ns; /* p95: the smallest that 95 % do not exceed */
    bool estimated; /* median and p95 come from the histogram */
    bool unknown;   /* there was no memory for that either: both are 0 */
};

/* Of one kind. False: there was no such step. scratch is used for 8 bytes a step. map NULL: a tick is a nanosecond. */
bool tp_step_times_statistics(const struct tp_step_times *times, enum tp_step_kind kind, const struct tp_clock_map *map,
                              struct tp_arena *scratch, struct tp_step_statistics *ret);

/* "training", "batch", "time", "whole" */
const char *tp_step_kind_name(enum tp_step_kind kind);

#endif
