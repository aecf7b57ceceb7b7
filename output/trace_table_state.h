/*
 * trace_table_state.h: what the files of trace_table.h share; nobody else's.
 *
 *   trace_table.c         the rows, and what is done when all is read
 *   trace_table_args.c    what an event says in its args, and the file of itself
 *   trace_table_read.c    an event: its kind and thread, what is kept of it
 *   trace_table_links.c   kernels and calls of a runtime find the operators that they name
 *   trace_table_memory.c  what was allocated and freed during an event, and during none
 *   trace_table_stacks.c  backward events get the stacks of the forward ones
 *   trace_table_tree.c    events inside one another: self times
 *   trace_table_single.c  events one by one, in place of rows
 */
#ifndef TP_TRACE_TABLE_STATE_H
#define TP_TRACE_TABLE_STATE_H

#include "spans.h"
#include "strings.h"
#include "trace_table.h"

#define SHAPES_TEXT (64 * 1024)
/* Of two events with equal times, torch has those of memory last. */
#define SERIAL_MEMORY (UINT64_C(1) << 62)
#define SERIAL_OUT_OF_MEMORY (UINT64_C(1) << 63)
#define NUMBER_OF(serial) ((serial) & (SERIAL_MEMORY - 1)) /* of the event in the file */

enum kind {
    KIND_OTHER, /* none of PyTorch's */
    KIND_NO_EVENT,
    KIND_OPERATOR,
    KIND_ANNOTATION,
    KIND_PYTHON,
    KIND_RUNTIME,
    KIND_APART, /* on the CPU, on a thread of its own */
    KIND_DEVICE,
    KIND_DEVICE_UNLINKED, /* torch gives their times to no operator */
    KIND_DEVICE_ANNOTATION,
};

struct thread {
    uint64_t key;
    bool async; /* holds ranges that do not nest (tprof's traces say so in its name) */
    const char *tid; /* JSON */
};

/* An event that is over, as far as its row is concerned. */
struct part {
    int64_t start_ns, end_ns;
    uint64_t serial, flops;
    int64_t total_ns, inside_ns; /* inside: of the children */
    int64_t memory, memory_inside, device_memory, device_memory_inside;
    int64_t device_ns, device_inside_ns; /* of its own kernels, of the children's */
    uint32_t label, stack, children;
    bool nested, async;
};

/* One that is open. */
struct frame {
    struct part part;
    struct part only; /* its one child so far, which has its name and may be merged into it */
    bool has_only;
    bool backward; /* it, or one around it */
    uint32_t backward_stack;
    /* Of single events. */
    bool merged; /* with the one around it */
    struct tp_span span;
    struct tp_ids inside;
};

#define BOUND 64
struct binding {
    uint64_t forward_thread;
    uint32_t thread;
};

/* Of args of the event that is being read. */
struct arguments {
    uint64_t id;
    int64_t bytes, device_type;
    bool has_bytes, has_dims, has_types, async_thread;
    uint32_t stack;
    size_t inputs;
    struct tp_flops_input input[TP_FLOPS_INPUTS];
    uint32_t shapes_bytes;
};

struct tp_trace_table {
    struct tp_arena *arena;
    struct tp_trace_table_options options;
    struct tp_trace_table_facts facts;
    const char *flaw;
    struct arguments arguments;
    char *shapes; /* of the event, as Python prints them */
    bool with_flops;
    const char *device;
    bool ran_on_device, has_memory, has_device_memory;
    /* Labels are rows of their own: name, shapes and kind of an event. Without stacks they are the rows. */
    struct tp_averages *labels, *averages;
    int64_t label_out_of_memory;
    struct tp_strings *stacks;
    struct thread *threads;
    uint32_t *thread_slots; /* number + 1, open addressing */
    size_t thread_count, thread_capacity;
    uint32_t last_thread;
    struct tp_spans *spans, *allocations;
    struct tp_spans *launches; /* calls of a runtime that name an operator; their threads turn out at the end */
    struct kernels *kernels_first, *kernels_last;
    /* At the end. */
    struct linked *kernels;
    size_t kernel_count, kernel_near;
    /* By allocation, sorted by time: when, and the sums of all before it. NULL where all are zero. */
    int64_t *memory_at, *memory_sum, *device_memory_sum;
    size_t memory_count;
    unsigned char *claimed; /* a bit for each */
    struct frame *frames;
    size_t depth, frame_capacity;
    struct forward *forwards;
    size_t forward_slots, forward_count;
    struct binding bindings[BOUND];
    size_t binding_count;
    char *stack_text;
    /* Single events. */
    struct tp_spans *device_spans;
    bool gives_events; /* the second time that the tree is built */
    unsigned char *merged; /* by number in the file, a bit each */
    uint64_t number_most;
    uint32_t thread; /* of the spans that are read */
    struct tp_ids_pool pool;
};

static inline uint64_t tp_trace_table_mixed(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* Rows. */
enum tp_flops_formulas tp_trace_table_formulas(const struct tp_trace_table *table);
const char *tp_trace_table_device(const struct tp_trace_table *table);
/* Numbers, or -ENOMEM: of a label, made if it is new; of the row that an event of a label and a stack counts in. */
int64_t tp_trace_table_label(struct tp_trace_table *table, const char *name, size_t bytes, enum kind kind);
int64_t tp_trace_table_row(struct tp_trace_table *table, uint32_t label, uint32_t stack);
void tp_trace_table_see_first(struct tp_average *row, int64_t start_ns, int64_t end_ns, uint64_t serial, bool nested,
                              bool async);

/* Links. */
int tp_trace_table_add_kernel(struct tp_trace_table *table, uint64_t id, int64_t ns);
int tp_trace_table_gather_kernels(struct tp_trace_table *table);
int64_t tp_trace_table_kernels_of(struct tp_trace_table *table, uint64_t id);
int tp_trace_table_place_launches(struct tp_trace_table *table, struct tp_spans_reader *reader);

/* Memory. */
int tp_trace_table_gather_memory(struct tp_trace_table *table, struct tp_spans_reader *reader);
void tp_trace_table_count_memory(struct tp_trace_table *table, struct part *part);
int tp_trace_table_add_unclaimed(struct tp_trace_table *table, struct tp_spans_reader *reader);

/* Stacks. */
int tp_trace_table_gather_forwards(struct tp_trace_table *table, struct tp_spans_reader *reader);
void tp_trace_table_find_stack(struct tp_trace_table *table, const struct frame *around, struct frame *frame);

/* The tree. */
int tp_trace_table_build_tree(struct tp_trace_table *table, struct tp_spans_reader *reader);

/* Single events. */
int tp_trace_table_give_events(struct tp_trace_table *table, struct tp_spans_reader *reader);
void tp_trace_table_give_memory(struct tp_trace_table *table, const struct tp_span *span);
struct frame *tp_trace_table_shown_around(struct tp_trace_table *table, size_t depth);
void tp_trace_table_give_event(struct tp_trace_table *table, struct frame *frame);

#endif
