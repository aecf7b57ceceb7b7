#include "trace_table.h"

#include <errno.h>
#include <string.h>

#include "trace_table_state.h"

#define ROWS_MOST (1u << 22)

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

enum tp_flops_formulas tp_trace_table_formulas(const struct tp_trace_table *table)
{
    return table->options.flops_given ? table->options.flops : table->with_flops ? TP_FLOPS_TORCH : TP_FLOPS_NONE;
}

int64_t tp_trace_table_label(struct tp_trace_table *table, const char *name, size_t bytes, enum kind kind)
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

/* Beginning and end, as far as they are known, and its place among equal ones. */
void tp_trace_table_see_first(struct tp_average *row, int64_t start_ns, int64_t end_ns, uint64_t serial, bool nested,
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

int64_t tp_trace_table_row(struct tp_trace_table *table, uint32_t label, uint32_t stack)
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

const char *tp_trace_table_device(const struct tp_trace_table *table)
{
    return !table->ran_on_device ? NULL : table->device ? table->device : "CUDA";
}

static int build(struct tp_trace_table *table)
{
    struct tp_spans_reader *reader = tp_spans_reader_new(table->arena);
    if (!reader || tp_spans_end(table->spans) < 0 || tp_spans_end(table->allocations) < 0 ||
        tp_spans_end(table->launches) < 0 || tp_trace_table_place_launches(table, reader) < 0 ||
        tp_trace_table_gather_memory(table, reader) < 0 ||
        (table->kernel_count && tp_trace_table_gather_kernels(table) < 0) ||
        (table->options.by_stack && tp_trace_table_gather_forwards(table, reader) < 0))
        return -ENOMEM;
    if (table->options.function)
        return tp_trace_table_give_events(table, reader);
    return tp_trace_table_build_tree(table, reader) < 0 ? -ENOMEM : tp_trace_table_add_unclaimed(table, reader);
}

int tp_trace_table_end(struct tp_trace_table *table, const struct tp_averages **ret_averages,
                       struct tp_trace_table_facts *ret_facts)
{
    int status = build(table);
    if (status < 0)
        return status;
    tp_averages_arrange(table->averages);
    table->facts.flops = tp_trace_table_formulas(table) != TP_FLOPS_NONE;
    table->facts.device = tp_trace_table_device(table);
    *ret_averages = table->averages;
    *ret_facts = table->facts;
    return 0;
}
