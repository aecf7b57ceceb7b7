#include "events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../agent/log.h"
#include "averages.h"
#include "chrome_head.h"
#include "event_flops.h"
#include "events_earlier.h"
#include "families.h"
#include "function_event.h"
#include "inputs.h"
#include "json.h"
#include "lineage.h"

struct events {
    const struct tp_cycle_report *report;
    struct tp_sink *sink;
    struct tp_json json;
    struct tp_function_out out;
    struct tp_families *families;
    struct tp_ids_pool pool;
    struct tp_ids *steps; /* by step: what lies in it */
    char *shapes; /* text of the event's */
    uint64_t written;
};

static char *reserve(void *context, size_t bytes)
{
    return tp_sink_reserve(context, bytes);
}

static void advance(void *context, size_t bytes)
{
    tp_sink_advance(context, bytes);
}

static void write_head(struct events *events)
{
    const struct tp_cycle_report *report = events->report;
    struct tp_json *json = &events->json;
    tp_json_init(json, events->sink);
    tp_json_open_object(json);
    tp_json_u64_member(json, "schema", 1);
    tp_json_text_member(json, "version", TP_VERSION);
    tp_json_text_member(json, "host", report->identity->host);
    tp_json_u64_member(json, "pid", report->identity->pid);
    tp_json_u64_member(json, "cycle", report->cycle);
    tp_json_u64_member(json, "base_ns", tp_chrome_base_ns(report->window_begin_ns));
    tp_json_u64_member(json, "begin_ns", report->window_begin_ns);
    tp_json_u64_member(json, "end_ns", report->window_end_ns);
    tp_json_key(json, "events");
    tp_json_open_array(json);
}

static void *events_begin(const struct tp_cycle_report *report, const struct tp_writer_file *file)
{
    struct events *events = tp_arena_alloc(file->arena, sizeof *events);
    if (!events || !report->lineage)
        return NULL;
    events->report = report;
    events->sink = file->sink;
    events->out = (struct tp_function_out){file->sink, reserve, advance};
    events->families = tp_families_new(file->arena);
    events->pool.arena = file->arena;
    events->steps = tp_arena_alloc(file->arena, (report->step_count + 1) * sizeof *events->steps);
    events->shapes = tp_arena_alloc(file->arena, TP_INPUTS_SHAPES);
    if (!events->families || !events->steps || !events->shapes)
        return NULL;
    write_head(events);
    return events;
}

static void write_event(struct events *events, const struct tp_function_event *event)
{
    if (events->written++)
        tp_sink_put(events->sink, ",\n", 2);
    else
        tp_sink_put(events->sink, "\n", 1);
    tp_function_event_write(event, &events->out);
}

static int64_t since_base(const struct events *events, uint64_t ns)
{
    return (int64_t)(ns - tp_chrome_base_ns(events->report->window_begin_ns));
}

static struct tp_function_event place_of(const struct events *events, const struct tp_thread_info *thread,
                                         uint64_t index, uint64_t start_ns, uint64_t end_ns, char tid[24])
{
    return (struct tp_function_event){
        .id = index + 1,
        .external_id = index + 1,
        .start_ns = since_base(events, start_ns),
        .end_ns = since_base(events, end_ns),
        .thread = thread->logical_id,
        .tid = tid,
        .tid_bytes = (size_t)snprintf(tid, 24, "%u", thread->os_id),
        .device = "CPU",
        .sequence = -1,
        .has_flops = events->report->settings->with_flops,
        .has_cycle = events->report->settings->acc_events,
        .cycle = events->report->cycle,
    };
}

/* "ProfilerStep#3" goes into one row with the others. */
static void name_step(struct tp_function_event *event, const char *name, size_t bytes)
{
    event->trace_name = name;
    event->trace_name_bytes = bytes;
    event->name = "ProfilerStep*";
    event->name_bytes = sizeof "ProfilerStep*" - 1;
}

static void write_shown(struct events *events, const struct tp_event *event, const struct tp_ids *children)
{
    static const char step[] = "ProfilerStep#";
    const struct tp_settings *settings = events->report->settings;
    char tid[24];
    struct tp_function_event shown =
        place_of(events, event->thread, event->index, event->start_ns, event->end_ns, tid);
    shown.name = event->name;
    shown.name_bytes = event->name_bytes;
    if (event->name_bytes >= sizeof step - 1 && memcmp(event->name, step, sizeof step - 1) == 0)
        name_step(&shown, event->name, event->name_bytes);
    bool in_step;
    uint64_t parent = tp_lineage_parent(events->report->lineage, event, &in_step);
    struct tp_lineage_step around;
    if (in_step && tp_lineage_step(events->report->lineage, parent, &around))
        parent = around.index;
    shown.has_parent = parent != TP_LINEAGE_NONE;
    shown.parent = parent + 1;
    shown.children = children;
    shown.is_async = event->flags & TP_EVENT_ASYNC;
    shown.is_annotation = event->scope == TP_SCOPE_USER_SCOPE;
    shown.scope = event->scope;
    shown.sequence = event->sequence;
    shown.forward_thread = event->sequence >= 0 ? event->forward_thread : 0; /* as torch shows it */
    if (settings->record_shapes || settings->with_flops) {
        shown.shapes = events->shapes;
        shown.shapes_bytes = tp_inputs_shapes(event->inputs, event->input_words, event->input_count, events->shapes);
    }
    if (settings->with_flops)
        shown.flops = tp_event_flops(event, TP_FLOPS_TORCH);
    write_event(events, &shown);
}

