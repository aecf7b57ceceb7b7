#include "trace_judge_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Phases of the Trace Event Format. Those that are not judged here only have to be known. */
#define PHASES "BEXiICbneSTpFstfPNODMVvR(),c"

struct judge *judge_new(struct findings *findings)
{
    struct judge *judge = calloc(1, sizeof *judge);
    if (judge)
        judge->findings = findings;
    return judge;
}

void judge_free(struct judge *judge)
{
    for (size_t i = 0; i < judge->row_count; i++) {
        free(judge->rows[i].pid);
        free(judge->rows[i].tid);
        free(judge->rows[i].slices);
        free(judge->rows[i].open);
    }
    for (size_t i = 0; i < judge->page_slots; i++)
        free(judge->pages[i]);
    free(judge->pages);
    free(judge->rows);
    free(judge->row_slots);
    free(judge->flows);
    free(judge->asyncs);
    free(judge->works);
    trace_names_free(&judge->names);
    free(judge->steps);
    free(judge);
}

/* Room for one more. */
static bool grow(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity ? *capacity * 2 : 64;
    void *memory = realloc(*(void **)array, larger * size);
    if (!memory)
        return false;
    *(void **)array = memory;
    *capacity = larger;
    return true;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ b >> 32 ^ b << 32) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* Rows. */

static bool place_rows(struct judge *judge)
{
    size_t count = judge->row_slot_count ? judge->row_slot_count * 2 : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < judge->row_count; i++) {
        size_t at = judge->rows[i].key & (count - 1);
        while (slots[at])
            at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(judge->row_slots);
    judge->row_slots = slots;
    judge->row_slot_count = count;
    return true;
}

/* Index of the row of the event's pid and tid; negative: out of memory. */
static int64_t row_of(struct judge *judge, const struct tp_trace_event *event)
{
    uint64_t key = mix(event->pid.hash, event->tid.hash);
    if (judge->row_count * 2 >= judge->row_slot_count && !place_rows(judge))
        return -ENOMEM;
    size_t at = key & (judge->row_slot_count - 1);
    for (; judge->row_slots[at]; at = (at + 1) & (judge->row_slot_count - 1))
        if (judge->rows[judge->row_slots[at] - 1].key == key)
            return judge->row_slots[at] - 1;
    if (!grow(&judge->rows, judge->row_count, &judge->row_capacity, sizeof *judge->rows))
        return -ENOMEM;
    struct row row = {.key = key, .pid = strdup(event->pid.text), .tid = strdup(event->tid.text)};
    if (!row.pid || !row.tid) {
        free(row.pid);
        free(row.tid);
        return -ENOMEM;
    }
    judge->rows[judge->row_count] = row;
    judge->row_slots[at] = (uint32_t)++judge->row_count;
    return (int64_t)judge->row_count - 1;
}

/* The set of Ev Idx. */

static struct page **page_place(struct page **pages, size_t slots, uint64_t number)
{
    size_t at = mix(number, 0) & (slots - 1);
    while (pages[at] && pages[at]->number != number)
        at = (at + 1) & (slots - 1);
    return &pages[at];
}

/* 1: it was there, 0: it is new. */
static int add_index(struct judge *judge, uint64_t index)
{
    if (judge->page_count * 2 >= judge->page_slots) {
        size_t slots = judge->page_slots ? judge->page_slots * 2 : 64;
        struct page **pages = calloc(slots, sizeof(struct page *));
        if (!pages)
            return -ENOMEM;
        for (size_t i = 0; i < judge->page_slots; i++)
            if (judge->pages[i])
                *page_place(pages, slots, judge->pages[i]->number) = judge->pages[i];
        free(judge->pages);
        judge->pages = pages;
        judge->page_slots = slots;
    }
    struct page **place = page_place(judge->pages, judge->page_slots, index / PAGE_BITS);
    if (!*place) {
        *place = calloc(1, sizeof **place);
        if (!*place)
            return -ENOMEM;
        (*place)->number = index / PAGE_BITS;
        judge->page_count++;
    }
    uint64_t *word = &(*place)->bits[index % PAGE_BITS / 64], bit = UINT64_C(1) << index % 64;
    int was = (*word & bit) != 0;
    *word |= bit;
    return was;
}

/* One event. */

static void report(struct judge *judge, enum finding_kind kind, const struct tp_trace_event *event, const char *text)
{
    findings_add(judge->findings, kind, event->number, event->offset, "%s (ph %c, name '%s')", text,
                 event->phase ? event->phase : '?', event->name.text);
}

