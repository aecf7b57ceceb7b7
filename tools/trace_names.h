/*
 * trace_names.h: the names of a trace's events, each kept once: equal names have equal numbers. On the heap.
 */
#ifndef TP_TRACE_NAMES_H
#define TP_TRACE_NAMES_H

#include "../output/trace_in.h"

struct trace_names {
    struct trace_name *names;
    size_t count, capacity;
    uint32_t *slots; /* hash table of number + 1 */
    size_t slot_count;
};

/* Negative: out of memory. */
int64_t trace_names_number(struct trace_names *names, const struct tp_trace_text *text);
/* Cut where it is long. */
const char *trace_names_text(const struct trace_names *names, uint32_t number);
void trace_names_free(struct trace_names *names);

#endif
