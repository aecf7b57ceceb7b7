#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

struct forward {
    uint64_t sequence; /* plus 1; 0: an empty place */
    uint32_t thread, stack;
};

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
        size_t at = tp_trace_table_mixed(forward->sequence, 0) & (slots - 1);
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
    size_t at = tp_trace_table_mixed(span->sequence, 0) & (table->forward_slots - 1);
    for (; table->forwards[at].sequence; at = (at + 1) & (table->forward_slots - 1))
        if (table->forwards[at].sequence == span->sequence && table->forwards[at].thread == thread)
            return 0; /* the first one counts */
    table->forwards[at] = (struct forward){span->sequence, thread, span->stack};
    table->forward_count++;
    return 0;
}

int tp_trace_table_gather_forwards(struct tp_trace_table *table, struct tp_spans_reader *reader)
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
    size_t at = tp_trace_table_mixed(sequence, 0) & (table->forward_slots - 1);
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

void tp_trace_table_find_stack(struct tp_trace_table *table, const struct frame *around, struct frame *frame)
{
    const struct tp_span *span = &frame->span;
    if (is_backward(table, span, around)) {
        frame->backward = true;
        frame->backward_stack = forward_stack(table, span->sequence, span->forward_thread);
    } else if (around) {
        frame->backward = around->backward;
        frame->backward_stack = around->backward_stack;
    }
    if (frame->backward)
        frame->part.stack = frame->backward_stack;
}
