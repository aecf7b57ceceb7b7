/*
 * averages.h: events summed up by name, as torch's key_averages(): a row has a name, whether it is a user annotation
 * (an operator of the same name is another row), how often, total and self CPU time; those of a file have more, and
 * trace_table.h fills them. Rows stand in the order of their first appearance. `ProfilerStep#N` is one row,
 * `ProfilerStep*`; what torch leaves out of its tables is left out.
 * (Source: torch/autograd/profiler_util.py, EventList.key_averages; torch/autograd/profiler.py, _parse_kineto_results.)
 *
 * The steps of a cycle are a row too. Their self time is what no range of their thread covers: it is the step's time
 * less the self times of all ranges inside it, so no tree is needed. A range around whole steps loses their self time.
 *
 * An only child of a parent of the same name counts as one with it, as in torch (families.h).
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

/* What a row is a sum of. The in-process report knows names and annotations alone; tables of files know the rest. */
struct tp_average_key {
    const char *name;
    const char *shapes; /* where rows are grouped by them: as Python prints them */
    const char *stack;  /* where rows are grouped by it: frames, the innermost first, each followed by ';' */
    uint32_t name_bytes, shapes_bytes, stack_bytes;
    bool annotation; /* a user annotation */
    bool device;     /* ran on a device; else on a CPU */
    bool python;     /* a Python function, where these are apart from operators of the same name */
};

struct tp_average {
    const char *name; /* NUL-terminated */
    const char *shapes, *stack;
    uint32_t name_bytes, shapes_bytes, stack_bytes;
    bool annotation, device, python;
    bool async;  /* the first event was asynchronous: torch then prints 0 for its share of the total */
    bool nested; /* the first event lay inside another one */
    uint64_t hash;
    uint64_t name_hash; /* equal for rows of equal names */
    /* The first event: rows are arranged by it. */
    int64_t first_start_ns, first_end_ns;
    uint64_t first_serial;
    uint64_t count, flops;
    int64_t total_ns, self_ns; /* on the CPU */
    int64_t device_total_ns, device_self_ns;
    int64_t memory, memory_self; /* bytes, of the CPU and */
    int64_t device_memory, device_memory_self;
};

/* Names that torch's tables and events leave out. */
bool tp_averages_leave_out(const char *name, size_t bytes);

struct tp_averages;

/* NULL: out of memory. At most max_rows (0: TP_AVERAGES_MAX_ROWS) besides the row of the others, and as many bytes of
 * names for each as TP_AVERAGES_MAX_ROWS have. */
struct tp_averages *tp_averages_new(struct tp_arena *arena, size_t max_rows);

/* The same, with the steps of the report as a row to come. The report must stay as it is until end. */
struct tp_averages *tp_averages_begin(const struct tp_cycle_report *report, struct tp_arena *arena);
int tp_averages_segment(struct tp_averages *averages, const struct tp_event *events, size_t count);
/* No row can be found by key after it. */
int tp_averages_end(struct tp_averages *averages);

/* The number of the row, made if it is new and there is room for it; or -ENOMEM. */
int64_t tp_averages_row_of(struct tp_averages *averages, const struct tp_average_key *key);
/* To be added to. */
struct tp_average *tp_averages_at(struct tp_averages *averages, size_t row);
/* Forgets the rows without an event, and arranges the others by their first event: the earlier, of equal begins the
 * longer, then the smaller serial. Numbers of rows change; no row can be made or found by key after it. */
void tp_averages_arrange(struct tp_averages *averages);

/* Adds the rows of one that has ended. 0 or -ENOMEM. */
int tp_averages_merge(struct tp_averages *into, const struct tp_averages *from);

/* Rows 0, 1, ...; the row of the others, if there is one, is among them. */
size_t tp_averages_count(const struct tp_averages *averages);
const struct tp_average *tp_averages_row(const struct tp_averages *averages, size_t row);
/* How many events went into the row of the others. */
uint64_t tp_averages_others(const struct tp_averages *averages);

#endif
