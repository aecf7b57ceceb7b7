/*
 * trace_table.h: the rows of torch's table from a Chrome trace, whoever wrote it: what key_averages() makes of the same
 * events. One pass over the file, in memory far smaller than it (spans.h); the tree is built when all is read.
 *
 * As torch (torch/autograd/profiler.py, _parse_kineto_results; profiler_util.py, EventList):
 *   - Per thread an event lies inside the one before it that is still open, if it ends no later than that. Self time is
 *     what the events directly inside leave, and may be negative. An only child of its parent's name is one with it.
 *   - Times of kernels are those of the operator that started them (External id), and of all operators around it. A call
 *     of the CUDA runtime lies where that operator does; without one, apart from the operators of its thread.
 *   - Memory of an event is what was allocated and freed, on any thread, between its begin and its end; what lies in no
 *     event has a row of its own, [memory].
 *   - A backward event has the stack of the forward one.
 * Whether an event is one with its parent is known when all inside it is read; so for single events the tree is built
 * twice.
 * What differs: sums are exact (torch adds doubles); a file does not tell torch's thread numbers, so the stack of a
 * backward event is found by its sequence number, and by the forward thread that other numbers have shown.
 */
#ifndef TP_TRACE_TABLE_H
#define TP_TRACE_TABLE_H

#include "averages.h"
#include "flops.h"
#include "function_event.h"
#include "trace_in.h"

struct tp_trace_table_options {
    bool flops_given;              /* else torch's, if the file says that they were recorded */
    enum tp_flops_formulas flops;
    bool by_shapes;                /* a row for each name and shapes of inputs */
    unsigned by_stack;             /* and for each innermost frames of the stack: how many; 0: not */
    bool python_functions;         /* with rows for Python functions */
    /* Single events in place of rows: given one by one at the end, thread by thread, those of devices and what memory
     * no event claims behind them. Numbers (id) are those of the events in the file. */
    void (*function)(void *context, const struct tp_function_event *event);
    void *context;
};

struct tp_trace_table_facts {
    uint64_t events;        /* that count in the table, or were merged into their parent */
    uint64_t other_events;  /* of the kinds that have a duration, but are none of PyTorch's */
    const char *device;     /* "CUDA"; NULL: nothing ran on a device */
    bool memory, flops;     /* were they recorded? */
};

struct tp_trace_table;

struct tp_trace_table *tp_trace_table_new(const struct tp_trace_table_options *options, struct tp_arena *arena);

/* Callbacks of trace_in.h; the context is the table. */
int tp_trace_table_event(void *table, const struct tp_trace_event *event);
int tp_trace_table_arg(void *table, const struct tp_trace_event *event, struct tp_json_in *json);
int tp_trace_table_member(void *table, const char *path, enum tp_json_token token, const struct tp_json_in *json);

/* What is wrong with the event at which tp_trace_table_event returned -EPROTO. The context again. */
const char *tp_trace_table_flaw(const void *table);

/* All is read: the rows, in the order of their first events. 0 or -ENOMEM. */
int tp_trace_table_end(struct tp_trace_table *table, const struct tp_averages **ret_averages,
                       struct tp_trace_table_facts *ret_facts);

#endif
