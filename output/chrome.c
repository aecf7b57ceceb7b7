/*
 * chrome.c: the Chrome trace, as torch.profiler writes it on a CPU.
 *
 * Facts: pytorch/kineto libkineto/src/output_json.cpp (forms, pids of spans, sort indexes), torch/csrc/profiler/
 * collection.cpp and kineto_shim.cpp (args and flows), files made with PyTorch 2.13.0; for TPROF_USE_PYTHON_EXPORT
 * torch/profiler/_chrome_trace_export.py. Members of an event stand in torch's order, one event a line.
 *
 * Where ours differ, and why:
 *   - Names keep every character (Kineto writes "unknown" for anything that is not ASCII).
 *   - Thread rows and flows come where they are first known, not all first or next to their slice: readers sort by
 *     time, and a stream does not know a backward operator while it writes the forward.
 *   - A range that ended on another thread, or that was said to be asynchronous, may overlap others of its thread
 *     without nesting, and Perfetto drops such slices. It stays a complete event, because torch_tb_profiler and
 *     HolisticTraceAnalysis read nothing else, but on a row of its own below its thread: "thread N (name) async". As
 *     many rows as ranges overlap; their ids are N + k * 2^22, above any Linux thread id.
 *   - Lost operators are told by instant events, and in the tprof object.
 */
#include "../agent/intern.h"
#include "chrome_head.h"
#include "chrome_inputs.h"
#include "fwdbwd.h"
#include "put.h"
#include "step_slices.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ASYNC_ROW (UINT64_C(1) << 22)
#define SORT_SPANS UINT64_C(536870912)
#define NAME_IDS (TP_INTERN_MAX_NAMES + 1) /* 0 is none */
/* Escaped names that are kept; the rest is escaped each time. */
#define NAME_CACHE (1024 * 1024)
/* The longest name that is escaped in one piece in the sink's buffer, and what an event needs besides it. */
#define NAME_DIRECT 8192
#define EVENT_ROOM 1024

struct async_row {
    uint64_t free_from; /* end of the last range on it */
    uint64_t tid;
};

struct thread {
    uint64_t serial;
    const struct tp_thread_info *info;
    struct tp_step_thread *steps; /* NULL: made no step */
    struct async_row *rows;       /* a heap: the row that is free first is the first */
    size_t row_count, row_capacity;
    uint8_t place_bytes;
    char place[64]; /* ,"pid":1,"tid":2,"ts": of its events */
};

struct name {
    const char *text; /* escaped; NULL: not yet */
    uint32_t bytes;
};

struct chrome {
    struct tp_json json;
    struct tp_sink *sink;
    struct tp_arena *arena;
    const struct tp_cycle_report *report;
    uint64_t base_ns, begin_ns, first_ns, last_ns, next_index, shown;
    bool show_ops, show_annotations;
    struct tp_fwdbwd flow;
    struct tp_step_slices slices;
    struct thread **threads; /* by serial, open addressing, a power of two */
    size_t thread_count, thread_capacity;
    struct thread *current;
    struct name *names; /* by name id, or NULL */
    size_t name_bytes;
};

/* Formatting of one event. */

static inline uint64_t since_base(const struct chrome *chrome, uint64_t ns)
{
    return ns > chrome->base_ns ? ns - chrome->base_ns : 0;
}

/* The members between name and time. */
static char *put_place(char *out, uint64_t pid, uint64_t tid)
{
    out = TP_PUT(out, ",\"pid\":");
    out = tp_put_u64(out, pid);
    out = TP_PUT(out, ",\"tid\":");
    out = tp_put_u64(out, tid);
    return TP_PUT(out, ",\"ts\":");
}

/* Threads. */

