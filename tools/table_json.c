#include "table_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"

static void print_shapes(const struct tp_average *row)
{
    printf(",\"input_shapes\":%.*s", (int)row->shapes_bytes, row->shapes);
}

static void print_stack(const struct tp_average *row)
{
    printf(",\"stack\":[");
    for (const char *at = row->stack, *end; (end = strchr(at, ';')); at = end + 1) {
        char *frame = strndup(at, (size_t)(end - at));
        printf("%s", at == row->stack ? "" : ",");
        print_json_string(frame ? frame : "", stdout);
        free(frame);
    }
    printf("]");
}

static void print_row(const struct tp_average *row, const struct tp_trace_table_facts *facts)
{
    printf("{\"name\":");
    print_json_string(row->name, stdout);
    printf(",\"annotation\":%s,\"on_device\":%s,\"count\":%llu,\"self_cpu_ns\":%lld,\"cpu_total_ns\":%lld",
           row->annotation ? "true" : "false", row->device ? "true" : "false", (unsigned long long)row->count,
           (long long)row->self_ns, (long long)row->total_ns);
    if (facts->device)
        printf(",\"self_device_ns\":%lld,\"device_total_ns\":%lld", (long long)row->device_self_ns,
               (long long)row->device_total_ns);
    if (facts->memory)
        printf(",\"cpu_memory_bytes\":%lld,\"self_cpu_memory_bytes\":%lld,\"device_memory_bytes\":%lld,"
               "\"self_device_memory_bytes\":%lld",
               (long long)row->memory, (long long)row->memory_self, (long long)row->device_memory,
               (long long)row->device_memory_self);
    if (facts->flops)
        printf(",\"flops\":%llu", (unsigned long long)row->flops);
    if (row->shapes)
        print_shapes(row);
    if (row->stack)
        print_stack(row);
    printf("}");
}

int print_rows_json(const struct tp_averages *averages, const struct tp_trace_table_facts *facts,
                    const struct tp_table_options *options, struct tp_arena *arena)
{
    size_t count = tp_averages_count(averages);
    uint32_t *order = count ? tp_table_order(averages, options->sort_by, arena) : NULL;
    if (count && !order)
        return -ENOMEM;
    printf("\"rows\":[");
    int64_t printed = 0;
    for (size_t i = 0; i < count && printed != options->row_limit; i++) {
        const struct tp_average *row = tp_averages_row(averages, order[i]);
        if (options->top_level_only && row->nested)
            continue;
        printf("%s\n", printed++ ? "," : "");
        print_row(row, facts);
    }
    printf("]");
    return 0;
}
