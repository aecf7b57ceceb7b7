/*
 * trace_file.h: a trace file, read through once: opened, inflated, with progress on a terminal, and with one line that
 * says what is wrong and how far it was read.
 */
#ifndef TP_TRACE_FILE_H
#define TP_TRACE_FILE_H

#include "../output/trace_in.h"
#include "../output/trace_table.h"

struct trace_file {
    const char *command; /* "table": in front of lines */
    const char *path;
    struct tp_trace_in_options options; /* but for the source */
    /* What is wrong with the event whose callback returned -EPROTO. */
    const char *(*flaw)(const void *context);
};

/* True: it was read to its end, and there were events in it, or an empty list of them. Else a line is on stderr. */
bool trace_file_read(const struct trace_file *file, struct tp_arena *arena, struct tp_trace_in_result *ret);

/* False: it has events, but another tool's; a line is on stderr. */
bool trace_file_is_pytorchs(const struct trace_file *file, const struct tp_trace_in_result *result,
                            const struct tp_trace_table_facts *facts);

#endif