/* A metadata event; the arg is text, or number where text is NULL. */
static void write_metadata(struct chrome *chrome, const char *name, uint64_t ts_ns, uint64_t tid, const char *key,
                           const char *text, uint64_t number)
{
    struct tp_json *json = &chrome->json;
    tp_json_open_object(json);
    tp_json_text_member(json, "ph", "M");
    tp_json_text_member(json, "name", name);
    tp_json_key(json, "ts");
    tp_json_us(json, since_base(chrome, ts_ns));
    tp_json_u64_member(json, "pid", chrome->report->identity->pid);
    tp_json_u64_member(json, "tid", tid);
    tp_json_key(json, "args");
    tp_json_open_object(json);
    if (text)
        tp_json_text_member(json, key, text);
    else
        tp_json_u64_member(json, key, number);
    tp_json_close_object(json);
    tp_json_close_object(json);
}

static void write_thread_names(struct chrome *chrome, const struct thread *thread, uint64_t tid, uint64_t ts_ns)
{
    const struct tp_thread_info *info = thread->info;
    char name[96];
    if (chrome->report->settings->use_python_export)
        snprintf(name, sizeof name, "thread %u", info->os_id);
    else
        snprintf(name, sizeof name, "thread %u (%.*s)", info->os_id, (int)sizeof info->name, info->name);
    if (tid != info->os_id)
        strcat(name, " async");
    write_metadata(chrome, "thread_name", ts_ns, tid, "name", name, 0);
    write_metadata(chrome, "thread_sort_index", ts_ns, tid, "sort_index", NULL, info->os_id);
}

static struct thread **thread_place(struct thread **threads, size_t capacity, uint64_t serial)
{
    size_t at = serial * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (capacity - 1);
    while (threads[at] && threads[at]->serial != serial)
        at = (at + 1) & (capacity - 1);
    return &threads[at];
}

static int grow_threads(struct chrome *chrome)
{
    size_t capacity = chrome->thread_capacity ? chrome->thread_capacity * 2 : 64;
    struct thread **threads = tp_arena_alloc(chrome->arena, capacity * sizeof(struct thread *));
    if (!threads)
        return -ENOMEM;
    for (size_t i = 0; i < chrome->thread_capacity; i++)
        if (chrome->threads[i])
            *thread_place(threads, capacity, chrome->threads[i]->serial) = chrome->threads[i];
    chrome->threads = threads;
    chrome->thread_capacity = capacity;
    return 0;
}

/* The thread's state; its names are written when it is first seen. NULL: out of memory. */
static struct thread *find_thread(struct chrome *chrome, const struct tp_thread_info *info, uint64_t ts_ns)
{
    if (chrome->current && chrome->current->serial == info->serial)
        return chrome->current;
    if (chrome->thread_count * 2 >= chrome->thread_capacity && grow_threads(chrome) < 0)
        return NULL;
    struct thread **place = thread_place(chrome->threads, chrome->thread_capacity, info->serial);
    if (!*place) {
        struct thread *thread = tp_arena_alloc(chrome->arena, sizeof *thread);
        if (!thread)
            return NULL;
        thread->serial = info->serial;
        thread->info = info;
        thread->steps = tp_step_slices_thread(&chrome->slices, info->serial);
        char *end = put_place(thread->place, chrome->report->identity->pid, info->os_id);
        thread->place_bytes = (uint8_t)(end - thread->place);
        *place = thread;
        chrome->thread_count++;
        write_thread_names(chrome, thread, info->os_id, chrome->report->settings->use_python_export ? ts_ns
                                                                                                    : chrome->begin_ns);
    }
    return chrome->current = *place;
}

static void sink_row(struct async_row *rows, size_t count)
{
    struct async_row row = rows[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && rows[child + 1].free_from < rows[child].free_from)
            child++;
        if (rows[child].free_from >= row.free_from)
            break;
        rows[at] = rows[child];
    }
    rows[at] = row;
}

static void raise_row(struct async_row *rows, size_t at)
{
    struct async_row row = rows[at];
    for (; at > 0 && rows[(at - 1) / 2].free_from > row.free_from; at = (at - 1) / 2)
        rows[at] = rows[(at - 1) / 2];
    rows[at] = row;
}