static void judge_flaws(struct judge *judge, const struct tp_trace_event *event)
{
    static const struct {
        unsigned flaw;
        const char *text;
    } flaws[] = {
        {TP_TRACE_TWICE, "a member stands in it twice"},
        {TP_TRACE_BAD_PHASE, "ph is missing, or no single character"},
        {TP_TRACE_BAD_TIME, "ts or dur is no number"},
        {TP_TRACE_FAR_TIME, "ts or dur is too large"},
        {TP_TRACE_BAD_TEXT, "name or cat is no string"},
        {TP_TRACE_BAD_PLACE, "pid, tid or id is neither a number nor a string"},
    };
    for (size_t i = 0; i < TP_COUNT(flaws); i++)
        if (event->flaws & flaws[i].flaw)
            report(judge, FINDING_EVENT, event, flaws[i].text);
}

static bool is_text(const struct tp_trace_text *text, const char *wanted)
{
    return text->there && text->is_string && text->bytes == strlen(wanted) && strcmp(text->text, wanted) == 0;
}

/* Has what its phase cannot do without. */
static bool is_complete(struct judge *judge, const struct tp_trace_event *event)
{
    bool timed = strchr("BEXiIstfCbneSTpFNOD", event->phase), placed = strchr("BEXiIstf", event->phase),
         named = strchr("BXiIstfCM", event->phase), same = strchr("stfbneSTpFNOD", event->phase);
    const char *lacks = timed && !event->has_ts                           ? "ts is missing"
                        : placed && (!event->pid.there || !event->tid.there) ? "pid or tid is missing"
                        : timed && !event->pid.there                        ? "pid is missing"
                        : named && !event->name.there                       ? "name is missing"
                        : event->phase == 'X' && !event->has_dur            ? "dur is missing"
                        : event->phase == 'C' && !event->has_args           ? "args are missing"
                        : same && !event->id.there                          ? "id is missing"
                                                                            : NULL;
    /* What is there but wrong was said. */
    if (lacks && !(event->flaws & (TP_TRACE_BAD_TIME | TP_TRACE_FAR_TIME | TP_TRACE_BAD_TEXT | TP_TRACE_BAD_PLACE)))
        report(judge, FINDING_EVENT, event, lacks);
    return !lacks;
}

static int add_slice(struct judge *judge, struct row *row, const struct slice *slice)
{
    if (!grow(&row->slices, row->count, &row->capacity, sizeof *row->slices))
        return -ENOMEM;
    row->slices[row->count++] = *slice;
    judge->slices++;
    return 0;
}

static int see_step(struct judge *judge, const struct tp_trace_event *event)
{
    static const char prefix[] = "ProfilerStep#";
    if (strncmp(event->name.text, prefix, sizeof prefix - 1) != 0)
        return 0;
    char *end;
    const char *digits = event->name.text + sizeof prefix - 1;
    unsigned long long number = strtoull(digits, &end, 10);
    if (end == digits || *end || *digits == '-' || *digits == '+')
        return 0; /* a name of the program's own */
    if (!grow(&judge->steps, judge->step_count, &judge->step_capacity, sizeof *judge->steps))
        return -ENOMEM;
    judge->steps[judge->step_count++] = (struct step){
        .process = event->pid.hash, .ns = event->ts_ns, .end_ns = event->ts_ns + event->dur_ns, .number = number, .offset = event->offset,
        .index = event->has_index ? event->index : -1, .event = (uint32_t)event->number,
    };
    return 0;
}

static enum layer layer_of(const struct tp_trace_event *event)
{
    static const struct {
        const char *category;
        enum layer layer;
    } layers[] = {
        {"cpu_op", LAYER_OPERATORS},     {"user_annotation", LAYER_OPERATORS}, {"python_function", LAYER_PYTHON},
        {"cuda_runtime", LAYER_CALLS},   {"cuda_driver", LAYER_CALLS},         {"xpu_runtime", LAYER_CALLS},
        {"xpu_driver", LAYER_CALLS},     {"mtia_runtime", LAYER_CALLS},        {"privateuse1_runtime", LAYER_CALLS},
        {"privateuse1_driver", LAYER_CALLS},
        {"kernel", LAYER_DEVICE},        {"gpu_memcpy", LAYER_DEVICE},         {"gpu_memset", LAYER_DEVICE},
        {"cuda_sync", LAYER_DEVICE},     {"cuda_event", LAYER_DEVICE},         {"gpu_user_annotation", LAYER_DEVICE},
        {"overhead", LAYER_OVERHEAD},    {"cpu_instant_event", LAYER_MEMORY},
    };
    for (size_t i = 0; i < TP_COUNT(layers); i++)
        if (is_text(&event->cat, layers[i].category))
            return layers[i].layer;
    return LAYER_OTHER;
}

