#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

static int contribute(struct tp_trace_table *table, const struct part *part)
{
    if (table->options.function || tp_averages_row(table->labels, part->label)->python)
        return 0;
    int64_t number = tp_trace_table_row(table, part->label, part->stack);
    if (number < 0)
        return -ENOMEM;
    struct tp_average *row = tp_averages_at(table->averages, (size_t)number);
    tp_trace_table_see_first(row, part->start_ns, part->end_ns, part->serial, part->nested, part->async);
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
            tp_trace_table_give_event(table, frame);
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
        tp_trace_table_count_memory(table, part);
    }
    frame.span = *span;
    if (async && table->gives_events) {
        tp_trace_table_give_event(table, &frame);
        return 0;
    }
    if (async)
        return contribute(table, part);
    part->device_ns = tp_trace_table_kernels_of(table, span->id);
    if (table->options.by_stack)
        tp_trace_table_find_stack(table, table->depth ? &table->frames[table->depth - 1] : NULL, &frame);
    if (table->gives_events) {
        uint64_t number = NUMBER_OF(span->serial);
        struct frame *around = tp_trace_table_shown_around(table, table->depth);
        frame.merged = table->merged[number / 8] >> number % 8 & 1;
        if (!frame.merged && around && tp_ids_add(&table->pool, &around->inside, number) < 0)
            return -ENOMEM;
    }
    return push_frame(table, &frame);
}

int tp_trace_table_build_tree(struct tp_trace_table *table, struct tp_spans_reader *reader)
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
