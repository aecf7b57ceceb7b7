#include "trace_table.h"

#include <errno.h>
#include <string.h>

#include "json.h"
#include "spans.h"
#include "strings.h"

#define ROWS_MOST (1u << 22)
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

static const struct {
    const char *category;
    enum kind kind;
    const char *device; /* what torch calls it, where the category shows it */
} categories[] = {
    {"cpu_op", KIND_OPERATOR, NULL},
    {"python_function", KIND_PYTHON, NULL},
    {"user_annotation", KIND_ANNOTATION, NULL},
    {"kernel", KIND_DEVICE, NULL},
    {"cuda_runtime", KIND_RUNTIME, NULL},
    {"cuda_driver", KIND_RUNTIME, NULL},
    {"gpu_memcpy", KIND_DEVICE, NULL},
    {"gpu_memset", KIND_DEVICE, NULL},
    {"gpu_user_annotation", KIND_DEVICE_ANNOTATION, NULL},
    {"cuda_sync", KIND_DEVICE, NULL},
    {"cuda_event", KIND_APART, NULL},
    {"cuda_profiler_range", KIND_DEVICE, NULL},
    {"overhead", KIND_APART, NULL},
    {"xpu_runtime", KIND_RUNTIME, "XPU"},
    {"xpu_driver", KIND_RUNTIME, "XPU"},
    {"privateuse1_runtime", KIND_RUNTIME, "PRIVATEUSE1"},
    {"privateuse1_driver", KIND_RUNTIME, "PRIVATEUSE1"},
    {"mtia_runtime", KIND_RUNTIME, "MTIA"},
    {"mtia_ccp_events", KIND_DEVICE_UNLINKED, "MTIA"},
    {"hpu_op", KIND_DEVICE_UNLINKED, "HPU"},
    {"Trace", KIND_NO_EVENT, NULL},
};

/* Threads of a file: those of the program, and for what stands apart from it others of the same numbers. */
enum thread_class { CLASS_PROGRAM, CLASS_RUNTIME, CLASS_APART };

struct thread {
    uint64_t key;
    bool async; /* holds ranges that do not nest (tprof's traces say so in its name) */
    const char *tid; /* JSON */
};

/* What is looked up by the External id of an operator: the time of a kernel, or of all its kernels; its thread. */
struct linked {
    uint64_t id;
    int64_t value;
};