/* A row on which nothing overlaps the event, a new one if need be. Its id, or 0: out of memory. */
static uint64_t async_row(struct chrome *chrome, struct thread *thread, const struct tp_event *event)
{
    if (thread->row_count > 0 && thread->rows[0].free_from <= event->start_ns) {
        uint64_t tid = thread->rows[0].tid;
        thread->rows[0].free_from = event->end_ns;
        sink_row(thread->rows, thread->row_count);
        return tid;
    }
    if (thread->row_count == thread->row_capacity) {
        size_t capacity = thread->row_capacity ? thread->row_capacity * 2 : 4;
        struct async_row *rows = tp_arena_alloc(chrome->arena, capacity * sizeof *rows);
        if (!rows)
            return 0;
        if (thread->rows)
            memcpy(rows, thread->rows, thread->row_count * sizeof *rows);
        thread->rows = rows;
        thread->row_capacity = capacity;
    }
    uint64_t tid = thread->info->os_id + (thread->row_count + 1) * ASYNC_ROW;
    thread->rows[thread->row_count] = (struct async_row){event->end_ns, tid};
    raise_row(thread->rows, thread->row_count++);
    write_thread_names(chrome, thread, tid, event->start_ns);
    return tid;
}

/* Events. */

/* The escaped name of the event from the cache, added to it if there is room; NULL: escape it in place. */
static const struct name *cached_name(struct chrome *chrome, const struct tp_event *event)
{
    if (event->name_id == 0 || event->name_id >= NAME_IDS || !chrome->names)
        return NULL;
    struct name *name = &chrome->names[event->name_id];
    if (name->text)
        return name;
    size_t room = (size_t)event->name_bytes * TP_JSON_ESCAPE_MAX;
    if (event->name_bytes > NAME_DIRECT || chrome->name_bytes + room > NAME_CACHE)
        return NULL;
    /* Escaped in the sink's buffer first, so that only what it needs is kept. */
    char *scratch = tp_sink_reserve(chrome->sink, room + 1);
    size_t bytes = tp_json_escape(scratch, event->name, event->name_bytes);
    char *text = tp_arena_copy(chrome->arena, scratch, bytes);
    if (!text)
        return NULL;
    chrome->name_bytes += bytes;
    *name = (struct name){text, (uint32_t)bytes};
    return name;
}

/* The beginning of a complete event up to its name, quotes included. */
static char *put_begin(struct chrome *chrome, const struct tp_event *event)
{
    bool annotation = event->scope == TP_SCOPE_USER_SCOPE;
    const struct name *name = cached_name(chrome, event);
    bool direct = name || event->name_bytes <= NAME_DIRECT;
    char *out = tp_sink_reserve(chrome->sink, EVENT_ROOM + (direct ? NAME_DIRECT * TP_JSON_ESCAPE_MAX : 0));
    char *begin = out;
    if (annotation)
        out = TP_PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":");
    else
        out = TP_PUT(out, ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":");
    if (!direct) {
        tp_sink_advance(chrome->sink, (size_t)(out - begin));
        chrome->json.after_key = true; /* no comma: the punctuation of events is ours */
        tp_json_string(&chrome->json, event->name, event->name_bytes);
        return tp_sink_reserve(chrome->sink, EVENT_ROOM);
    }
    *out++ = '"';
    if (name)
        out = tp_put_text(out, name->text, name->bytes);
    else
        out += tp_json_escape(out, event->name, event->name_bytes);
    *out++ = '"';
    tp_sink_advance(chrome->sink, (size_t)(out - begin));
    return out;
}