/* A call, or what it asked the device for. A wait's own record is neither: it may begin before the call that it is of. */
static int see_work(struct judge *judge, const struct tp_trace_event *event, const struct slice *slice)
{
    bool is_device = is_text(&event->cat, "kernel") || is_text(&event->cat, "gpu_memcpy") ||
                     is_text(&event->cat, "gpu_memset");
    if (!event->has_correlation || (!is_device && slice->layer != LAYER_CALLS))
        return 0;
    if (!grow(&judge->works, judge->work_count, &judge->work_capacity, sizeof *judge->works))
        return -ENOMEM;
    judge->works[judge->work_count++] = (struct work){
        .correlation = event->correlation, .ns = event->ts_ns, .process = event->pid.hash, .offset = event->offset,
        .event = (uint32_t)event->number, .name = slice->name, .is_device = is_device,
    };
    return 0;
}

static int see_complete(struct judge *judge, const struct tp_trace_event *event)
{
    bool annotation = is_text(&event->cat, "user_annotation");
    if (annotation || is_text(&event->cat, "cpu_op")) {
        judge->recorded++;
        judge->unfinished += event->unfinished;
    }
    if (event->dur_ns < 0) {
        findings_add(judge->findings, FINDING_DURATION, event->number, event->offset,
                     "dur is negative: %lld ns (name '%s')", (long long)event->dur_ns, event->name.text);
        return 0;
    }
    int64_t at = row_of(judge, event), name = trace_names_number(&judge->names, &event->name);
    if (at < 0 || name < 0)
        return -ENOMEM;
    struct row *row = &judge->rows[at];
    row->judged_window |= !is_text(&event->cat, "Trace");
    struct slice slice = {.start_ns = event->ts_ns, .duration_ns = event->dur_ns, .offset = event->offset,
                          .layer = layer_of(event), .event = (uint32_t)event->number, .name = (uint32_t)name};
    int status = add_slice(judge, row, &slice);
    if (status == 0)
        status = see_work(judge, event, &slice);
    return status == 0 && annotation ? see_step(judge, event) : status;
}

static int see_begin_end(struct judge *judge, const struct tp_trace_event *event)
{
    int64_t at = row_of(judge, event), name = trace_names_number(&judge->names, &event->name);
    if (at < 0 || name < 0)
        return -ENOMEM;
    struct row *row = &judge->rows[at];
    row->judged_window = true;
    if (event->phase == 'B') {
        if (!grow(&row->open, row->open_count, &row->open_capacity, sizeof *row->open))
            return -ENOMEM;
        row->open[row->open_count++] =
            (struct open_slice){event->ts_ns, event->offset, (uint32_t)event->number, (uint32_t)name};
        return 0;
    }
    if (row->open_count == 0) {
        report(judge, FINDING_BEGIN_END, event, "an end without a begin");
        return 0;
    }
    const struct open_slice *open = &row->open[--row->open_count];
    if (event->name.there && name != open->name)
        findings_add(judge->findings, FINDING_BEGIN_END, event->number, event->offset,
                     "ends another name than event %u began, '%s' (name '%s')", open->event,
                     trace_names_text(&judge->names, open->name), event->name.text);
    if (event->ts_ns < open->start_ns) {
        report(judge, FINDING_BEGIN_END, event, "ends before its begin");
        return 0;
    }
    struct slice slice = {.start_ns = open->start_ns, .duration_ns = event->ts_ns - open->start_ns,
                          .offset = open->offset, .event = open->event, .name = open->name};
    return add_slice(judge, row, &slice);
}

static int see_flow(struct judge *judge, const struct tp_trace_event *event)
{
    int64_t row = row_of(judge, event), name = trace_names_number(&judge->names, &event->name);
    if (row < 0 || name < 0 ||
        !grow(&judge->flows, judge->flow_count, &judge->flow_capacity, sizeof *judge->flows))
        return -ENOMEM;
    judge->flows[judge->flow_count++] = (struct flow_event){
        .key = mix(event->cat.hash, event->id.hash),
        .ns = event->ts_ns,
        .offset = event->offset,
        .event = (uint32_t)event->number,
        .row = (uint32_t)row,
        .name = (uint32_t)name,
        .phase = event->phase,
        .encloses = event->encloses,
        .fwdbwd = is_text(&event->cat, "fwdbwd"),
        .to_device = is_text(&event->cat, "ac2g") || is_text(&event->cat, "async_cpu_to_gpu"),
    };
    return 0;
}

static int see_async(struct judge *judge, const struct tp_trace_event *event)
{
    int64_t name = trace_names_number(&judge->names, &event->name);
    if (name < 0 || !grow(&judge->asyncs, judge->async_count, &judge->async_capacity, sizeof *judge->asyncs))
        return -ENOMEM;
    uint64_t key = mix(event->cat.hash, event->id.hash);
    if (event->phase == 'S' || event->phase == 'F') /* the older form also goes by name */
        key = mix(key, event->name.hash);
    judge->asyncs[judge->async_count++] = (struct async_event){
        .key = event->id_is_local ? mix(key, event->pid.hash) : key,
        .ns = event->ts_ns,
        .offset = event->offset,
        .event = (uint32_t)event->number,
        .name = (uint32_t)name,
        .is_end = event->phase == 'e' || event->phase == 'F',
    };
    return 0;
}