#define KERNELS 1024
struct kernels {
    struct kernels *next;
    size_t count;
    struct linked kernels[KERNELS];
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

struct forward {
    uint64_t sequence; /* plus 1; 0: an empty place */
    uint32_t thread, stack;
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

struct tp_trace_table *tp_trace_table_new(const struct tp_trace_table_options *options, struct tp_arena *arena)
{
    struct tp_trace_table *table = tp_arena_alloc(arena, sizeof *table);
    if (!table)
        return NULL;
    table->arena = arena;
    table->options = *options;
    table->label_out_of_memory = -1;
    table->shapes = tp_arena_alloc(arena, SHAPES_TEXT);
    table->labels = tp_averages_new(arena, ROWS_MOST);
    table->averages = options->by_stack ? tp_averages_new(arena, ROWS_MOST) : table->labels;
    table->stacks = tp_strings_new(arena);
    table->spans = tp_spans_new(arena);
    table->allocations = tp_spans_new(arena);
    table->launches = tp_spans_new(arena);
    table->device_spans = options->function ? tp_spans_new(arena) : NULL;
    table->pool.arena = arena;
    if (options->function && !table->device_spans)
        return NULL;
    return table->shapes && table->labels && table->averages && table->stacks && table->spans && table->allocations &&
                   table->launches
               ? table
               : NULL;
}

static enum tp_flops_formulas formulas(const struct tp_trace_table *table)
{
    return table->options.flops_given ? table->options.flops : table->with_flops ? TP_FLOPS_TORCH : TP_FLOPS_NONE;
}

/* Args. */

static bool is(const struct tp_json_in *json, const char *name)
{
    return json->text_bytes == strlen(name) && memcmp(json->text, name, json->text_bytes) == 0;
}

static int failed(const struct tp_json_in *json)
{
    return json->flaw ? json->status : -EINVAL;
}

static int read_integer(struct tp_json_in *json, bool *has, int64_t *value)
{
    enum tp_json_token token = tp_json_in_next(json);
    *has = token == TP_JSON_NUMBER && tp_trace_integer(json->text, json->text_bytes, value);
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    return token == TP_JSON_FAILED ? failed(json) : 0;
}

static void add_shapes(struct arguments *arguments, char *shapes, const char *text, size_t bytes)
{
    if (bytes > SHAPES_TEXT - arguments->shapes_bytes)
        bytes = SHAPES_TEXT - arguments->shapes_bytes;
    memcpy(shapes + arguments->shapes_bytes, text, bytes);
    arguments->shapes_bytes += (uint32_t)bytes;
}

/* The inner list of one input: dimensions, or for a list of tensors lists of them, which torch shows as "[]". */
static int read_dimensions(struct tp_trace_table *table, struct tp_json_in *json, struct tp_flops_input *input)
{
    struct arguments *arguments = &table->arguments;
    enum tp_json_token token;
    input->elements = 1;
    add_shapes(arguments, table->shapes, "[", 1);
    while ((token = tp_json_in_next(json)) != TP_JSON_ARRAY_END) {
        int64_t dim = 0;
        if (token == TP_JSON_FAILED || ((token == TP_JSON_OBJECT || token == TP_JSON_ARRAY) && !tp_json_in_skip(json)))
            return failed(json);
        if (token != TP_JSON_NUMBER || !tp_trace_integer(json->text, json->text_bytes, &dim))
            continue;
        if (input->dims)
            add_shapes(arguments, table->shapes, ", ", 2);
        add_shapes(arguments, table->shapes, json->text, json->text_bytes);
        if (input->dims < TP_FLOPS_DIMS)
            input->dim[input->dims] = dim;
        input->dims++;
        input->elements = (int64_t)((uint64_t)input->elements * (uint64_t)dim);
    }
    add_shapes(arguments, table->shapes, "]", 1);
    return 0;
}

/* An array whose items are taken by number. */
static int read_inputs(struct tp_trace_table *table, struct tp_json_in *json,
                       int (*take)(struct tp_trace_table *, struct tp_json_in *, enum tp_json_token, size_t))
{
    enum tp_json_token token = tp_json_in_next(json);
    if (token != TP_JSON_ARRAY) {
        if (token == TP_JSON_OBJECT)
            return tp_json_in_skip(json) ? 0 : failed(json);
        return token == TP_JSON_FAILED ? failed(json) : 0;
    }
    for (size_t at = 0; (token = tp_json_in_next(json)) != TP_JSON_ARRAY_END; at++) {
        if (token == TP_JSON_FAILED)
            return failed(json);
        int status = take(table, json, token, at);
        if (status < 0)
            return status;
        if (at < TP_FLOPS_INPUTS && at >= table->arguments.inputs)
            table->arguments.inputs = at + 1;
    }
    return 0;
}

static int take_dims(struct tp_trace_table *table, struct tp_json_in *json, enum tp_json_token token, size_t at)
{
    struct tp_flops_input spare = {0};
    table->arguments.has_dims = true;
    add_shapes(&table->arguments, table->shapes, at ? ", " : "[", at ? 2 : 1);
    if (token == TP_JSON_ARRAY)
        return read_dimensions(table, json, at < TP_FLOPS_INPUTS ? &table->arguments.input[at] : &spare);
    add_shapes(&table->arguments, table->shapes, "[]", 2);
    return token != TP_JSON_OBJECT || tp_json_in_skip(json) ? 0 : failed(json);
}

static int take_concrete(struct tp_trace_table *table, struct tp_json_in *json, enum tp_json_token token, size_t at)
{
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    if (token == TP_JSON_STRING && at < TP_FLOPS_INPUTS)
        tp_flops_read_value(&table->arguments.input[at], json->text);
    return 0;
}

static int take_type(struct tp_trace_table *table, struct tp_json_in *json, enum tp_json_token token, size_t at)
{
    table->arguments.has_types = true;
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    if (token == TP_JSON_STRING && at < TP_FLOPS_INPUTS)
        table->arguments.input[at].tensor = json->text_bytes > 0 && !is(json, "Scalar") && !is(json, "ScalarList") &&
                                            !is(json, "TensorList");
    return 0;
}

static bool contains(const char *text, size_t bytes, const char *part)
{
    return memmem(text, bytes, part, strlen(part)) != NULL;
}

/* Frames that torch leaves out. */
static bool frame_left_out(const char *frame, size_t bytes)
{
    static const char *const names[][2] = {
        {"autograd/__init__", "_make_grads"},          {"autograd/__init__", "backward"},
        {"torch/tensor", "backward"},                  {"_internal/common_utils", "prof_callable"},
        {"_internal/common_utils", "prof_func_call"}, {"_internal/common_utils", "prof_meth_call"},
    };
    for (size_t i = 0; i < TP_COUNT(names); i++)
        if (contains(frame, bytes, names[i][0]) && contains(frame, bytes, names[i][1]))
            return true;
    return false;
}

/* The first frames of a stack, each with a ';' behind it. */
static int read_stack(struct tp_trace_table *table, struct tp_json_in *json)
{
    enum tp_json_token token = tp_json_in_next(json);
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    if (token != TP_JSON_STRING)
        return token == TP_JSON_FAILED ? failed(json) : 0;
    if (!table->stack_text && !(table->stack_text = tp_arena_alloc(table->arena, TP_JSON_IN_TEXT + 1)))
        return -ENOMEM;
    size_t used = 0;
    unsigned frames = 0;
    for (size_t at = 0; at < json->text_bytes && frames < table->options.by_stack;) {
        const char *frame = json->text + at, *end = memchr(frame, ';', json->text_bytes - at);
        size_t bytes = end ? (size_t)(end - frame) : json->text_bytes - at;
        if (bytes > 0 && !frame_left_out(frame, bytes)) {
            memcpy(table->stack_text + used, frame, bytes);
            table->stack_text[used + bytes] = ';';
            used += bytes + 1;
            frames++;
        }
        at += bytes + 1;
    }
    int64_t stack = tp_strings_of(table->stacks, table->stack_text, used);
    table->arguments.stack = stack < 0 ? 0 : (uint32_t)stack + 1;
    return stack < 0 ? -ENOMEM : 0;
}

static int read_thread_name(struct tp_trace_table *table, struct tp_json_in *json)
{
    static const char end[] = ") async"; /* chrome.c gives such names */
    enum tp_json_token token = tp_json_in_next(json);
    size_t bytes = json->text_bytes;
    if (token == TP_JSON_OBJECT || token == TP_JSON_ARRAY)
        return tp_json_in_skip(json) ? 0 : failed(json);
    table->arguments.async_thread = token == TP_JSON_STRING && bytes >= sizeof end - 1 &&
                                    memcmp(json->text + bytes - (sizeof end - 1), end, sizeof end - 1) == 0;
    return token == TP_JSON_FAILED ? failed(json) : 0;
}

int tp_trace_table_arg(void *context, const struct tp_trace_event *event, struct tp_json_in *json)
{
    struct tp_trace_table *table = context;
    struct arguments *arguments = &table->arguments;
    int64_t value = 0;
    bool has;
    if (is(json, "External id")) {
        int status = read_integer(json, &has, &value);
        arguments->id = has && value > 0 ? (uint64_t)value : 0;
        return status;
    }
    if (is(json, "Bytes"))
        return read_integer(json, &arguments->has_bytes, &arguments->bytes);
    if (is(json, "Device Type"))
        return read_integer(json, &has, &arguments->device_type);
    if (table->options.by_stack && is(json, "Call stack"))
        return read_stack(table, json);
    if (is(json, "name"))
        return read_thread_name(table, json);
    bool of_flops = formulas(table) != TP_FLOPS_NONE &&
                    (!event->name.there || tp_flops_knows(event->name.text, event->name.kept, formulas(table)));
    if ((of_flops || table->options.by_shapes) && is(json, "Input Dims")) {
        arguments->shapes_bytes = 0;
        int status = read_inputs(table, json, take_dims);
        add_shapes(arguments, table->shapes, arguments->has_dims ? "]" : "[]", arguments->has_dims ? 1 : 2);
        return status;
    }
    if (of_flops && is(json, "Concrete Inputs"))
        return read_inputs(table, json, take_concrete);
    if (of_flops && is(json, "Input type"))
        return read_inputs(table, json, take_type);
    return tp_json_in_pass(json) ? 0 : failed(json);
}

int tp_trace_table_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    struct tp_trace_table *table = context;
    bool on = token == TP_JSON_TRUE || (token == TP_JSON_NUMBER && !is(json, "0"));
    if (strcmp(path, "with_flops") == 0)
        table->with_flops |= on;
    else if (strcmp(path, "profile_memory") == 0)
        table->facts.memory |= on;
    return 0;
}

const char *tp_trace_table_flaw(const void *context)
{
    const struct tp_trace_table *table = context;
    return table->flaw;
}

/* Events. */

static uint64_t mixed(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

static int grow_threads(struct tp_trace_table *table)
{
    size_t capacity = table->thread_capacity ? table->thread_capacity * 2 : 64;
    struct thread *threads = tp_arena_alloc(table->arena, capacity * sizeof *threads);
    uint32_t *slots = tp_arena_alloc(table->arena, capacity * 2 * sizeof *slots);
    if (!threads || !slots)
        return -ENOMEM;
    if (table->thread_count)
        memcpy(threads, table->threads, table->thread_count * sizeof *threads);
    for (size_t i = 0; i < table->thread_count; i++) {
        size_t at = threads[i].key & (capacity * 2 - 1);
        while (slots[at])
            at = (at + 1) & (capacity * 2 - 1);
        slots[at] = (uint32_t)i + 1;
    }
    table->threads = threads;
    table->thread_slots = slots;
    table->thread_capacity = capacity;
    return 0;
}

/* As JSON; NULL: out of memory. */
static const char *tid_of(struct tp_trace_table *table, const struct tp_trace_text *tid)
{
    if (!tid->there)
        return "null";
    if (!tid->is_string)
        return tp_arena_copy(table->arena, tid->text, tid->kept);
    char *text = tp_arena_alloc(table->arena, tid->kept * TP_JSON_ESCAPE_MAX + 3);
    if (text) {
        text[0] = '"';
        size_t bytes = tp_json_escape(text + 1, tid->text, tid->kept);
        text[1 + bytes] = '"';
    }
    return text;
}

/* Its number, or -ENOMEM. */
static int64_t thread_of(struct tp_trace_table *table, const struct tp_trace_event *event, enum thread_class class)
{
    uint64_t key = mixed(event->pid.hash, event->tid.hash) + class;
    if (table->thread_count && table->threads[table->last_thread].key == key)
        return table->last_thread;
    if (table->thread_count == table->thread_capacity && grow_threads(table) < 0)
        return -ENOMEM;
    size_t at = key & (table->thread_capacity * 2 - 1);
    while (table->thread_slots[at] && table->threads[table->thread_slots[at] - 1].key != key)
        at = (at + 1) & (table->thread_capacity * 2 - 1);
    if (!table->thread_slots[at]) {
        const char *tid = tid_of(table, &event->tid);
        if (!tid)
            return -ENOMEM;
        table->threads[table->thread_count] = (struct thread){.key = key, .tid = tid};
        table->thread_slots[at] = (uint32_t)++table->thread_count;
    }
    return table->last_thread = table->thread_slots[at] - 1;
}

static enum kind kind_of(struct tp_trace_table *table, const struct tp_trace_event *event)
{
    for (size_t i = 0; i < TP_COUNT(categories); i++)
        if (strlen(categories[i].category) == event->cat.bytes &&
            memcmp(categories[i].category, event->cat.text, event->cat.kept) == 0) {
            if (categories[i].device)
                table->device = categories[i].device;
            return categories[i].kind;
        }
    return KIND_OTHER;
}

static bool named(const struct tp_trace_event *event, const char *name)
{
    return event->name.bytes == strlen(name) && memcmp(event->name.text, name, event->name.bytes) == 0;
}

static int64_t label_of(struct tp_trace_table *table, const char *name, size_t bytes, enum kind kind)
{
    struct tp_average_key key = {.name = name,
                                 .name_bytes = (uint32_t)bytes,
                                 .annotation = kind == KIND_ANNOTATION || kind == KIND_DEVICE_ANNOTATION,
                                 .device = kind >= KIND_DEVICE,
                                 /* Where they are shown they share rows with operators of their name. */
                                 .python = kind == KIND_PYTHON && !table->options.python_functions};
    if (table->options.by_shapes) {
        bool has = table->arguments.shapes_bytes > 0;
        key.shapes = has ? table->shapes : "[]";
        key.shapes_bytes = has ? table->arguments.shapes_bytes : 2;
    }
    return tp_averages_row_of(table->labels, &key);
}

static int64_t label_of_event(struct tp_trace_table *table, const struct tp_trace_event *event, enum kind kind)
{
    static const char step[] = "ProfilerStep#";
    if (!table->options.function && event->name.kept >= sizeof step - 1 && memcmp(event->name.text, step, sizeof step - 1) == 0)
        return label_of(table, "ProfilerStep*", strlen("ProfilerStep*"), kind);
    return label_of(table, event->name.text, event->name.kept, kind);
}

static uint64_t flops_of(struct tp_trace_table *table, const struct tp_trace_event *event)
{
    struct arguments *arguments = &table->arguments;
    if (!arguments->has_dims || formulas(table) == TP_FLOPS_NONE)
        return 0;
    for (size_t i = 0; !arguments->has_types && i < arguments->inputs; i++)
        arguments->input[i].tensor = arguments->input[i].dims > 0;
    return tp_flops(event->name.text, event->name.kept, arguments->input, arguments->inputs, formulas(table));
}

/* Beginning and end, as far as they are known, and its place among equal ones. */
static void see_first(struct tp_average *row, int64_t start_ns, int64_t end_ns, uint64_t serial, bool nested,
                      bool async)
{
    bool earlier = start_ns != row->first_start_ns ? start_ns < row->first_start_ns
                   : end_ns != row->first_end_ns   ? end_ns > row->first_end_ns
                                                   : serial < row->first_serial;
    if (row->count && !earlier)
        return;
    row->first_start_ns = start_ns;
    row->first_end_ns = end_ns;
    row->first_serial = serial;
    row->nested = nested;
    row->async = async;
}

static int add_kernel(struct tp_trace_table *table, uint64_t id, int64_t ns)
{
    struct kernels *last = table->kernels_last;
    if (!last || last->count == KERNELS) {
        struct kernels *kernels = tp_arena_alloc(table->arena, sizeof *kernels);
        if (!kernels)
            return -ENOMEM;
        if (last)
            last->next = kernels;
        else
            table->kernels_first = kernels;
        table->kernels_last = last = kernels;
    }
    last->kernels[last->count++] = (struct linked){id, ns};
    table->kernel_count++;
    return 0;
}

static int64_t row_of_part(struct tp_trace_table *table, uint32_t label, uint32_t stack)
{
    if (!table->options.by_stack)
        return label;
    const struct tp_average *of = tp_averages_row(table->labels, label);
    struct tp_average_key key = {.name = of->name,
                                 .shapes = of->shapes,
                                 .stack = "",
                                 .name_bytes = of->name_bytes,
                                 .shapes_bytes = of->shapes_bytes,
                                 .annotation = of->annotation,
                                 .device = of->device,
                                 .python = of->python};
    if (stack) {
        size_t bytes;
        key.stack = tp_strings_text(table->stacks, stack - 1, &bytes);
        key.stack_bytes = (uint32_t)bytes;
    }
    return tp_averages_row_of(table->averages, &key);
}

static int keep_device_event(struct tp_trace_table *table, const struct tp_trace_event *event, uint32_t label,
                             int64_t start, int64_t length)
{
    int64_t thread = thread_of(table, event, CLASS_PROGRAM);
    struct tp_span span = {
        .start_ns = start, .end_ns = start + length, .serial = event->number, .label = label, .id = table->arguments.id};
    table->ran_on_device = true;
    return thread < 0 ? -ENOMEM : tp_spans_add(table->device_spans, (uint32_t)thread, &span);
}

static int take_device_event(struct tp_trace_table *table, const struct tp_trace_event *event, enum kind kind)
{
    int64_t start = event->ts_ns, length = event->dur_ns;
    if (kind == KIND_DEVICE_ANNOTATION && length >= 2) {
        /* Kineto writes them a nanosecond wider at both ends than they are. */
        start++;
        length -= 2;
    }
    int64_t label = label_of_event(table, event, kind);
    if (table->options.function && label >= 0)
        return keep_device_event(table, event, (uint32_t)label, start, length);
    int64_t at = label < 0 ? label : row_of_part(table, (uint32_t)label, 0);
    if (at < 0)
        return -ENOMEM;
    struct tp_average *row = tp_averages_at(table->averages, (size_t)at);
    see_first(row, start, start + length, event->number, false, false);
    row->count++;
    row->device_total_ns += length;
    row->device_self_ns += length;
    table->ran_on_device = true;
    return kind == KIND_DEVICE && table->arguments.id ? add_kernel(table, table->arguments.id, length) : 0;
}

static int take_allocation(struct tp_trace_table *table, const struct tp_trace_event *event)
{
    int64_t type = table->arguments.device_type;
    /* c10::DeviceType: CPU, MKLDNN, IDEEP; CUDA, HIP, XPU, PrivateUse1. */
    bool cpu = type == 0 || type == 2 || type == 5, device = type == 1 || type == 6 || type == 12 || type == 20;
    struct tp_span span = {.start_ns = event->ts_ns,
                           .end_ns = event->ts_ns,
                           .serial = event->number,
                           .bytes = cpu ? table->arguments.bytes : 0,
                           .device_bytes = device ? table->arguments.bytes : 0};
    table->facts.memory = true;
    table->has_memory |= cpu;
    table->has_device_memory |= device;
    int64_t thread = thread_of(table, event, CLASS_PROGRAM);
    if (thread < 0)
        return -ENOMEM;
    if (named(event, "[memory]")) {
        span.label = table->options.function ? (uint32_t)thread : 0;
        return tp_spans_add(table->allocations, 0, &span);
    }
    int64_t label = label_of(table, event->name.text, event->name.kept, KIND_OPERATOR);
    if (label < 0)
        return -ENOMEM;
    table->label_out_of_memory = span.label = (uint32_t)label;
    span.serial += SERIAL_OUT_OF_MEMORY;
    return tp_spans_add(table->spans, (uint32_t)thread, &span);
}

static int take_cpu_event(struct tp_trace_table *table, const struct tp_trace_event *event, enum kind kind)
{
    int64_t label = label_of_event(table, event, kind);
    int64_t thread = thread_of(table, event,
                               kind == KIND_APART     ? CLASS_APART
                               : kind == KIND_RUNTIME ? CLASS_RUNTIME
                                                      : CLASS_PROGRAM);
    if (label < 0 || thread < 0)
        return -ENOMEM;
    struct tp_span span = {.start_ns = event->ts_ns,
                           .end_ns = event->ts_ns + event->dur_ns,
                           .serial = event->number,
                           .label = (uint32_t)label,
                           .id = table->arguments.id,
                           .flops = flops_of(table, event)};
    if (kind == KIND_RUNTIME && table->options.function)
        span.bytes = (int64_t)span.id; /* kept for what it says itself: the id goes when it is placed */
    if (table->options.by_stack) {
        span.stack = table->arguments.stack;
        span.sequence = event->has_sequence && event->sequence >= 0 ? (uint64_t)event->sequence + 1 : 0;
        if (event->has_forward_thread && event->forward_thread > 0)
            span.forward_thread = (uint64_t)event->forward_thread;
    }
    return tp_spans_add(kind == KIND_RUNTIME && span.id ? table->launches : table->spans, (uint32_t)thread, &span);
}

static const char *flaw_of(const struct tp_trace_event *event, bool with_duration)
{
    if (event->flaws & TP_TRACE_FAR_TIME)
        return "its ts or dur is out of range";
    if (event->flaws & TP_TRACE_BAD_TIME)
        return "its ts or dur is no number";
    if (!event->name.there)
        return event->flaws & TP_TRACE_BAD_TEXT ? "its name is no string" : "it has no name";
    if (!event->has_ts)
        return "it has no ts";
    if (with_duration && !event->has_dur)
        return "it has no dur";
    return with_duration && event->dur_ns < 0 ? "its dur is negative" : NULL;
}

static int take_event(struct tp_trace_table *table, const struct tp_trace_event *event)
{
    bool allocation = table->arguments.has_bytes && (named(event, "[memory]") || named(event, "[OutOfMemory]"));
    if (event->flaws & TP_TRACE_NOT_OBJECT)
        table->flaw = "it is no object";
    else if (event->flaws & TP_TRACE_TWICE)
        table->flaw = "a member stands in it twice";
    if (table->flaw)
        return -EPROTO;
    if (event->phase == 'M') {
        int64_t thread = named(event, "thread_name") ? thread_of(table, event, CLASS_PROGRAM) : 0;
        if (thread >= 0 && named(event, "thread_name") && table->arguments.async_thread)
            table->threads[thread].async = true;
        return thread < 0 ? -ENOMEM : 0;
    }
    if (event->phase != 'X' && !(allocation && (event->phase == 'i' || event->phase == 'I')))
        return 0;
    enum kind kind = kind_of(table, event);
    if (!allocation && (kind == KIND_OTHER || kind == KIND_NO_EVENT)) {
        table->facts.other_events += kind == KIND_OTHER;
        return 0;
    }
    if ((table->flaw = flaw_of(event, !allocation)))
        return -EPROTO;
    if (tp_averages_leave_out(event->name.text, event->name.kept))
        return 0;
    if (allocation)
        return take_allocation(table, event);
    table->facts.events++;
    return kind >= KIND_DEVICE ? take_device_event(table, event, kind) : take_cpu_event(table, event, kind);
}

int tp_trace_table_event(void *context, const struct tp_trace_event *event)
{
    struct tp_trace_table *table = context;
    int status = take_event(table, event);
    table->number_most = event->number;
    struct arguments *arguments = &table->arguments;
    for (size_t i = 0; i < arguments->inputs; i++) {
        arguments->input[i].tensor = false;
        arguments->input[i].dims = 0;
        arguments->input[i].value = TP_FLOPS_NO_VALUE;
    }
    arguments->id = 0;
    arguments->device_type = 0;
    arguments->has_bytes = arguments->has_dims = arguments->has_types = arguments->async_thread = false;
    arguments->stack = arguments->shapes_bytes = 0;
    arguments->inputs = 0;
    return status;
}

/* The end: what is looked up by id. */

static void sift_linked(struct linked *linked, size_t count, size_t at)
{
    struct linked moved = linked[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && linked[child].id < linked[child + 1].id)
            child++;
        if (moved.id >= linked[child].id)
            break;
        linked[at] = linked[child];
    }
    linked[at] = moved;
}

static void sort_by_id(struct linked *linked, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift_linked(linked, count, i);
    for (size_t i = count; i-- > 1;) {
        struct linked last = linked[0];
        linked[0] = linked[i];
        linked[i] = last;
        sift_linked(linked, i, 0);
    }
}

static int gather_kernels(struct tp_trace_table *table)
{
    size_t count = 0;
    struct linked *kernels = tp_arena_alloc(table->arena, table->kernel_count * sizeof *kernels);
    if (!kernels)
        return -ENOMEM;
    for (const struct kernels *some = table->kernels_first; some; some = some->next) {
        memcpy(kernels + count, some->kernels, some->count * sizeof *kernels);
        count += some->count;
    }
    sort_by_id(kernels, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept && kernels[kept - 1].id == kernels[i].id)
            kernels[kept - 1].value += kernels[i].value;
        else
            kernels[kept++] = kernels[i];
    table->kernels = kernels;
    table->kernel_count = kept;
    return 0;
}

/* Ids mostly rise with time: the one behind the last that was found is looked at first. */
static struct linked *find_linked(struct linked *linked, size_t count, size_t *near, uint64_t id)
{
    size_t low = 0, high = count;
    if (*near < count && linked[*near].id < id)
        low = *near + 1;
    if (low < high && linked[low].id >= id)
        high = low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (linked[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count || linked[low].id != id)
        return NULL;
    *near = low;
    return &linked[low];
}

static int64_t kernels_of(struct tp_trace_table *table, uint64_t id)
{
    const struct linked *found =
        id ? find_linked(table->kernels, table->kernel_count, &table->kernel_near, id) : NULL;
    return found ? found->value : 0;
}

/* Calls of a runtime stand where the operator that they name does; if there is none, apart from all operators. */

static struct linked *gather_launchers(struct tp_trace_table *table, struct tp_spans_reader *reader, size_t *ret_count)
{
    struct linked *launchers = tp_arena_alloc(table->arena, tp_spans_count(table->launches) * sizeof *launchers);
    size_t count = 0, kept = 0;
    for (uint32_t thread = 0; launchers && thread < tp_spans_threads(table->launches); thread++) {
        if (tp_spans_open(reader, table->launches, thread) < 0)
            return NULL;
        for (struct tp_span span; tp_spans_next(reader, &span);)
            launchers[count++] = (struct linked){span.id, -1};
    }
    if (!launchers)
        return NULL;
    sort_by_id(launchers, count);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || launchers[kept - 1].id != launchers[i].id)
            launchers[kept++] = launchers[i];
    *ret_count = kept;
    return launchers;
}

static int place_launches(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    size_t count, near = 0;
    if (tp_spans_count(table->launches) == 0)
        return 0;
    struct linked *launchers = gather_launchers(table, reader, &count), *found;
    if (!launchers)
        return -ENOMEM;
    for (uint32_t thread = 0; thread < tp_spans_threads(table->spans); thread++) {
        if (table->threads[thread].async)
            continue;
        if (tp_spans_open(reader, table->spans, thread) < 0)
            return -ENOMEM;
        for (struct tp_span span; tp_spans_next(reader, &span);)
            if (span.id && (found = find_linked(launchers, count, &near, span.id)))
                found->value = thread;
    }
    for (uint32_t thread = 0; thread < tp_spans_threads(table->launches); thread++) {
        if (tp_spans_open(reader, table->launches, thread) < 0)
            return -ENOMEM;
        for (struct tp_span span; tp_spans_next(reader, &span);) {
            found = find_linked(launchers, count, &near, span.id);
            span.id = 0; /* kernels are the operator's */
            if (tp_spans_add(table->spans, found->value < 0 ? thread : (uint32_t)found->value, &span) < 0)
                return -ENOMEM;
        }
    }
    return tp_spans_end(table->spans);
}

/* Memory by time. */

static int gather_memory(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    size_t count = (size_t)tp_spans_count(table->allocations), at = 0;
    if (count == 0)
        return 0;
    table->memory_at = tp_arena_alloc(table->arena, count * sizeof *table->memory_at);
    table->claimed = tp_arena_alloc(table->arena, count / 8 + 1);
    if (table->has_memory)
        table->memory_sum = tp_arena_alloc(table->arena, (count + 1) * sizeof *table->memory_sum);
    if (table->has_device_memory)
        table->device_memory_sum = tp_arena_alloc(table->arena, (count + 1) * sizeof *table->device_memory_sum);
    if (!table->memory_at || !table->claimed || (table->has_memory && !table->memory_sum) ||
        (table->has_device_memory && !table->device_memory_sum) || tp_spans_open(reader, table->allocations, 0) < 0)
        return -ENOMEM;
    for (struct tp_span span; tp_spans_next(reader, &span); at++) {
        table->memory_at[at] = span.start_ns;
        if (table->memory_sum)
            table->memory_sum[at + 1] = table->memory_sum[at] + span.bytes;
        if (table->device_memory_sum)
            table->device_memory_sum[at + 1] = table->device_memory_sum[at] + span.device_bytes;
    }
    table->memory_count = count;
    return 0;
}

/* How many allocations were before this time, or (with equal) up to it. */
static size_t memory_before(const struct tp_trace_table *table, int64_t ns, bool equal)
{
    size_t low = 0, high = table->memory_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->memory_at[middle] < ns || (equal && table->memory_at[middle] == ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void count_memory(struct tp_trace_table *table, struct part *part)
{
    if (!table->memory_count)
        return;
    size_t from = memory_before(table, part->start_ns, false), to = memory_before(table, part->end_ns, true);
    if (table->memory_sum)
        part->memory = table->memory_sum[to] - table->memory_sum[from];
    if (table->device_memory_sum)
        part->device_memory = table->device_memory_sum[to] - table->device_memory_sum[from];
    if (!part->nested) /* what an event inside claims, the one around it does too */
        for (size_t i = from; i < to; i++)
            table->claimed[i / 8] |= (unsigned char)(1u << i % 8);
}

static const char *device_of(const struct tp_trace_table *table)
{
    return !table->ran_on_device ? NULL : table->device ? table->device : "CUDA";
}

/* What single events of any kind have. */
static struct tp_function_event shown_span(const struct tp_trace_table *table, const struct tp_span *span,
                                           const struct tp_average *label, uint32_t thread)
{
    return (struct tp_function_event){
        .id = NUMBER_OF(span->serial),
        .external_id = span->id,
        .name = label ? label->name : "[memory]",
        .name_bytes = label ? label->name_bytes : sizeof "[memory]" - 1,
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
        .tid = table->threads[thread].tid,
        .tid_bytes = strlen(table->threads[thread].tid),
        .device = "CPU",
        .is_annotation = label && label->annotation,
        .is_python = label && label->python,
        .scope = -1,
        .sequence = (int64_t)span->sequence - 1,
        .forward_thread = span->forward_thread,
        .shapes = label && label->shapes ? label->shapes : "[]",
        .shapes_bytes = label && label->shapes ? label->shapes_bytes : 2,
        .has_flops = formulas(table) != TP_FLOPS_NONE,
        .flops = span->flops,
        .has_memory = table->facts.memory,
        .stack = "",
    };
}

static void give_memory(struct tp_trace_table *table, const struct tp_span *span)
{
    struct tp_function_event event = shown_span(table, span, NULL, span->label);
    event.cpu_memory = span->bytes;
    event.device_memory = span->device_bytes;
    table->options.function(table->options.context, &event);
}

/* The frame around a frame's place that is an event of its own. */
static struct frame *shown_around(struct tp_trace_table *table, size_t depth)
{
    while (depth > 0 && table->frames[depth - 1].merged)
        depth--;
    return depth > 0 ? &table->frames[depth - 1] : NULL;
}

/* An event whose frame is the next one behind those that are open, or never was among them. */
static void give_event(struct tp_trace_table *table, struct frame *frame)
{
    const struct part *part = &frame->part;
    const struct frame *around = part->async ? NULL : shown_around(table, table->depth);
    struct tp_function_event event =
        shown_span(table, &frame->span, tp_averages_row(table->labels, part->label), table->thread);
    event.has_parent = around != NULL;
    event.parent = around ? NUMBER_OF(around->part.serial) : 0;
    event.children = &frame->inside;
    event.is_async = part->async;
    event.cpu_memory = part->memory;
    event.device_memory = part->device_memory;
    if (frame->span.bytes && (int64_t)part->label != table->label_out_of_memory) {
        event.has_link = true; /* a call of a runtime */
        event.link = (uint64_t)frame->span.bytes;
        event.external_id = 0;
    }
    if (part->stack) {
        size_t bytes;
        event.stack = tp_strings_text(table->stacks, part->stack - 1, &bytes);
        event.stack_bytes = bytes;
    }
    table->options.function(table->options.context, &event);
    tp_ids_clear(&table->pool, &frame->inside);
}

static int give_device_events(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    for (uint32_t thread = 0; thread < tp_spans_threads(table->device_spans); thread++) {
        if (tp_spans_open(reader, table->device_spans, thread) < 0)
            return -ENOMEM;
        for (struct tp_span span; tp_spans_next(reader, &span);) {
            struct tp_function_event event =
                shown_span(table, &span, tp_averages_row(table->labels, span.label), thread);
            event.device = device_of(table);
            event.external_id = 0;
            event.has_link = !event.is_annotation;
            event.link = span.id;
            table->options.function(table->options.context, &event);
        }
    }
    return 0;
}

static int add_unclaimed(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    size_t at = 0;
    if (!table->memory_count)
        return 0;
    if (tp_spans_open(reader, table->allocations, 0) < 0)
        return -ENOMEM;
    table->arguments.shapes_bytes = 0;
    for (struct tp_span span; tp_spans_next(reader, &span); at++) {
        if (table->claimed[at / 8] >> at % 8 & 1)
            continue;
        if (table->gives_events) {
            give_memory(table, &span);
            continue;
        }
        int64_t label = label_of(table, "[memory]", strlen("[memory]"), KIND_OPERATOR);
        int64_t number = label < 0 ? label : row_of_part(table, (uint32_t)label, 0);
        if (number < 0)
            return -ENOMEM;
        struct tp_average *row = tp_averages_at(table->averages, (size_t)number);
        see_first(row, span.start_ns, span.end_ns, span.serial + SERIAL_MEMORY, false, false);
        row->count++;
        row->memory += span.bytes;
        row->memory_self += span.bytes;
        row->device_memory += span.device_bytes;
        row->device_memory_self += span.device_bytes;
    }
    return 0;
}

/* Stacks of forward events, for the backward ones. */

/* What runs a node of the backward pass is none of it for torch; the node inside it is. Some nodes have no sequence
 * number, but have the name that stands at the end of the one around them. */
static bool is_backward(const struct tp_trace_table *table, const struct tp_span *span, const struct frame *around)
{
    static const char wrapper[] = "autograd::engine::evaluate_function: ";
    const size_t head = sizeof wrapper - 1;
    const struct tp_average *label = tp_averages_row(table->labels, span->label);
    if (label->name_bytes >= head && memcmp(label->name, wrapper, head) == 0)
        return false;
    if (span->forward_thread || !around)
        return span->forward_thread;
    const struct tp_average *outer = tp_averages_row(table->labels, around->part.label);
    return outer->name_bytes == head + label->name_bytes && memcmp(outer->name, wrapper, head) == 0 &&
           memcmp(outer->name + head, label->name, label->name_bytes) == 0;
}

static int grow_forwards(struct tp_trace_table *table)
{
    size_t slots = table->forward_slots ? table->forward_slots * 2 : 1024;
    struct forward *forwards = tp_arena_alloc(table->arena, slots * sizeof *forwards);
    if (!forwards)
        return -ENOMEM;
    for (size_t i = 0; i < table->forward_slots; i++) {
        const struct forward *forward = &table->forwards[i];
        if (!forward->sequence)
            continue;
        size_t at = mixed(forward->sequence, 0) & (slots - 1);
        while (forwards[at].sequence)
            at = (at + 1) & (slots - 1);
        forwards[at] = *forward;
    }
    table->forwards = forwards;
    table->forward_slots = slots;
    return 0;
}

static int add_forward(struct tp_trace_table *table, uint32_t thread, const struct tp_span *span)
{
    if (table->forward_count * 2 >= table->forward_slots && grow_forwards(table) < 0)
        return -ENOMEM;
    size_t at = mixed(span->sequence, 0) & (table->forward_slots - 1);
    for (; table->forwards[at].sequence; at = (at + 1) & (table->forward_slots - 1))
        if (table->forwards[at].sequence == span->sequence && table->forwards[at].thread == thread)
            return 0; /* the first one counts */
    table->forwards[at] = (struct forward){span->sequence, thread, span->stack};
    table->forward_count++;
    return 0;
}

static int gather_forwards(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    for (uint32_t thread = 0; thread < tp_spans_threads(table->spans); thread++) {
        if (tp_spans_open(reader, table->spans, thread) < 0)
            return -ENOMEM;
        for (struct tp_span span; tp_spans_next(reader, &span);)
            if (span.sequence && !span.forward_thread && add_forward(table, thread, &span) < 0)
                return -ENOMEM;
    }
    return 0;
}

static uint32_t forward_stack(struct tp_trace_table *table, uint64_t sequence, uint64_t forward_thread)
{
    if (!sequence || !forward_thread || !table->forward_slots)
        return 0;
    const struct binding *bound = NULL;
    for (size_t i = 0; i < table->binding_count; i++)
        if (table->bindings[i].forward_thread == forward_thread)
            bound = &table->bindings[i];
    const struct forward *found = NULL;
    bool many = false;
    size_t at = mixed(sequence, 0) & (table->forward_slots - 1);
    for (; table->forwards[at].sequence; at = (at + 1) & (table->forward_slots - 1)) {
        const struct forward *forward = &table->forwards[at];
        if (forward->sequence != sequence)
            continue;
        if (bound && forward->thread == bound->thread)
            return forward->stack;
        many |= found != NULL;
        if (!found)
            found = forward;
    }
    if (bound || !found)
        return 0;
    if (!many && table->binding_count < BOUND)
        table->bindings[table->binding_count++] = (struct binding){forward_thread, found->thread};
    return found->stack;
}

/* The tree. */

static int contribute(struct tp_trace_table *table, const struct part *part)
{
    if (table->options.function || tp_averages_row(table->labels, part->label)->python)
        return 0;
    int64_t number = row_of_part(table, part->label, part->stack);
    if (number < 0)
        return -ENOMEM;
    struct tp_average *row = tp_averages_at(table->averages, (size_t)number);
    see_first(row, part->start_ns, part->end_ns, part->serial, part->nested, part->async);
    row->count++;
    row->flops += part->flops;
    row->total_ns += part->total_ns;
    row->memory += part->memory;
    row->device_memory += part->device_memory;
    if (part->async)
        return 0;
    row->self_ns += part->total_ns - part->inside_ns;
    row->device_total_ns += part->device_ns + part->device_inside_ns;
    row->device_self_ns += part->device_ns;
    row->memory_self += part->memory - part->memory_inside;
    row->device_memory_self += part->device_memory - part->device_memory_inside;
    return 0;
}

/* Single events keep the number in their names, which is none of it for torch. */
static bool is_step(const struct tp_average *label)
{
    static const char step[] = "ProfilerStep#";
    return label->name_bytes >= sizeof step - 1 && memcmp(label->name, step, sizeof step - 1) == 0;
}

static bool same_name(const struct tp_trace_table *table, uint32_t a, uint32_t b)
{
    const struct tp_average *x = tp_averages_row(table->labels, a), *y = tp_averages_row(table->labels, b);
    return a == b || (is_step(x) && is_step(y)) ||
           (x->name_hash == y->name_hash && x->name_bytes == y->name_bytes &&
            memcmp(x->name, y->name, x->name_bytes) == 0);
}

/* The innermost one is over: no later event lies inside it. */
static int close_frame(struct tp_trace_table *table)
{
    struct frame *frame = &table->frames[--table->depth];
    struct part *part = &frame->part;
    if (table->gives_events) {
        if (!frame->merged)
            give_event(table, frame);
        return 0;
    }
    if (frame->has_only) {
        const struct part *only = &frame->only;
        if (table->merged)
            table->merged[NUMBER_OF(only->serial) / 8] |= (unsigned char)(1u << NUMBER_OF(only->serial) % 8);
        part->inside_ns = only->inside_ns;
        part->memory_inside = only->memory_inside;
        part->device_memory_inside = only->device_memory_inside;
        part->device_ns = only->device_ns;
        part->device_inside_ns = only->device_inside_ns;
        part->children = only->children;
    }
    if (table->depth == 0)
        return contribute(table, part);
    struct frame *around = &table->frames[table->depth - 1];
    struct part *parent = &around->part;
    parent->inside_ns += part->total_ns;
    parent->memory_inside += part->memory;
    parent->device_memory_inside += part->device_memory;
    parent->device_inside_ns += part->device_ns + part->device_inside_ns;
    if (++parent->children == 1 && same_name(table, parent->label, part->label)) {
        around->only = *part;
        around->has_only = true;
        return 0;
    }
    if (around->has_only) {
        around->has_only = false;
        if (contribute(table, &around->only) < 0)
            return -ENOMEM;
    }
    return contribute(table, part);
}

static int push_frame(struct tp_trace_table *table, const struct frame *frame)
{
    if (table->depth == table->frame_capacity) {
        size_t capacity = table->frame_capacity ? table->frame_capacity * 2 : 64;
        struct frame *frames = tp_arena_alloc(table->arena, capacity * sizeof *frames);
        if (!frames)
            return -ENOMEM;
        if (table->depth)
            memcpy(frames, table->frames, table->depth * sizeof *frames);
        table->frames = frames;
        table->frame_capacity = capacity;
    }
    table->frames[table->depth++] = *frame;
    return 0;
}

static int take_span(struct tp_trace_table *table, const struct tp_span *span, bool async)
{
    while (!async && table->depth > 0) {
        const struct part *around = &table->frames[table->depth - 1].part;
        if (span->start_ns < around->end_ns && span->end_ns <= around->end_ns)
            break;
        if (close_frame(table) < 0)
            return -ENOMEM;
    }
    struct frame frame = {.part = {.start_ns = span->start_ns,
                                   .end_ns = span->end_ns,
                                   .serial = span->serial,
                                   .flops = span->flops,
                                   .total_ns = span->end_ns - span->start_ns,
                                   .label = span->label,
                                   .stack = span->stack,
                                   .nested = !async && table->depth > 0,
                                   .async = async}};
    struct part *part = &frame.part;
    if (table->label_out_of_memory == span->label) {
        part->memory = span->bytes;
        part->device_memory = span->device_bytes;
    } else {
        count_memory(table, part);
    }
    frame.span = *span;
    if (async && table->gives_events) {
        give_event(table, &frame);
        return 0;
    }
    if (async)
        return contribute(table, part);
    part->device_ns = kernels_of(table, span->id);
    if (table->options.by_stack) {
        const struct frame *around = table->depth ? &table->frames[table->depth - 1] : NULL;
        if (is_backward(table, span, around)) {
            frame.backward = true;
            frame.backward_stack = forward_stack(table, span->sequence, span->forward_thread);
        } else if (around) {
            frame.backward = around->backward;
            frame.backward_stack = around->backward_stack;
        }
        if (frame.backward)
            part->stack = frame.backward_stack;
    }
    if (table->gives_events) {
        uint64_t number = NUMBER_OF(span->serial);
        struct frame *around = shown_around(table, table->depth);
        frame.merged = table->merged[number / 8] >> number % 8 & 1;
        if (!frame.merged && around && tp_ids_add(&table->pool, &around->inside, number) < 0)
            return -ENOMEM;
    }
    return push_frame(table, &frame);
}

static int build_tree(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    for (uint32_t thread = 0; thread < tp_spans_threads(table->spans); thread++) {
        table->kernel_near = 0;
        table->thread = thread;
        if (tp_spans_open(reader, table->spans, thread) < 0)
            return -ENOMEM;
        for (struct tp_span span; tp_spans_next(reader, &span);)
            if (take_span(table, &span, table->threads[thread].async) < 0)
                return -ENOMEM;
        while (table->depth > 0)
            if (close_frame(table) < 0)
                return -ENOMEM;
    }
    return 0;
}

/* First it turns out what is one with its parent. */
static int give_events(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    table->merged = tp_arena_alloc(table->arena, table->number_most / 8 + 1);
    if (!table->merged || tp_spans_end(table->device_spans) < 0 || build_tree(table, reader) < 0)
        return -ENOMEM;
    table->gives_events = true;
    if (build_tree(table, reader) < 0 || give_device_events(table, reader) < 0)
        return -ENOMEM;
    return add_unclaimed(table, reader);
}

static int build(struct tp_trace_table *table)
{
    struct tp_spans_reader *reader = tp_spans_reader_new(table->arena);
    if (!reader || tp_spans_end(table->spans) < 0 || tp_spans_end(table->allocations) < 0 ||
        tp_spans_end(table->launches) < 0 || place_launches(table, reader) < 0 || gather_memory(table, reader) < 0 ||
        (table->kernel_count && gather_kernels(table) < 0) ||
        (table->options.by_stack && gather_forwards(table, reader) < 0))
        return -ENOMEM;
    if (table->options.function)
        return give_events(table, reader);
    return build_tree(table, reader) < 0 ? -ENOMEM : add_unclaimed(table, reader);
}

int tp_trace_table_end(struct tp_trace_table *table, const struct tp_averages **ret_averages,
                       struct tp_trace_table_facts *ret_facts)
{
    int status = build(table);
    if (status < 0)
        return status;
    tp_averages_arrange(table->averages);
    table->facts.flops = formulas(table) != TP_FLOPS_NONE;
    table->facts.device = device_of(table);
    *ret_averages = table->averages;
    *ret_facts = table->facts;
    return 0;
}
