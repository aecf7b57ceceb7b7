#include "trace_judge_state.h"

#include <stdlib.h>
#include <string.h>

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_signed(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Parents before children; equal slices beside each other. */
static int by_start(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    int order = compare_signed(x->start_ns, y->start_ns);
    if (order == 0)
        order = compare_signed(y->duration_ns, x->duration_ns);
    if (order == 0)
        order = compare(x->name, y->name);
    return order ? order : compare(x->event, y->event);
}

static int by_row(const void *a, const void *b)
{
    const struct flow_event *x = a, *y = b;
    int order = compare(x->row, y->row);
    return order ? order : compare_signed(x->ns, y->ns);
}

static int by_flow(const void *a, const void *b)
{
    const struct flow_event *x = a, *y = b;
    int order = compare(x->key, y->key);
    return order ? order : compare(x->event, y->event);
}

static int by_thing(const void *a, const void *b)
{
    const struct async_event *x = a, *y = b;
    int order = compare(x->key, y->key);
    if (order == 0)
        order = compare_signed(x->ns, y->ns);
    return order ? order : compare(x->event, y->event);
}

/* Calls before what they asked for. */
static int by_correlation(const void *a, const void *b)
{
    const struct work *x = a, *y = b;
    int order = compare_signed(x->correlation, y->correlation);
    if (order == 0)
        order = compare(x->is_device, y->is_device);
    if (order == 0)
        order = compare_signed(x->ns, y->ns);
    return order ? order : compare(x->event, y->event);
}

static int by_process(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    int order = compare(x->process, y->process);
    if (order == 0)
        order = compare_signed(x->ns, y->ns);
    return order ? order : compare(x->event, y->event);
}

static void sort(void *array, size_t count, size_t size, int (*order)(const void *, const void *))
{
    for (size_t i = 1; i < count; i++)
        if (order((char *)array + (i - 1) * size, (char *)array + i * size) > 0) {
            qsort(array, count, size, order);
            return;
        }
}

static const char *name_of(const struct judge *judge, uint32_t name)
{
    return trace_names_text(&judge->names, name);
}

static int64_t end_of(const struct slice *slice)
{
    return slice->start_ns + slice->duration_ns;
}

/* Times in whole microseconds: what is that close together may nest in truth. */
static bool is_too_coarse(const struct judge *judge, int64_t ns)
{
    return !judge->has_fine_times && ns <= 1000;
}

static void judge_straddle(struct judge *judge, const struct row *row, const struct slice *outer,
                           const struct slice *slice)
{
    int64_t within = end_of(outer) - slice->start_ns, beyond = end_of(slice) - end_of(outer);
    enum layer one = outer->layer, other = slice->layer;
    bool is_device = one == LAYER_DEVICE || other == LAYER_DEVICE || (one == LAYER_OVERHEAD && other == LAYER_OVERHEAD);
    bool are_apart = one != LAYER_OTHER && other != LAYER_OTHER && one != other && !judge->has_kept;
    char text[512];
    snprintf(text, sizeof text,
             "on row %s / %s, begins %lld ns before the end of event %u, '%s' (byte %llu), and ends %lld ns after it",
             row->pid, row->tid, (long long)within, outer->event, name_of(judge, outer->name),
             (unsigned long long)outer->offset, (long long)beyond);
    const char *name = name_of(judge, slice->name);
    if (is_device)
        findings_note(judge->findings, NOTE_DEVICE, slice->event, slice->offset,
                      "%s; what a device does may overlap (name '%s')", text, name);
    else if (are_apart)
        findings_note(judge->findings, NOTE_LAYERS, slice->event, slice->offset,
                      "%s; PyTorch records the two apart (name '%s')", text, name);
    else if (is_too_coarse(judge, within < beyond ? within : beyond))
        findings_note(judge->findings, NOTE_COARSE, slice->event, slice->offset,
                      "%s; all times are whole microseconds (name '%s')", text, name);
    else
        findings_add(judge->findings, FINDING_NESTING, slice->event, slice->offset, "%s (name '%s')", text, name);
}

static void judge_twin(struct judge *judge, const struct row *row, const struct slice *twin, const struct slice *slice)
{
    char text[512];
    snprintf(text, sizeof text, "on row %s / %s, with the same time, duration and name as event %u (byte %llu)",
             row->pid, row->tid, twin->event, (unsigned long long)twin->offset);
    const char *name = name_of(judge, slice->name);
    if (is_too_coarse(judge, slice->duration_ns))
        findings_note(judge->findings, NOTE_COARSE, slice->event, slice->offset,
                      "%s; all times are whole microseconds (name '%s')", text, name);
    else
        findings_add(judge->findings, FINDING_DUPLICATE, slice->event, slice->offset, "%s (name '%s')", text, name);
}

/* A slice that straddles another is set aside, as viewers do: one fault is one finding. */
static void judge_nesting(struct judge *judge, const struct row *row, const struct slice **stack)
{
    size_t depth = 0;
    for (size_t i = 0; i < row->count; i++) {
        const struct slice *slice = &row->slices[i];
        if (i > 0 && by_start(&slice[-1], slice) < 0 && slice[-1].start_ns == slice->start_ns &&
            slice[-1].duration_ns == slice->duration_ns && slice[-1].name == slice->name)
            judge_twin(judge, row, &slice[-1], slice);
        while (depth > 0 && end_of(stack[depth - 1]) <= slice->start_ns)
            depth--;
        if (depth > 0 && end_of(stack[depth - 1]) < end_of(slice)) {
            judge_straddle(judge, row, stack[depth - 1], slice);
            continue;
        }
        stack[depth++] = slice;
    }
}

static void judge_window(struct judge *judge, const struct row *row)
{
    if (!row->judged_window || judge->several_ends)
        return;
    for (size_t i = 0; i < row->count; i++) {
        const struct slice *slice = &row->slices[i];
        if (judge->has_begin && slice->start_ns < judge->begin_ns)
            findings_add(judge->findings, FINDING_WINDOW, slice->event, slice->offset,
                         "begins %lld ns before the record window (name '%s')",
                         (long long)(judge->begin_ns - slice->start_ns), name_of(judge, slice->name));
        else if (judge->has_end && end_of(slice) > judge->end_ns)
            findings_add(judge->findings, FINDING_WINDOW, slice->event, slice->offset,
                         "ends %lld ns after the record window (name '%s')",
                         (long long)(end_of(slice) - judge->end_ns), name_of(judge, slice->name));
    }
}

static void judge_rows(struct judge *judge)
{
    for (size_t i = 0; i < judge->row_count; i++) {
        struct row *row = &judge->rows[i];
        for (size_t k = 0; k < row->open_count; k++)
            findings_add(judge->findings, FINDING_BEGIN_END, row->open[k].event, row->open[k].offset,
                         "a begin without an end (name '%s')", name_of(judge, row->open[k].name));
        sort(row->slices, row->count, sizeof *row->slices, by_start);
        const struct slice **stack = malloc((row->count + 1) * sizeof(const struct slice *));
        if (stack)
            judge_nesting(judge, row, stack);
        else
            findings_add(judge->findings, FINDING_NESTING, NO_PLACE, NO_PLACE, "not judged: out of memory");
        free(stack);
        judge_window(judge, row);
    }
}

/* Flows. */

/* Each flow event is at a slice of its row: a start or an enclosing end inside of one, another end before the next one.
 */
static void judge_binding(struct judge *judge)
{
    sort(judge->flows, judge->flow_count, sizeof *judge->flows, by_row);
    size_t at = 0;
    int64_t last_end = INT64_MIN;
    for (size_t i = 0; i < judge->flow_count; i++) {
        const struct flow_event *flow = &judge->flows[i];
        const struct row *row = &judge->rows[flow->row];
        if (i == 0 || flow->row != judge->flows[i - 1].row) {
            at = 0;
            last_end = INT64_MIN;
        }
        for (; at < row->count && row->slices[at].start_ns <= flow->ns; at++)
            if (last_end < end_of(&row->slices[at]))
                last_end = end_of(&row->slices[at]);
        bool inside = at > 0 && last_end >= flow->ns;
        bool before = at < row->count || (at > 0 && row->slices[at - 1].start_ns == flow->ns);
        if (flow->phase == 'f' && !flow->encloses ? !before : !inside)
            findings_add(judge->findings, FINDING_FLOW, flow->event, flow->offset,
                         "its row %s / %s has no slice for it (name '%s')", row->pid, row->tid,
                         name_of(judge, flow->name));
    }
}

static void judge_half(struct judge *judge, const struct flow_event *event, const char *text)
{
    if (event->to_device && !judge->has_kept)
        findings_note(judge->findings, NOTE_HALF_FLOW, event->event, event->offset,
                      "%s; PyTorch writes such halves one by one, where the other one may be missing (name '%s')", text,
                      name_of(judge, event->name));
    else
        findings_add(judge->findings, FINDING_FLOW, event->event, event->offset, "%s (name '%s')", text,
                     name_of(judge, event->name));
}

static void judge_order(struct judge *judge, const struct flow_event *start, const struct flow_event *event)
{
    const char *name = name_of(judge, event->name);
    if (event->to_device && judge->work_count > 0)
        return; /* judged by correlation, which every one has */
    if (event->ns < start->ns)
        findings_add(judge->findings, event->fwdbwd || event->to_device ? FINDING_CAUSALITY : FINDING_FLOW,
                     event->event, event->offset, "is %lld ns before the start of its flow, event %u (name '%s')",
                     (long long)(start->ns - event->ns), start->event, name);
    else if (event->fwdbwd && event->ns == start->ns)
        findings_add(judge->findings, FINDING_CAUSALITY, event->event, event->offset,
                     "a backward operator that begins with its forward one, event %u (name '%s')", start->event, name);
}

static void judge_flow(struct judge *judge, const struct flow_event *events, size_t count)
{
    const struct flow_event *start = NULL, *end = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct flow_event *event = &events[i];
        if (event->phase == 's' && start)
            findings_add(judge->findings, FINDING_FLOW, event->event, event->offset,
                         "a second start of the flow that event %u started (name '%s')", start->event,
                         name_of(judge, event->name));
        else if (event->phase == 's')
            start = event;
        if (event->phase != 'f')
            continue;
        if (end && event->fwdbwd)
            findings_add(judge->findings, FINDING_FLOW, event->event, event->offset,
                         "a second end of the flow that event %u ended (name '%s')", end->event,
                         name_of(judge, event->name));
        end = event; /* a launch of a graph has many */
    }
    if (!start)
        judge_half(judge, events, "a flow without a start");
    if (!end)
        judge_half(judge, events, "a flow without an end");
    for (size_t i = 0; start && i < count; i++)
        if (events[i].phase != 's')
            judge_order(judge, start, &events[i]);
}

