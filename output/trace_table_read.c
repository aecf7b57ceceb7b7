#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

#include "json.h"

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
    uint64_t key = tp_trace_table_mixed(event->pid.hash, event->tid.hash) + class;
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

static int64_t label_of_event(struct tp_trace_table *table, const struct tp_trace_event *event, enum kind kind)
{
    static const char step[] = "ProfilerStep#";
    if (!table->options.function && event->name.kept >= sizeof step - 1 && memcmp(event->name.text, step, sizeof step - 1) == 0)
        return tp_trace_table_label(table, "ProfilerStep*", strlen("ProfilerStep*"), kind);
    return tp_trace_table_label(table, event->name.text, event->name.kept, kind);
}

static uint64_t flops_of(struct tp_trace_table *table, const struct tp_trace_event *event)
{
    struct arguments *arguments = &table->arguments;
    if (!arguments->has_dims || tp_trace_table_formulas(table) == TP_FLOPS_NONE)
        return 0;
    for (size_t i = 0; !arguments->has_types && i < arguments->inputs; i++)
        arguments->input[i].tensor = arguments->input[i].dims > 0;
    return tp_flops(event->name.text, event->name.kept, arguments->input, arguments->inputs, tp_trace_table_formulas(table));
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
    int64_t at = label < 0 ? label : tp_trace_table_row(table, (uint32_t)label, 0);
    if (at < 0)
        return -ENOMEM;
    struct tp_average *row = tp_averages_at(table->averages, (size_t)at);
    tp_trace_table_see_first(row, start, start + length, event->number, false, false);
    row->count++;
    row->device_total_ns += length;
    row->device_self_ns += length;
    table->ran_on_device = true;
    return kind == KIND_DEVICE && table->arguments.id ? tp_trace_table_add_kernel(table, table->arguments.id, length) : 0;
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
    int64_t label = tp_trace_table_label(table, event->name.text, event->name.kept, KIND_OPERATOR);
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

const char *tp_trace_table_flaw(const void *context)
{
    const struct tp_trace_table *table = context;
    return table->flaw;
}
