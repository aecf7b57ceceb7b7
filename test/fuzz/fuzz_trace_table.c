/*
 * Fuzzes the tables of trace files, from bytes to the printed text, with all that can be asked for: clang
 * -fsanitize=fuzzer,address, or standalone.c.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../output/table.h"
#include "../../output/trace_table.h"
#include "../unit/bytes_from.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What rows rely on: an event counts in one row, and the rows stand in the order of their first events. */
static void check_rows(const struct tp_averages *averages, const struct tp_trace_table_facts *facts)
{
    uint64_t count = 0;
    for (size_t i = 0; i < tp_averages_count(averages); i++) {
        const struct tp_average *row = tp_averages_row(averages, i);
        if (row->count == 0 || row->name[row->name_bytes] != 0)
            abort();
        if (i > 0 && tp_averages_row(averages, i - 1)->first_start_ns > row->first_start_ns)
            abort();
        if (strcmp(row->name, "[memory]") != 0 && strcmp(row->name, "[OutOfMemory]") != 0)
            count += row->count;
    }
    if (count > facts->events)
        abort();
}

static void run(const uint8_t *data, size_t size, const struct tp_trace_table_options *wanted)
{
    struct tp_arena arena;
    struct bytes_from bytes;
    tp_arena_init(&arena, 64u << 20);
    struct tp_trace_table *table = tp_trace_table_new(wanted, &arena);
    struct tp_gzip_in *gzip = tp_gzip_in_new(bytes_from(&bytes, (const char *)data, size, size % 61 + 1), &arena);
    struct tp_trace_in_options options = {.source = tp_gzip_in_bytes(gzip),
                                          .context = table,
                                          .event = tp_trace_table_event,
                                          .arg = tp_trace_table_arg,
                                          .member = tp_trace_table_member};
    struct tp_trace_in_result result;
    int status = tp_trace_in_read(&options, &arena, &result);
    if ((status == -EPROTO) != (tp_trace_table_flaw(table) != NULL))
        abort();
    const struct tp_averages *averages;
    struct tp_trace_table_facts facts;
    if (status == 0 && tp_trace_table_end(table, &averages, &facts) == 0) {
        struct tp_text text;
        check_rows(averages, &facts);
        tp_text_init(&text, &arena, 16u << 20);
        struct tp_table_options print = {
            .row_limit = -1, .device = facts.device, .memory = facts.memory, .flops = facts.flops};
        if (tp_table_render(&text, averages, &print) == 0 && tp_averages_count(averages) > 0 && text.used == 0)
            abort();
    }
    tp_arena_free(&arena);
}

/* What single events rely on: all that they point to is there, and each comes once. */
static void check_function(void *context, const struct tp_function_event *event)
{
    uint64_t *sum = context, child, children = 0;
    struct tp_ids_cursor cursor = event->children ? tp_ids_begin(event->children) : (struct tp_ids_cursor){0};
    while (tp_ids_next(&cursor, &child))
        children++;
    if ((event->children ? event->children->count : 0) != children || event->end_ns < event->start_ns ||
        (event->has_parent && event->parent == event->id))
        abort();
    *sum += event->name_bytes + event->tid_bytes + event->shapes_bytes + event->stack_bytes +
            (event->name_bytes ? (unsigned char)event->name[event->name_bytes - 1] : 0) +
            (unsigned char)event->tid[event->tid_bytes] + (unsigned char)event->device[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum = 0;
    run(data, size,
        &(struct tp_trace_table_options){
            .by_shapes = true, .by_stack = UINT32_MAX, .function = check_function, .context = &sum});
    run(data, size, &(struct tp_trace_table_options){0});
    run(data, size,
        &(struct tp_trace_table_options){.flops_given = true, .flops = TP_FLOPS_EXTENDED, .by_shapes = true,
                                         .by_stack = 2, .python_functions = true});
    return 0;
}