static void judge_flows(struct judge *judge)
{
    judge_binding(judge);
    sort(judge->flows, judge->flow_count, sizeof *judge->flows, by_flow);
    for (size_t from = 0, until; from < judge->flow_count; from = until) {
        until = from + 1;
        while (until < judge->flow_count && judge->flows[until].key == judge->flows[from].key)
            until++;
        judge_flow(judge, &judge->flows[from], until - from);
    }
}

/* What is on no row. */

static void judge_asyncs(struct judge *judge)
{
    sort(judge->asyncs, judge->async_count, sizeof *judge->asyncs, by_thing);
    size_t depth = 0; /* begins that wait for their end stand in front, where their own events stood */
    for (size_t i = 0; i < judge->async_count; i++) {
        struct async_event event = judge->asyncs[i];
        bool is_open = depth > 0 && judge->asyncs[depth - 1].key == event.key;
        if (!event.is_end)
            judge->asyncs[depth++] = event;
        else if (is_open)
            depth--;
        else
            findings_add(judge->findings, FINDING_ASYNC, event.event, event.offset, "an end without a begin (name '%s')",
                         name_of(judge, event.name));
    }
    for (size_t i = 0; i < depth; i++)
        findings_add(judge->findings, FINDING_ASYNC, judge->asyncs[i].event, judge->asyncs[i].offset,
                     "a begin without an end (name '%s')", name_of(judge, judge->asyncs[i].name));
}

