#include "lineage.h"

#include <errno.h>
#include <string.h>

#include "../agent/heap_sort.h"
#include "averages.h"
#include "families.h"
#include "step_slices.h"

#define NO_INDEX UINT32_MAX

/* What has `child` for its parent has `parent`. */
struct link {
    uint32_t child, parent;
};

/* A range around whole steps. */
struct around {
    uint64_t start_ns, end_ns, serial, index;
    uint64_t shown; /* index of the event that steps lie in for its sake; TP_LINEAGE_NONE: none do */
};

struct tp_lineage {
    const struct tp_cycle_report *report;
    struct tp_arena *arena;
    bool shows_ops, shows_annotations, failed;
    struct tp_families *families;
    struct tp_step_slices slices;
    struct link *links;
    size_t link_count, link_capacity;
    struct around *around;
    size_t around_count, around_capacity;
    uint64_t next_index;
    struct tp_lineage_step *steps; /* start_ns is 0 where it is not drawn */
    size_t step_near;
    uint64_t first_around, last_around; /* indexes of the events that steps lie in are among these */
};

struct tp_lineage *tp_lineage_new(const struct tp_cycle_report *report, struct tp_arena *arena)
{
    struct tp_lineage *lineage = tp_arena_alloc(arena, sizeof *lineage);
    if (!lineage)
        return NULL;
    lineage->report = report;
    lineage->arena = arena;
    lineage->shows_ops = tp_writer_shows(report->settings, TP_TYPE_CPU_OP);
    lineage->shows_annotations = tp_writer_shows(report->settings, TP_TYPE_USER_ANNOTATION);
    lineage->families = tp_families_new(arena);
    size_t steps = lineage->shows_annotations && !report->steps_by_program ? report->step_count : 0;
    lineage->steps = tp_arena_alloc(arena, (steps + 1) * sizeof *lineage->steps);
    if (!lineage->families || !lineage->steps ||
        tp_step_slices_init(&lineage->slices, report->steps, steps, report->window_begin_ns, report->window_end_ns,
                            arena) < 0)
        return NULL;
    return lineage;
}

/* Doubled; what was there before stays in the arena. */
static int make_room(struct tp_arena *arena, void *pieces, size_t size, size_t count, size_t *capacity)
{
    void **array = pieces;
    if (count < *capacity)
        return 0;
    size_t more = *capacity ? *capacity * 2 : 256;
    void *fresh = tp_arena_alloc(arena, more * size);
    if (!fresh)
        return -ENOMEM;
    if (count)
        memcpy(fresh, *array, count * size);
    *array = fresh;
    *capacity = more;
    return 0;
}

static int add_link(struct tp_lineage *lineage, uint64_t child, uint64_t parent)
{
    if (child >= NO_INDEX || (parent >= NO_INDEX && parent != UINT64_MAX) ||
        make_room(lineage->arena, &lineage->links, sizeof *lineage->links, lineage->link_count,
                  &lineage->link_capacity) < 0)
        return -ENOMEM;
    lineage->links[lineage->link_count++] = (struct link){(uint32_t)child, (uint32_t)parent};
    return 0;
}

static bool is_left_out(const struct tp_lineage *lineage, const struct tp_event *event)
{
    bool annotation = event->scope == TP_SCOPE_USER_SCOPE;
    return !(annotation ? lineage->shows_annotations : lineage->shows_ops) ||
           tp_averages_leave_out(event->name, event->name_bytes);
}

/* FNV-1a. */
static uint64_t hash_of(const char *name, size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The first step of the report that ends behind the time. */
static size_t step_behind(const struct tp_cycle_report *report, size_t count, uint64_t ns)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (report->steps[middle].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int see_steps(struct tp_lineage *lineage, const struct tp_event *event)
{
    const struct tp_step_span *steps = lineage->report->steps;
    size_t count = lineage->slices.step_count, at;
    struct tp_step_thread *thread = tp_step_slices_thread(&lineage->slices, event->thread->serial);
    if (!thread)
        return 0;
    tp_step_slices_see(&lineage->slices, thread, event->start_ns, event->end_ns);
    at = step_behind(lineage->report, count, event->start_ns);
    bool edges = at < count && steps[at].end_ns <= event->end_ns;
    if (!edges || !(steps[at].start_ns >= event->start_ns || (at + 1 < count && steps[at + 1].end_ns <= event->end_ns)))
        return 0;
    if (make_room(lineage->arena, &lineage->around, sizeof *lineage->around, lineage->around_count,
                  &lineage->around_capacity) < 0)
        return -ENOMEM;
    lineage->around[lineage->around_count++] =
        (struct around){event->start_ns, event->end_ns, event->thread->serial, event->index, TP_LINEAGE_NONE};
    return 0;
}

/* An event whose children are known, to the range around it. */
static int tell_parent(struct tp_lineage *lineage, const struct tp_event *event, size_t at, bool left_out)
{
    struct tp_family *own = tp_families_of(lineage->families, at), *family;
    if (left_out && own->count > 0 && add_link(lineage, event->index, event->parent) < 0)
        return -ENOMEM;
    if (event->parent == UINT64_MAX || (left_out && own->count == 0))
        return 0;
    if (!(family = tp_families_around(lineage->families, at)))
        return -ENOMEM;
    if (!left_out)
        tp_family_add(family, &(struct tp_child){.index = event->index, .label = hash_of(event->name, event->name_bytes)});
    else if (family->count == 0)
        family->only = own->only;
    family->count += left_out ? own->count : 0;
    return 0;
}

static int take_event(struct tp_lineage *lineage, const struct tp_event *event, size_t at)
{
    bool left_out = is_left_out(lineage, event), async = event->flags & TP_EVENT_ASYNC;
    const struct tp_family *own = tp_families_of(lineage->families, at);
    if (event->index >= lineage->next_index)
        lineage->next_index = event->index + 1;
    if (!left_out && !async && own->count == 1 && own->only.label == hash_of(event->name, event->name_bytes) &&
        add_link(lineage, own->only.index, event->index) < 0)
        return -ENOMEM;
    return tell_parent(lineage, event, at, left_out);
}

int tp_lineage_segment(struct tp_lineage *lineage, const struct tp_event *events, size_t count)
{
    int failed = tp_families_begin(lineage->families, events, count);
    for (size_t i = count; !failed && i-- > 0;) /* what lies inside stands behind what is around it */
        failed = take_event(lineage, &events[i], i);
    for (size_t i = 0; !failed && i < count; i++)
        if (!(events[i].flags & TP_EVENT_ASYNC) && lineage->slices.step_count &&
            (events[i].scope == TP_SCOPE_USER_SCOPE ? lineage->shows_annotations : lineage->shows_ops))
            failed = see_steps(lineage, &events[i]);
    lineage->failed |= failed < 0;
    return failed;
}

static bool has_lower_child(const void *a, const void *b)
{
    return ((const struct link *)a)->child < ((const struct link *)b)->child;
}

static const struct link *find_link(const struct tp_lineage *lineage, uint64_t child)
{
    size_t low = 0, high = lineage->link_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lineage->links[middle].child < child)
            low = middle + 1;
        else
            high = middle;
    }
    return low < lineage->link_count && lineage->links[low].child == child ? &lineage->links[low] : NULL;
}