static void see_instant(struct judge *judge, const struct tp_trace_event *event)
{
    if (is_text(&event->name, "Iteration Start: PyTorch Profiler") && !judge->has_begin) {
        judge->has_begin = true;
        judge->begin_ns = event->ts_ns;
    } else if (is_text(&event->name, "Record Window End")) {
        judge->several_ends = judge->has_end; /* merged from several files: there is no one window */
        judge->has_end = true;
        judge->end_ns = event->ts_ns;
    }
}

int judge_event(void *context, const struct tp_trace_event *event)
{
    struct judge *judge = context;
    if (event->flaws & TP_TRACE_NOT_OBJECT) {
        findings_add(judge->findings, FINDING_EVENT, event->number, event->offset, "it is no object");
        return 0;
    }
    if (event->number > UINT32_MAX)
        return -EFBIG;
    if (event->flaws)
        judge_flaws(judge, event);
    if (event->phase && !strchr(PHASES, event->phase))
        report(judge, FINDING_EVENT, event, "there is no such ph");
    if (event->has_index && event->phase != 'M') {
        int was = event->index < 0 ? 0 : add_index(judge, (uint64_t)event->index);
        if (was < 0)
            return was;
        if (was > 0 || event->index < 0)
            findings_add(judge->findings, FINDING_INDEX, event->number, event->offset, "Ev Idx %lld %s (name '%s')",
                         (long long)event->index, was ? "was there before" : "is negative", event->name.text);
    }
    if (!event->phase || !is_complete(judge, event))
        return 0;
    judge->has_fine_times |= event->ts_ns % 1000 != 0 || event->dur_ns % 1000 != 0;
    if (event->has_ts && event->ts_ns < 0)
        findings_note(judge->findings, NOTE_EARLY, event->number, event->offset,
                      "ts is negative, which some readers do not take (name '%s')", event->name.text);
    switch (event->phase) {
    case 'X':
        return see_complete(judge, event);
    case 'B':
    case 'E':
        return see_begin_end(judge, event);
    case 's':
    case 't':
    case 'f':
        return see_flow(judge, event);
    case 'b':
    case 'e':
    case 'S':
    case 'F':
        return see_async(judge, event);
    case 'i':
    case 'I':
        see_instant(judge, event);
        return 0;
    default:
        return 0;
    }
}

int judge_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json)
{
    struct judge *judge = context;
    judge->has_schema |= strcmp(path, "schema") == 0 && token == TP_JSON_STRING;
    judge->has_start |= strcmp(path, "start_ts") == 0 && token == TP_JSON_NUMBER;
    if (strcmp(path, "displayTimeUnit") == 0 &&
        (token != TP_JSON_STRING || (strcmp(json->text, "ms") != 0 && strcmp(json->text, "ns") != 0)))
        findings_add(judge->findings, FINDING_TOP_LEVEL, NO_PLACE, json->offset, "displayTimeUnit is neither ms nor ns");
    struct {
        const char *path;
        bool *has;
        int64_t *value;
    } wanted[] = {
        {"tprof/kept", &judge->has_kept, &judge->kept},
        {"tprof/lost", &judge->has_lost, &judge->lost},
        {"tprof/all", &judge->has_all, &judge->all},
        {"tprof/shown", &judge->has_shown, &judge->shown},
        {"tprof/unfinished", &judge->has_unfinished, &judge->said_unfinished},
    };
    for (size_t i = 0; i < TP_COUNT(wanted); i++) {
        if (strcmp(path, wanted[i].path) != 0)
            continue;
        *wanted[i].has = token == TP_JSON_NUMBER && tp_trace_integer(json->text, json->text_bytes, wanted[i].value) &&
                         *wanted[i].value >= 0;
        if (!*wanted[i].has)
            findings_add(judge->findings, FINDING_TOP_LEVEL, NO_PLACE, json->offset, "%s is no count", path);
    }
    return 0;
}

int judge_twice(void *context, const char *path, uint64_t offset)
{
    struct judge *judge = context;
    findings_add(judge->findings, FINDING_TOP_LEVEL, NO_PLACE, offset, "a second member '%s'", path);
    return 0;
}

const char *judge_what_else(const struct judge *judge)
{
    return judge->has_schema && judge->has_start
               ? "there is no traceEvents; this is an execution trace of PyTorch (schema, nodes)"
               : "there is no traceEvents";
}
