#include "trace_table_state.h"

#include <errno.h>
#include <string.h>

#include "../agent/heap_sort.h"

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

static bool has_lower_id(const void *a, const void *b)
{
    return ((const struct linked *)a)->id < ((const struct linked *)b)->id;
}

static void sort_by_id(struct linked *linked, size_t count)
{
    tp_heap_sort(linked, count, sizeof *linked, has_lower_id);
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

int tp_trace_table_add_kernel(struct tp_trace_table *table, uint64_t id, int64_t ns)
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

int tp_trace_table_gather_kernels(struct tp_trace_table *table)
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

int64_t tp_trace_table_kernels_of(struct tp_trace_table *table, uint64_t id)
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

int tp_trace_table_place_launches(struct tp_trace_table *table, struct tp_spans_reader *reader)
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
