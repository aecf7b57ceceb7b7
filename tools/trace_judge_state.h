/* trace_judge_state.h: what trace_judge.c gathers and trace_verdict.c judges; nobody else's. */
#ifndef TP_TRACE_JUDGE_STATE_H
#define TP_TRACE_JUDGE_STATE_H

#include "trace_judge.h"
#include "trace_names.h"

/* What a slice tells of: recorded apart from the others, by different means. */
enum layer { LAYER_OTHER, LAYER_OPERATORS, LAYER_PYTHON, LAYER_CALLS, LAYER_DEVICE, LAYER_OVERHEAD, LAYER_MEMORY };

struct slice {
    int64_t start_ns, duration_ns;
    uint64_t offset : 56, layer : 8;
    uint32_t event, name;
};

struct open_slice {
    int64_t start_ns;
    uint64_t offset;
    uint32_t event, name;
};

struct row {
    uint64_t key;
    bool judged_window; /* its slices have to lie inside the record window */
    char *pid, *tid;
    struct slice *slices;
    size_t count, capacity;
    struct open_slice *open; /* of B, waiting for their E */
    size_t open_count, open_capacity;
};

struct flow_event {
    uint64_t key; /* of cat and id */
    int64_t ns;
    uint64_t offset;
    uint32_t event, row, name;
    char phase; /* s, t or f */
    bool encloses, fwdbwd;
    bool to_device; /* from a call to the device's work */
};

/* The begin or end of something that is on no row. */
struct async_event {
    uint64_t key; /* of cat and id */
    int64_t ns;
    uint64_t offset;
    uint32_t event, name;
    bool is_end;
};

/* A call, or a piece of the device's work that it asked for. */
struct work {
    int64_t correlation, ns;
    uint64_t process, offset;
    uint32_t event, name;
    bool is_device;
};

struct step {
    uint64_t process;
    int64_t ns, end_ns;
    uint64_t number, offset;
    int64_t index; /* Ev Idx, or -1 */
    uint32_t event;
};

/* A set of integers: pages of bits, found by hash. */
#define PAGE_BITS 4096
struct page {
    uint64_t number;
    uint64_t bits[PAGE_BITS / 64];
};

struct judge {
    struct findings *findings;
    struct row *rows;
    size_t row_count, row_capacity;
    uint32_t *row_slots;
    size_t row_slot_count;
    struct flow_event *flows;
    size_t flow_count, flow_capacity;
    struct async_event *asyncs;
    size_t async_count, async_capacity;
    struct work *works;
    size_t work_count, work_capacity;
    struct step *steps;
    size_t step_count, step_capacity;
    struct trace_names names;
    struct page **pages;
    size_t page_count, page_slots;
    uint64_t slices, recorded, unfinished; /* recorded: cpu_op and user_annotation */
    bool has_fine_times; /* some time is no whole microsecond */
    bool has_schema, has_start; /* members that an execution trace has */
    /* The window. */
    bool has_begin, has_end, several_ends;
    int64_t begin_ns, end_ns;
    /* Of the tprof object. */
    bool has_kept, has_lost, has_all, has_shown, has_unfinished;
    int64_t kept, lost, all, shown, said_unfinished;
};

#endif