/* Calls and the device's work. In a file of several processes a correlation may be that of several calls. */
static void judge_works(struct judge *judge)
{
    sort(judge->works, judge->work_count, sizeof *judge->works, by_correlation);
    const struct work *call = NULL;
    bool is_known = false;
    for (size_t i = 0; i < judge->work_count; i++) {
        const struct work *work = &judge->works[i];
        bool is_first = i == 0 || work->correlation != work[-1].correlation;
        if (is_first) {
            call = work;
            is_known = !work->is_device;
        } else if (!work->is_device) {
            is_known &= work->process == call->process;
        }
        if (work->is_device && is_known && work->ns < call->ns)
            findings_add(judge->findings, FINDING_CAUSALITY, work->event, work->offset,
                         "begins %lld ns before event %u, '%s' (byte %llu), that asked for it (name '%s')",
                         (long long)(call->ns - work->ns), call->event, name_of(judge, call->name),
                         (unsigned long long)call->offset, name_of(judge, work->name));
    }
}

/* Steps and counts. */

/* In a file of tprof, ranges of the program may bear the name of steps too, with any number: it may have used several
 * profilers. The steps that tprof itself drew come behind all that was recorded. */
static bool is_drawn(const struct judge *judge, const struct step *step)
{
    return !judge->has_kept || step->index >= judge->kept;
}