static void write_slice(struct chrome *chrome, const struct thread *thread, uint64_t tid, const struct tp_event *event)
{
    char *begin = put_begin(chrome, event), *out = begin;
    if (tid == thread->info->os_id)
        out = tp_put_text(out, thread->place, thread->place_bytes);
    else
        out = put_place(out, chrome->report->identity->pid, tid);
    out = tp_put_us(out, since_base(chrome, event->start_ns));
    out = TP_PUT(out, ",\"dur\":");
    out = tp_put_us(out, event->end_ns > event->start_ns ? event->end_ns - event->start_ns : 0);
    out = TP_PUT(out, ",\"args\":{\"External id\":");
    out = tp_put_u64(out, event->index + 1);
    if (event->sequence >= 0) {
        out = TP_PUT(out, ",\"Sequence number\":");
        out = tp_put_u64(out, (uint64_t)event->sequence);
        out = TP_PUT(out, ",\"Fwd thread id\":");
        out = tp_put_u64(out, event->forward_thread);
    }
    out = TP_PUT(out, ",\"Record function id\":");
    out = tp_put_u64(out, event->id);
    if (event->input_count > 0) {
        tp_sink_advance(chrome->sink, (size_t)(out - begin));
        tp_chrome_write_inputs(chrome->sink, event);
        begin = out = tp_sink_reserve(chrome->sink, EVENT_ROOM);
    }
    if (event->flags & TP_EVENT_UNFINISHED)
        out = TP_PUT(out, ",\"finished\":false");
    out = TP_PUT(out, ",\"Ev Idx\":");
    out = tp_put_u64(out, event->index);
    out = TP_PUT(out, "}}");
    tp_sink_advance(chrome->sink, (size_t)(out - begin));
}

static void write_flow(struct chrome *chrome, bool start, uint64_t id, uint64_t tid, uint64_t ts_ns)
{
    char *begin = tp_sink_reserve(chrome->sink, EVENT_ROOM);
    char *out = start ? TP_PUT(begin, ",\n{\"ph\":\"s\",\"id\":") : TP_PUT(begin, ",\n{\"ph\":\"f\",\"id\":");
    out = tp_put_u64(out, id);
    out = put_place(out, chrome->report->identity->pid, tid);
    out = tp_put_us(out, since_base(chrome, ts_ns));
    out = TP_PUT(out, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"");
    out = start ? TP_PUT(out, "}") : TP_PUT(out, ",\"bp\":\"e\"}");
    tp_sink_advance(chrome->sink, (size_t)(out - begin));
}

static void write_link(void *context, uint64_t id, const struct tp_fwdbwd_forward *forward,
                       const struct tp_event *backward)
{
    write_flow(context, true, id, forward->os_id, forward->start_ns);
    write_flow(context, false, id, backward->thread->os_id, backward->start_ns);
}

static int chrome_segment(void *state, const struct tp_event *events, size_t count)
{
    struct chrome *chrome = state;
    for (size_t i = 0; i < count; i++) {
        const struct tp_event *event = &events[i];
        if (event->index >= chrome->next_index)
            chrome->next_index = event->index + 1;
        if (!(event->scope == TP_SCOPE_USER_SCOPE ? chrome->show_annotations : chrome->show_ops))
            continue;
        struct thread *thread = find_thread(chrome, event->thread, event->start_ns);
        if (!thread)
            return -ENOMEM;
        uint64_t tid = thread->info->os_id;
        if (event->flags & TP_EVENT_ASYNC)
            tid = async_row(chrome, thread, event);
        else if (thread->steps)
            tp_step_slices_see(&chrome->slices, thread->steps, event->start_ns, event->end_ns);
        if (tid == 0)
            return -ENOMEM;
        if (chrome->first_ns > event->start_ns)
            chrome->first_ns = event->start_ns;
        if (chrome->last_ns < event->end_ns)
            chrome->last_ns = event->end_ns;
        write_slice(chrome, thread, tid, event);
        chrome->shown++;
    }
    int status = chrome->show_ops ? tp_fwdbwd_segment(&chrome->flow, events, count, write_link, chrome) : 0;
    return status < 0 ? status : tp_sink_status(chrome->sink);
}