/* To the event around it, or to the step. */
static int add_to_parent(struct events *events, const struct tp_event *event, size_t at)
{
    bool in_step;
    uint64_t parent = tp_lineage_parent(events->report->lineage, event, &in_step);
    if (in_step)
        return tp_ids_add(&events->pool, &events->steps[parent], event->index + 1);
    if (event->parent == UINT64_MAX)
        return 0;
    struct tp_family *family = tp_families_around(events->families, at);
    return family ? tp_ids_add(&events->pool, &family->ids, event->index + 1) : -ENOMEM;
}

/* What lies in an event that is not shown lies in the one around it. */
static int hand_up(struct events *events, const struct tp_event *event, size_t at)
{
    struct tp_ids *own = &tp_families_of(events->families, at)->ids;
    if (own->count == 0 || event->parent == UINT64_MAX) {
        tp_ids_clear(&events->pool, own);
        return 0;
    }
    struct tp_family *family = tp_families_around(events->families, at);
    return family ? tp_ids_move(&events->pool, &family->ids, own) : -ENOMEM;
}

/* Steps lie in a range around them. */
static int add_steps(struct events *events, uint64_t index, struct tp_ids *ids)
{
    struct tp_lineage_step step;
    int failed = 0;
    for (size_t i = 0; !failed && i < events->report->step_count; i++)
        if (tp_lineage_step(events->report->lineage, i, &step) && step.parent == index)
            failed = tp_ids_add(&events->pool, ids, step.index + 1);
    return failed;
}

static int events_segment(void *state, const struct tp_event *segment, size_t count)
{
    struct events *events = state;
    struct tp_lineage *lineage = events->report->lineage;
    int failed = tp_families_begin(events->families, segment, count);
    for (size_t i = 0; !failed && i < count; i++)
        if (tp_lineage_part(lineage, &segment[i]) == TP_LINEAGE_SHOWN)
            failed = add_to_parent(events, &segment[i], i);
    for (size_t i = count; !failed && i-- > 0;)
        if (tp_lineage_part(lineage, &segment[i]) != TP_LINEAGE_SHOWN)
            failed = hand_up(events, &segment[i], i);
    for (size_t i = 0; !failed && i < count; i++) {
        struct tp_ids *ids = &tp_families_of(events->families, i)->ids;
        if (tp_lineage_part(lineage, &segment[i]) == TP_LINEAGE_SHOWN) {
            if (tp_lineage_has_steps(lineage, segment[i].index))
                failed = add_steps(events, segment[i].index, ids);
            write_shown(events, &segment[i], ids);
            tp_ids_clear(&events->pool, ids);
        }
    }
    return failed < 0 ? failed : tp_sink_status(events->sink);
}

static void write_steps(struct events *events)
{
    for (size_t i = 0; i < events->report->step_count; i++) {
        struct tp_lineage_step step;
        char tid[24], name[40];
        if (!tp_lineage_step(events->report->lineage, i, &step))
            continue;
        const struct tp_step_span *span = &events->report->steps[i];
        struct tp_function_event shown =
            place_of(events, &span->thread, step.index, step.start_ns, step.end_ns, tid);
        name_step(&shown, name, (size_t)snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)span->number));
        shown.has_parent = step.parent != TP_LINEAGE_NONE;
        shown.parent = step.parent + 1;
        shown.children = &events->steps[i];
        shown.is_annotation = true;
        shown.scope = TP_SCOPE_USER_SCOPE;
        if (events->report->settings->record_shapes || events->report->settings->with_flops) {
            shown.shapes = "[]";
            shown.shapes_bytes = 2;
        }
        write_event(events, &shown);
    }
}

/* Behind the cycle's own, as in torch. A file that is gone or damaged is told of, and its events are not there. */
static int add_earlier(struct events *events)
{
    const char *path = events->report->earlier_events;
    uint64_t before = events->written;
    int failed = path ? tp_events_copy(path, events->sink, &events->written, events->pool.arena) : 0;
    if (failed == 0 || events->written > before)
        return failed;
    tp_log(TP_LOG_WARN, "%s: %s; the events of the cycles before are left out", path,
           failed == -EBADMSG ? "it is damaged" : strerror(-failed));
    return 0;
}

static int events_end(void *state, const struct tp_model_counts *counts)
{
    struct events *events = state;
    const struct tp_cycle_report *report = events->report;
    struct tp_json *json = &events->json;
    write_steps(events);
    int failed = add_earlier(events);
    if (failed < 0)
        return failed;
    tp_sink_put(events->sink, "\n", 1);
    tp_json_close_array(json);
    tp_json_u64_member(json, "count", events->written);
    tp_json_u64_member(json, "kept", counts->kept);
    tp_json_u64_member(json, "lost", counts->lost + counts->unwritten + report->lost_before);
    tp_json_key(json, "partial");
    tp_json_bool(json, report->partial);
    if (report->partial_why)
        tp_json_text_member(json, "why", report->partial_why);
    tp_json_close_object(json);
    tp_sink_put(events->sink, "\n", 1);
    return tp_sink_status(events->sink);
}

const struct tp_writer tp_events_writer = {
    .name = "events",
    .suffix = "events.json",
    .gzip = true,
    .begin = events_begin,
    .segment = events_segment,
    .end = events_end,
};
