/*
 * step_slices.h: where the slice of a training step is drawn, so that it nests strictly with the ranges of the thread
 * that made its marks. The marks may lie inside other ranges: a user range around everything, an operator around an
 * edge. Viewers reject slices that overlap without nesting.
 *
 * A step is drawn from its first edge to its last, except for a range R on that thread with an edge inside:
 *   - one edge inside R: the edge is drawn at R's end (of the longest such R);
 *   - two or more: the step in which R starts is drawn from R's start on, the step in which R ends from R's end on, and
 *     the whole steps between them nest in R.
 * Then an edge is moved by a few nanoseconds, so that a step's stamps stand apart from those of the ranges beside it
 * and of its neighbour. Where the thread's stamps leave no room, or a long range comes after those inside it, a
 * step's end may equal the end of the range before it, or its start that of the longer range around it; it is written
 * later, which readers take for inside.
 *
 * A stream: every range is seen once, in any order; memory goes with the number of steps. Only what is drawn is
 * moved; the true times are elsewhere (tprof object of the trace, summary.json).
 */
#ifndef TP_STEP_SLICES_H
#define TP_STEP_SLICES_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "writer.h"

struct tp_step_edge_place;
struct tp_step_place;

struct tp_step_thread {
    uint64_t serial;
    struct tp_step_edge_place *edges; /* rising */
    size_t edge_count;
    size_t near; /* the interval that the last range lay in */
};

struct tp_step_slices {
    struct tp_step_thread *threads;
    size_t thread_count;
    struct tp_step_place *steps;
    size_t step_count;
};

/* Steps in the order of their time; they are clipped to the window. 0 or -ENOMEM. */
int tp_step_slices_init(struct tp_step_slices *slices, const struct tp_step_span *steps, size_t count,
                        uint64_t window_begin_ns, uint64_t window_end_ns, struct tp_arena *arena);

/* The thread's part, NULL if it made no step; for a caller that keeps it. */
struct tp_step_thread *tp_step_slices_thread(struct tp_step_slices *slices, uint64_t serial);

/* A range of the thread, not one that ends on another. */
void tp_step_slices_see(struct tp_step_slices *slices, struct tp_step_thread *thread, uint64_t start_ns,
                        uint64_t end_ns);

/* After all ranges: where the step is drawn. False: there is not a nanosecond for it. */
bool tp_step_slices_get(const struct tp_step_slices *slices, size_t step, uint64_t *ret_start_ns, uint64_t *ret_end_ns);

#endif