/* Begin and end. */

static void write_process(struct chrome *chrome, uint64_t ts_ns)
{
    const struct tp_cycle_report *report = chrome->report;
    const char *process = report->settings->use_python_export ? "python" : report->identity->process;
    write_metadata(chrome, "process_name", ts_ns, 0, "name", process, 0);
    write_metadata(chrome, "process_labels", ts_ns, 0, "labels", "CPU", 0);
    write_metadata(chrome, "process_sort_index", ts_ns, 0, "sort_index", NULL, report->identity->pid);
}

static void *chrome_begin(const struct tp_cycle_report *report, const struct tp_writer_file *file)
{
    struct chrome *chrome = tp_arena_alloc(file->arena, sizeof *chrome);
    if (!chrome)
        return NULL;
    chrome->sink = file->sink;
    chrome->arena = file->arena;
    chrome->report = report;
    chrome->base_ns = tp_chrome_base_ns(report->window_begin_ns);
    chrome->begin_ns = report->window_begin_ns;
    chrome->first_ns = UINT64_MAX;
    chrome->show_ops = tp_writer_shows(report->settings, TP_TYPE_CPU_OP);
    chrome->show_annotations = tp_writer_shows(report->settings, TP_TYPE_USER_ANNOTATION);
    chrome->names = tp_arena_alloc(file->arena, NAME_IDS * sizeof *chrome->names);
    bool draw_steps = chrome->show_annotations && !report->steps_by_program;
    if (tp_fwdbwd_init(&chrome->flow, file->arena) < 0 ||
        tp_step_slices_init(&chrome->slices, report->steps, draw_steps ? report->step_count : 0,
                            report->window_begin_ns, report->window_end_ns, file->arena) < 0)
        return NULL;
    struct tp_json *json = &chrome->json;
    tp_json_init(json, file->sink);
    tp_json_open_object(json);
    tp_chrome_write_head(json, report);
    tp_json_key(json, "traceEvents");
    tp_json_open_array(json);
    write_process(chrome, report->window_begin_ns); /* so there is an event, and all others follow a comma */
    return chrome;
}

/* The steps, as torch's profiler marks them: ranges that the agent, not the program, opened. */
static int write_steps(struct chrome *chrome)
{
    for (size_t i = 0; i < chrome->slices.step_count; i++) {
        const struct tp_step_span *step = &chrome->report->steps[i];
        char name[40];
        struct tp_event event = {.name = name, .scope = TP_SCOPE_USER_SCOPE, .sequence = -1};
        if (!tp_step_slices_get(&chrome->slices, i, &event.start_ns, &event.end_ns))
            continue;
        event.name_bytes = (uint32_t)snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)step->number);
        event.index = chrome->next_index++;
        event.thread = &step->thread;
        struct thread *thread = find_thread(chrome, event.thread, event.start_ns);
        if (!thread)
            return -ENOMEM;
        write_slice(chrome, thread, thread->info->os_id, &event);
        if (chrome->first_ns > event.start_ns)
            chrome->first_ns = event.start_ns;
        if (chrome->last_ns < event.end_ns)
            chrome->last_ns = event.end_ns;
    }
    return 0;
}

/* An event whose place is text, as those that stand beside the processes. */
static void open_event(struct chrome *chrome, const char *ph, const char *key, const char *value, const char *name,
                       const char *pid, const char *tid, uint64_t ts_ns)
{
    struct tp_json *json = &chrome->json;
    tp_json_open_object(json);
    tp_json_text_member(json, "ph", ph);
    tp_json_text_member(json, key, value);
    tp_json_text_member(json, "name", name);
    tp_json_text_member(json, "pid", pid);
    tp_json_text_member(json, "tid", tid);
    tp_json_key(json, "ts");
    tp_json_us(json, since_base(chrome, ts_ns));
}

