/*
 * clock.h: time stamps that cost next to nothing in hooks, and what they are in nanoseconds, later.
 *
 * A tick is one of the cycle counter where the kernel itself keeps time by it (clocksource "tsc": invariant and in step on
 * all cores), else one nanosecond of CLOCK_MONOTONIC. Ticks never fall between threads by more than the counter's own skew.
 *
 * Threads: init once at attach; the rest anywhere.
 */
#ifndef TP_CLOCK_H
#define TP_CLOCK_H

#include "base.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* The same moment in three clocks. */
struct tp_clock_pair {
    uint64_t ticks, monotonic_ns, realtime_ns;
};

/* Ticks to nanoseconds since the epoch: a line through two pairs. */
struct tp_clock_map {
    struct tp_clock_pair begin;
    uint64_t ns_per_tick; /* fixed point, TP_CLOCK_SHIFT binary places */
};

#define TP_CLOCK_SHIFT 44

TP_INTERNAL extern bool tp_clock_is_tsc;

void tp_clock_init(void);
uint64_t tp_clock_now_syscall(void);

/* True: tp_clock_quick gives the time without a call. */
static inline bool tp_clock_is_quick(void)
{
#if defined(__x86_64__)
    return tp_clock_is_tsc;
#else
    return false;
#endif
}

static inline uint64_t tp_clock_quick(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    return 0;
#endif
}

static inline uint64_t tp_clock_now(void)
{
    return TP_LIKELY(tp_clock_is_quick()) ? tp_clock_quick() : tp_clock_now_syscall();
}

/* Reads the three clocks as close together as a few tries allow. */
struct tp_clock_pair tp_clock_pair_now(void);

/* The wall clock is taken from begin alone, so that a clock that is set meanwhile does not bend the trace. Pairs less than
 * a millisecond apart give the rate too coarsely; then the rate of all time since init is used. */
struct tp_clock_map tp_clock_map_between(const struct tp_clock_pair *begin, const struct tp_clock_pair *end);

uint64_t tp_clock_ns(const struct tp_clock_map *map, uint64_t ticks);

double tp_clock_ticks_per_ns(const struct tp_clock_map *map);

#endif
