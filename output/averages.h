/*
 * averages.h: events summed up by name, as torch's key_averages(): a row has a name, whether it is a user annotation
 * (an operator of the same name is another row), how often, total and self CPU time. Rows stand in the order of their
 * first appearance. `ProfilerStep#N` is one row, `ProfilerStep*`; what torch leaves out of its tables is left out.
 * (Source: torch/autograd/profiler_util.py, EventList.key_averages; torch/autograd/profiler.py, _parse_kineto_results.)
 *
 * The steps of a cycle are a row too. Their self time is what no range of their thread covers: it is the step's time
 * less the self times of all ranges inside it, so no tree is needed. A range around whole steps loses their self time.
 *
 * torch also merges an only child into a parent of the same name (profiler_util.py, _remove_dup_nodes); here both
 * count.
 *
 * Bounded: beyond a number of rows, or of bytes of names, every other name goes into one row that says so.
 *
 * One instance takes the segments of one cycle, as a writer does, and is merged into that of the process.
 */
#ifndef TP_AVERAGES_H
#define TP_AVERAGES_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "writer.h"

#define TP_AVERAGES_MAX_ROWS 16384
#define TP_AVERAGES_MAX_NAME_BYTES (4u << 20)
#define TP_AVERAGES_OTHERS "(other names)"

struct tp_average {
    const char *name; /* NUL-terminated */
    uint32_t name_bytes;
    bool annotation; /* a user annotation */
    bool async;      /* the first event was asynchronous: torch then prints 0 for its share of the total */
    uint64_t hash;
    uint64_t count, total_ns, self_ns;
};

struct tp_averages;

/* NULL: out of memory. At most max_rows (0: TP_AVERAGES_MAX_ROWS) besides the row of the others. */
struct tp_averages *tp_averages_new(struct tp_arena *arena, size_t max_rows);

/* The same, with the steps of the report as a row to come. The report must stay as it is until end. */
struct tp_averages *tp_averages_begin(const struct tp_cycle_report *report, struct tp_arena *arena);
int tp_averages_segment(struct tp_averages *averages, const struct tp_event *events, size_t count);
int tp_averages_end(struct tp_averages *averages);

/* Adds the rows of one that has ended. 0 or -ENOMEM. */
int tp_averages_merge(struct tp_averages *into, const struct tp_averages *from);

/* Rows 0, 1, ...; the row of the others, if there is one, is among them. */
size_t tp_averages_count(const struct tp_averages *averages);
const struct tp_average *tp_averages_row(const struct tp_averages *averages, size_t row);
/* How many events went into the row of the others. */
uint64_t tp_averages_others(const struct tp_averages *averages);

#endif