/* An instant of the process where events are missing, so that a gap is not taken for idleness. */
static void write_loss(struct chrome *chrome, uint64_t count, const char *where, uint64_t ts_ns)
{
    if (count == 0)
        return;
    struct tp_json *json = &chrome->json;
    char name[96];
    snprintf(name, sizeof name, "tprof: %llu operators lost%s", (unsigned long long)count, where);
    tp_json_open_object(json);
    tp_json_text_member(json, "ph", "i");
    tp_json_text_member(json, "cat", "cpu_instant_event");
    tp_json_text_member(json, "s", "p");
    tp_json_text_member(json, "name", name);
    tp_json_u64_member(json, "pid", chrome->report->identity->pid);
    tp_json_u64_member(json, "tid", chrome->report->identity->pid);
    tp_json_key(json, "ts");
    tp_json_us(json, since_base(chrome, ts_ns));
    tp_json_close_object(json);
}

/* Kineto's closing items: the span of the trace, the start of the iteration, the end of the window. */
static void write_closing(struct chrome *chrome)
{
    const struct tp_cycle_report *report = chrome->report;
    struct tp_json *json = &chrome->json;
    uint64_t begin = report->window_begin_ns, end = report->window_end_ns, closing = end;
    if (report->settings->use_python_export && chrome->first_ns != UINT64_MAX) {
        begin = chrome->first_ns;
        end = chrome->last_ns;
        closing = end + 1000;
    } else if (chrome->first_ns != UINT64_MAX) {
        /* A step's slice stands some nanoseconds outside the ranges that begin and end with the window. */
        begin = chrome->first_ns < begin ? chrome->first_ns : begin;
        closing = end = chrome->last_ns > end ? chrome->last_ns : end;
    }
    open_event(chrome, "X", "cat", "Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", begin);
    tp_json_key(json, "dur");
    tp_json_us(json, end > begin ? end - begin : 0);
    tp_json_key(json, "args");
    tp_json_open_object(json);
    tp_json_u64_member(json, "Op count", 0);
    tp_json_close_object(json);
    tp_json_close_object(json);
    tp_json_open_object(json);
    tp_json_text_member(json, "ph", "M");
    tp_json_text_member(json, "name", "process_sort_index");
    tp_json_key(json, "ts");
    tp_json_us(json, since_base(chrome, begin));
    tp_json_text_member(json, "pid", "Spans");
    tp_json_u64_member(json, "tid", 0);
    tp_json_key(json, "args");
    tp_json_open_object(json);
    tp_json_u64_member(json, "sort_index", SORT_SPANS);
    tp_json_close_object(json);
    tp_json_close_object(json);
    open_event(chrome, "i", "s", "g", "Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", begin);
    tp_json_close_object(json);
    open_event(chrome, "i", "s", "g", "Record Window End", "", "", closing);
    tp_json_close_object(json);
}

static int chrome_end(void *state, const struct tp_model_counts *counts)
{
    struct chrome *chrome = state;
    const struct tp_cycle_report *report = chrome->report;
    int status = write_steps(chrome);
    if (status < 0)
        return status;
    write_loss(chrome, report->lost_before, " before this", report->dropped_end_ns);
    write_loss(chrome, counts->lost, "", report->window_end_ns);
    write_loss(chrome, counts->unwritten, " behind this", chrome->first_ns == UINT64_MAX ? chrome->begin_ns : chrome->last_ns);
    write_closing(chrome);
    tp_json_close_array(&chrome->json);
    tp_chrome_write_tail(&chrome->json, report, counts, chrome->shown);
    tp_json_close_object(&chrome->json);
    tp_sink_put(chrome->sink, "\n", 1);
    return tp_sink_status(chrome->sink);
}

const struct tp_writer tp_chrome_writer = {
    .name = "chrome",
    .suffix = "pt.trace.json",
    .gzip = true,
    .begin = chrome_begin,
    .segment = chrome_segment,
    .end = chrome_end,
};
