#include "step_slices.h"

#include <errno.h>

/*
 * A place between two neighbouring stamps of the thread: after may be equalled by an end, before may not be reached.
 */
struct gap {
    uint64_t after, before;
};

struct tp_step_edge_place {
    uint64_t time;
    uint64_t limit; /* the next edge: what lies behind this one is drawn before it */
    bool moved;     /* to gap.after, the end of a range around it */
    struct gap gap; /* around the edge, or behind the end of the range */
    uint64_t latest; /* of the stamps seen from this edge on, up to the next edge */
    size_t starts;  /* the step that begins here on this thread, or NO_STEP */
};

struct tp_step_place {
    struct tp_step_thread *thread;
    size_t first, last; /* its edges */
    bool bent;          /* begins at bend instead of its first edge */
    struct gap bend;
};

#define NO_STEP SIZE_MAX

/* To behind a later stamp. What follows it is known if nothing behind it was seen yet, or if the old neighbour is
 * still one; else the worst is assumed. */
static void move_gap(struct gap *gap, const struct tp_step_edge_place *edge, uint64_t after)
{
    gap->after = after;
    if (gap->before <= after)
        gap->before = edge->latest > after ? after + 1 : edge->limit;
}

/* Readers keep microseconds as doubles, whose last digit is a nanosecond: stamps closer than this may change places. */
#define DISTANCE 4

/* Where the step before the gap ends and the one behind it starts: near wish, apart from each other and from the stamps
 * on both sides as far as there is room. */
static void place_in_gap(const struct gap *gap, uint64_t wish, uint64_t *ret_end, uint64_t *ret_start)
{
    uint64_t room = gap->before - gap->after;
    uint64_t distance = room / 4 < DISTANCE ? room / 4 : DISTANCE, least = distance ? distance : 1;
    if (room < 2) {
        *ret_end = *ret_start = gap->after;
        return;
    }
    uint64_t low = gap->after + least, high = gap->before - least - distance;
    *ret_end = wish < low ? low : wish > high ? high : wish;
    *ret_start = *ret_end + distance;
}

struct tp_step_thread *tp_step_slices_thread(struct tp_step_slices *slices, uint64_t serial)
{
    for (size_t i = 0; i < slices->thread_count; i++)
        if (slices->threads[i].serial == serial)
            return &slices->threads[i];
    return NULL;
}

/* Adds an edge behind the others of the thread, unless it is the last one. */
static size_t add_edge(struct tp_step_thread *thread, uint64_t time)
{
    if (thread->edge_count == 0 || thread->edges[thread->edge_count - 1].time < time)
        thread->edges[thread->edge_count++] =
            (struct tp_step_edge_place){.time = time, .limit = UINT64_MAX, .starts = NO_STEP};
    return thread->edge_count - 1;
}

int tp_step_slices_init(struct tp_step_slices *slices, const struct tp_step_span *steps, size_t count,
                        uint64_t window_begin_ns, uint64_t window_end_ns, struct tp_arena *arena)
{
    *slices = (struct tp_step_slices){0};
    if (count == 0)
        return 0;
    slices->steps = tp_arena_alloc(arena, count * sizeof *slices->steps);
    slices->threads = tp_arena_alloc(arena, count * sizeof *slices->threads);
    if (!slices->steps || !slices->threads)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct tp_step_thread *thread = tp_step_slices_thread(slices, steps[i].thread.serial);
        if (!thread) {
            thread = &slices->threads[slices->thread_count++];
            thread->serial = steps[i].thread.serial;
        }
        thread->edge_count += 2; /* at most: the room it needs */
    }
    for (size_t i = 0; i < slices->thread_count; i++) {
        struct tp_step_thread *thread = &slices->threads[i];
        thread->edges = tp_arena_alloc(arena, thread->edge_count * sizeof *thread->edges);
        if (!thread->edges)
            return -ENOMEM;
        thread->edge_count = 0;
    }
    slices->step_count = count;
    for (size_t i = 0; i < count; i++) {
        struct tp_step_place *step = &slices->steps[i];
        uint64_t start = steps[i].start_ns > window_begin_ns ? steps[i].start_ns : window_begin_ns;
        uint64_t end = steps[i].end_ns < window_end_ns ? steps[i].end_ns : window_end_ns;
        if (start >= end)
            continue; /* thread stays NULL: not drawn */
        step->thread = tp_step_slices_thread(slices, steps[i].thread.serial);
        step->first = add_edge(step->thread, start);
        step->last = add_edge(step->thread, end);
        step->thread->edges[step->first].starts = i;
    }
    for (size_t i = 0; i < slices->thread_count; i++) {
        struct tp_step_thread *thread = &slices->threads[i];
        for (size_t k = 0; k < thread->edge_count; k++) {
            struct tp_step_edge_place *edge = &thread->edges[k];
            if (k + 1 < thread->edge_count)
                edge->limit = edge[1].time;
            edge->gap.before = edge->limit;
            edge->gap.after = k > 0 ? edge[-1].time : 0;
        }
    }
    return 0;
}

