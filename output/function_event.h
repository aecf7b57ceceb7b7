/*
 * function_event.h: one event as torch's FunctionEvent has it, and the JSON object that it is in events.json and in
 * `tprof events --json`.
 */
#ifndef TP_FUNCTION_EVENT_H
#define TP_FUNCTION_EVENT_H

#include "ids.h"

struct tp_function_event {
    uint64_t id; /* no other event of the file has it */
    bool has_cycle;
    uint64_t cycle;       /* of several in one file, whose ids are apart */
    uint64_t external_id; /* as in the trace; 0: none */
    const char *name; /* ProfilerStep*, where trace_name is ProfilerStep#1 */
    const char *trace_name; /* NULL: the same */
    size_t name_bytes, trace_name_bytes;
    int64_t start_ns, end_ns; /* since the base of the trace's times */
    uint64_t thread;          /* as PyTorch counts them; 0: not known */
    const char *tid;          /* JSON: a number or a text */
    size_t tid_bytes;
    bool has_parent;
    uint64_t parent;
    const struct tp_ids *children; /* NULL: none */
    const char *device; /* "CPU", "CUDA" */
    bool is_async, is_annotation, is_python;
    int scope; /* negative: not known */
    int64_t sequence; /* -1: none */
    uint64_t forward_thread;
    bool has_link; /* of what is not an operator: the external_id of the one that it was for */
    uint64_t link;
    const char *shapes; /* JSON; NULL: not recorded */
    size_t shapes_bytes;
    bool has_flops, has_memory;
    uint64_t flops;
    int64_t cpu_memory, device_memory;
    const char *stack; /* frames, the innermost first, each followed by ';'; NULL: not recorded */
    size_t stack_bytes;
};

/* Where it goes: room for so many bytes (at most 64 KiB), of which then some are taken. */
struct tp_function_out {
    void *context;
    char *(*reserve)(void *context, size_t bytes);
    void (*advance)(void *context, size_t bytes);
};

void tp_function_event_write(const struct tp_function_event *event, const struct tp_function_out *out);

#endif
