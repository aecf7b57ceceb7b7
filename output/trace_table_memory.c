#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

int tp_trace_table_gather_memory(struct tp_trace_table *table, struct tp_spans_reader *reader)
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

void tp_trace_table_count_memory(struct tp_trace_table *table, struct part *part)
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

int tp_trace_table_add_unclaimed(struct tp_trace_table *table, struct tp_spans_reader *reader)
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
            tp_trace_table_give_memory(table, &span);
            continue;
        }
        int64_t label = tp_trace_table_label(table, "[memory]", strlen("[memory]"), KIND_OPERATOR);
        int64_t number = label < 0 ? label : tp_trace_table_row(table, (uint32_t)label, 0);
        if (number < 0)
            return -ENOMEM;
        struct tp_average *row = tp_averages_at(table->averages, (size_t)number);
        tp_trace_table_see_first(row, span.start_ns, span.end_ns, span.serial + SERIAL_MEMORY, false, false);
        row->count++;
        row->memory += span.bytes;
        row->memory_self += span.bytes;
        row->device_memory += span.device_bytes;
        row->device_memory_self += span.device_bytes;
    }
    return 0;
}