static uint64_t shown_parent(const struct tp_lineage *lineage, uint64_t parent)
{
    for (const struct link *link; parent != TP_LINEAGE_NONE && (link = find_link(lineage, parent));)
        parent = link->parent == NO_INDEX ? TP_LINEAGE_NONE : link->parent;
    return parent;
}

int tp_lineage_end(struct tp_lineage *lineage)
{
    if (lineage->failed)
        return -ENOMEM;
    tp_heap_sort(lineage->links, lineage->link_count, sizeof *lineage->links, has_lower_child);
    lineage->first_around = UINT64_MAX;
    for (size_t i = 0; i < lineage->slices.step_count; i++) {
        struct tp_lineage_step *step = &lineage->steps[i];
        struct around *inner = NULL;
        if (!tp_step_slices_get(&lineage->slices, i, &step->start_ns, &step->end_ns)) {
            step->start_ns = 0;
            continue;
        }
        step->index = lineage->next_index++;
        for (size_t k = 0; k < lineage->around_count; k++) {
            struct around *around = &lineage->around[k];
            if (around->serial == lineage->report->steps[i].thread.serial && around->start_ns <= step->start_ns &&
                step->end_ns <= around->end_ns &&
                (!inner || around->end_ns - around->start_ns < inner->end_ns - inner->start_ns))
                inner = around;
        }
        step->parent = inner ? shown_parent(lineage, inner->index) : TP_LINEAGE_NONE;
        if (inner)
            inner->shown = step->parent;
        if (step->parent != TP_LINEAGE_NONE && step->parent < lineage->first_around)
            lineage->first_around = step->parent;
        if (step->parent != TP_LINEAGE_NONE && step->parent >= lineage->last_around)
            lineage->last_around = step->parent;
    }
    return 0;
}

enum tp_lineage_part tp_lineage_part(const struct tp_lineage *lineage, const struct tp_event *event)
{
    if (is_left_out(lineage, event))
        return TP_LINEAGE_LEFT_OUT;
    return lineage->link_count && find_link(lineage, event->index) ? TP_LINEAGE_MERGED : TP_LINEAGE_SHOWN;
}

uint64_t tp_lineage_parent(struct tp_lineage *lineage, const struct tp_event *event, bool *ret_step)
{
    uint64_t parent = shown_parent(lineage, event->parent);
    size_t count = lineage->slices.step_count, at = lineage->step_near;
    *ret_step = false;
    if (event->flags & TP_EVENT_ASYNC || !count)
        return parent;
    /* Slices stand some nanoseconds beside the steps. */
    if (at >= count || event->start_ns < lineage->steps[at].start_ns || event->end_ns > lineage->steps[at].end_ns) {
        at = step_behind(lineage->report, count, event->start_ns);
        while (at > 0 && (lineage->steps[at - 1].start_ns == 0 || lineage->steps[at - 1].end_ns >= event->end_ns))
            at--;
        while (at < count && (lineage->steps[at].start_ns == 0 || lineage->steps[at].end_ns < event->end_ns))
            at++;
        if (at == count || lineage->steps[at].start_ns > event->start_ns)
            return parent;
        lineage->step_near = at;
    }
    if (lineage->report->steps[at].thread.serial != event->thread->serial || lineage->steps[at].parent != parent)
        return parent;
    *ret_step = true;
    return at;
}

bool tp_lineage_has_steps(const struct tp_lineage *lineage, uint64_t index)
{
    if (index < lineage->first_around || index > lineage->last_around)
        return false;
    for (size_t i = 0; i < lineage->around_count; i++)
        if (lineage->around[i].shown == index)
            return true;
    return false;
}

bool tp_lineage_step(const struct tp_lineage *lineage, size_t step, struct tp_lineage_step *ret)
{
    if (step >= lineage->slices.step_count || lineage->steps[step].start_ns == 0)
        return false;
    *ret = lineage->steps[step];
    return true;
}