/* How many edges lie before the time or at it. Looks at the last answer first: ranges come roughly in order. */
static size_t edges_up_to(struct tp_step_thread *thread, uint64_t time)
{
    const struct tp_step_edge_place *edges = thread->edges;
    size_t low = 0, high = thread->edge_count, near = thread->near;
    if ((near == 0 || edges[near - 1].time <= time) && (near == high || edges[near].time > time))
        return near;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (edges[middle].time <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return thread->near = low;
}

/* A stamp narrows the gap of the next edge, */
static void see_before_edge(struct tp_step_thread *thread, uint64_t stamp)
{
    size_t behind = edges_up_to(thread, stamp);
    if (behind < thread->edge_count) {
        struct tp_step_edge_place *edge = &thread->edges[behind];
        if (!edge->moved && edge->gap.after < stamp)
            edge->gap.after = stamp;
    }
}

/* and that of the edge before it. */
static void see_stamp(struct tp_step_slices *slices, struct tp_step_thread *thread, uint64_t stamp)
{
    size_t behind = edges_up_to(thread, stamp);
    see_before_edge(thread, stamp);
    if (behind > 0) {
        struct tp_step_edge_place *edge = &thread->edges[behind - 1];
        if (edge->latest < stamp)
            edge->latest = stamp;
        if ((!edge->moved || stamp > edge->gap.after) && edge->gap.before > stamp)
            edge->gap.before = stamp;
        struct tp_step_place *step = edge->starts == NO_STEP ? NULL : &slices->steps[edge->starts];
        if (step && step->bent && stamp > step->bend.after && step->bend.before > stamp)
            step->bend.before = stamp;
    }
}

/* The step that starts at the edge is drawn from behind that stamp on. */
static void bend_start(struct tp_step_slices *slices, const struct tp_step_edge_place *edge, uint64_t after)
{
    struct tp_step_place *step = edge->starts == NO_STEP ? NULL : &slices->steps[edge->starts];
    if (!step || (step->bent && after <= step->bend.after))
        return;
    if (!step->bent)
        step->bend = edge->gap;
    step->bent = true;
    move_gap(&step->bend, edge, after);
}

void tp_step_slices_see(struct tp_step_slices *slices, struct tp_step_thread *thread, uint64_t start_ns,
                        uint64_t end_ns)
{
    /* The edges inside: behind the start, up to the end. */
    size_t first = edges_up_to(thread, start_ns), behind = edges_up_to(thread, end_ns);
    see_stamp(slices, thread, start_ns);
    if (behind - first != 1)
        see_stamp(slices, thread, end_ns);
    else
        see_before_edge(thread, end_ns); /* the edge inside goes behind it */
    if (behind - first == 1) {
        struct tp_step_edge_place *edge = &thread->edges[first];
        if (!edge->moved || edge->gap.after < end_ns) {
            edge->moved = true;
            move_gap(&edge->gap, edge, end_ns);
        }
    } else if (behind - first >= 2) {
        if (first > 0)
            bend_start(slices, &thread->edges[first - 1], start_ns);
        bend_start(slices, &thread->edges[behind - 1], end_ns);
    }
}

bool tp_step_slices_get(const struct tp_step_slices *slices, size_t step, uint64_t *ret_start_ns, uint64_t *ret_end_ns)
{
    const struct tp_step_place *place = &slices->steps[step];
    if (!place->thread)
        return false;
    const struct tp_step_edge_place *first = &place->thread->edges[place->first];
    const struct tp_step_edge_place *last = &place->thread->edges[place->last];
    uint64_t start, end, unused;
    place_in_gap(&first->gap, first->moved ? first->gap.after : first->time, &unused, &start);
    place_in_gap(&last->gap, last->moved ? last->gap.after : last->time, &end, &unused);
    if (place->bent) {
        uint64_t bent;
        place_in_gap(&place->bend, place->bend.after, &unused, &bent);
        if (bent > start)
            start = bent;
    }
    if (end <= start)
        return false;
    *ret_start_ns = start;
    *ret_end_ns = end;
    return true;
}