static void judge_steps(struct judge *judge)
{
    sort(judge->steps, judge->step_count, sizeof *judge->steps, by_process);
    const struct step *before = NULL;
    for (size_t i = 0; i < judge->step_count; i++) {
        const struct step *step = &judge->steps[i];
        if (!is_drawn(judge, step))
            continue;
        if (!before || step->process != before->process) {
            before = step;
            continue;
        }
        if (step->number <= before->number)
            findings_add(judge->findings, FINDING_STEP, step->event, step->offset,
                         "ProfilerStep#%llu comes after ProfilerStep#%llu, event %u", (unsigned long long)step->number,
                         (unsigned long long)before->number, before->event);
        else if (step->ns < before->end_ns)
            findings_add(judge->findings, FINDING_STEP, step->event, step->offset,
                         "ProfilerStep#%llu begins %lld ns before the end of ProfilerStep#%llu, event %u",
                         (unsigned long long)step->number, (long long)(before->end_ns - step->ns),
                         (unsigned long long)before->number, before->event);
        before = step;
    }
}

static void judge_counts(struct judge *judge)
{
    if (!judge->has_kept)
        return;
    if (!judge->has_lost)
        findings_add(judge->findings, FINDING_TOP_LEVEL, NO_PLACE, NO_PLACE, "tprof/lost is missing");
    else if (judge->has_all && judge->kept + judge->lost != judge->all)
        findings_add(judge->findings, FINDING_COUNT, NO_PLACE, NO_PLACE, "%lld kept and %lld lost are not %lld in all",
                     (long long)judge->kept, (long long)judge->lost, (long long)judge->all);
    uint64_t recorded = judge->recorded;
    for (size_t i = 0; i < judge->step_count; i++)
        recorded -= is_drawn(judge, &judge->steps[i]);
    int64_t expected = judge->has_shown ? judge->shown : judge->kept;
    if (recorded != (uint64_t)expected)
        findings_add(judge->findings, FINDING_COUNT, NO_PLACE, NO_PLACE,
                     "%lld operators and ranges should be there, and %llu are", (long long)expected,
                     (unsigned long long)recorded);
    if (judge->has_unfinished && expected == judge->kept && judge->unfinished != (uint64_t)judge->said_unfinished)
        findings_add(judge->findings, FINDING_COUNT, NO_PLACE, NO_PLACE, "%lld should be unfinished, and %llu are",
                     (long long)judge->said_unfinished, (unsigned long long)judge->unfinished);
}

void judge_end(struct judge *judge, struct judge_counts *ret_counts)
{
    judge_rows(judge);
    judge_asyncs(judge);
    judge_flows(judge);
    judge_works(judge);
    judge_steps(judge);
    judge_counts(judge);
    *ret_counts = (struct judge_counts){
        .slices = judge->slices,
        .rows = judge->row_count,
        .flows = judge->flow_count,
        .by_tprof = judge->has_kept,
        .kept = judge->has_kept ? (uint64_t)judge->kept : 0,
        .lost = judge->has_lost ? (uint64_t)judge->lost : 0,
    };
}
