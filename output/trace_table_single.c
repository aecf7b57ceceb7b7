#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

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
        .has_flops = tp_trace_table_formulas(table) != TP_FLOPS_NONE,
        .flops = span->flops,
        .has_memory = table->facts.memory,
        .stack = "",
    };
}

void tp_trace_table_give_memory(struct tp_trace_table *table, const struct tp_span *span)
{
    struct tp_function_event event = shown_span(table, span, NULL, span->label);
    event.cpu_memory = span->bytes;
    event.device_memory = span->device_bytes;
    table->options.function(table->options.context, &event);
}

/* The frame around a frame's place that is an event of its own. */
struct frame *tp_trace_table_shown_around(struct tp_trace_table *table, size_t depth)
{
    while (depth > 0 && table->frames[depth - 1].merged)
        depth--;
    return depth > 0 ? &table->frames[depth - 1] : NULL;
}

/* An event whose frame is the next one behind those that are open, or never was among them. */
void tp_trace_table_give_event(struct tp_trace_table *table, struct frame *frame)
{
    const struct part *part = &frame->part;
    const struct frame *around = part->async ? NULL : tp_trace_table_shown_around(table, table->depth);
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
            event.device = tp_trace_table_device(table);
            event.external_id = 0;
            event.has_link = !event.is_annotation;
            event.link = span.id;
            table->options.function(table->options.context, &event);
        }
    }
    return 0;
}

/* First it turns out what is one with its parent. */
int tp_trace_table_give_events(struct tp_trace_table *table, struct tp_spans_reader *reader)
{
    table->merged = tp_arena_alloc(table->arena, table->number_most / 8 + 1);
    if (!table->merged || tp_spans_end(table->device_spans) < 0 || tp_trace_table_build_tree(table, reader) < 0)
        return -ENOMEM;
    table->gives_events = true;
    if (tp_trace_table_build_tree(table, reader) < 0 || give_device_events(table, reader) < 0)
        return -ENOMEM;
    return tp_trace_table_add_unclaimed(table, reader);
}
