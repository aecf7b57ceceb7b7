#include "fwdbwd.h"

#include <errno.h>

#include "../agent/heap_sort.h"

#define WAYS 8
#define SETS_MAX (16 * 1024) /* 4 MiB, of which only what is used is touched */
#define SETS_MIN 128

int tp_fwdbwd_init(struct tp_fwdbwd *flow, struct tp_arena *arena)
{
    *flow = (struct tp_fwdbwd){.arena = arena};
    for (size_t sets = SETS_MAX; sets >= SETS_MIN && !flow->table; sets /= 2) {
        flow->table = tp_arena_alloc(arena, sets * WAYS * sizeof *flow->table);
        flow->sets = sets;
    }
    return flow->table ? 0 : -ENOMEM;
}

/* Sequence numbers of a thread are dense: consecutive ones fill consecutive sets. */
static struct tp_fwdbwd_forward *set_of(const struct tp_fwdbwd *flow, uint64_t thread, int64_t sequence)
{
    uint64_t hash = (uint64_t)sequence + thread * UINT64_C(0x9e3779b97f4a7c15);
    return flow->table + (hash & (flow->sets - 1)) * WAYS;
}

static void keep_forward(struct tp_fwdbwd *flow, const struct tp_event *event)
{
    uint64_t thread = event->thread->logical_id;
    if (thread == 0)
        return;
    struct tp_fwdbwd_forward *set = set_of(flow, thread, event->sequence), *place = set;
    for (struct tp_fwdbwd_forward *way = set; way < set + WAYS; way++) {
        if (way->thread == thread && way->sequence == event->sequence) {
            if (way->start_ns > event->start_ns)
                return;
            place = way;
            break;
        }
        if (place->thread && (!way->thread || way->start_ns < place->start_ns))
            place = way;
    }
    *place = (struct tp_fwdbwd_forward){thread, event->sequence, event->start_ns, event->thread->os_id};
}

static bool ends_earlier(const void *one, const void *other)
{
    const struct tp_event *a = *(const struct tp_event *const *)one, *b = *(const struct tp_event *const *)other;
    return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->index < b->index;
}

static int make_room(struct tp_fwdbwd *flow, size_t count)
{
    if (count <= flow->capacity)
        return 0;
    size_t capacity = flow->capacity * 2 > count ? flow->capacity * 2 : count;
    flow->backwards = tp_arena_alloc(flow->arena, capacity * sizeof *flow->backwards);
    flow->capacity = flow->backwards ? capacity : 0;
    return flow->backwards ? 0 : -ENOMEM;
}

int tp_fwdbwd_segment(struct tp_fwdbwd *flow, const struct tp_event *events, size_t count, tp_fwdbwd_link *link,
                      void *context)
{
    if (make_room(flow, count) < 0)
        return -ENOMEM;
    /* All forwards first: one with the key of a backward cannot begin after it, since its thread's numbers rise. */
    size_t backwards = 0;
    for (size_t i = 0; i < count; i++) {
        const struct tp_event *event = &events[i];
        if (event->sequence < 0 || event->flags & TP_EVENT_ASYNC)
            continue;
        if (event->forward_thread)
            flow->backwards[backwards++] = event;
        else
            keep_forward(flow, event);
    }
    tp_heap_sort(flow->backwards, backwards, sizeof *flow->backwards, ends_earlier);
    for (size_t i = 0; i < backwards; i++) {
        const struct tp_event *event = flow->backwards[i];
        struct tp_fwdbwd_forward *set = set_of(flow, event->forward_thread, event->sequence);
        for (struct tp_fwdbwd_forward *way = set; way < set + WAYS; way++) {
            if (way->thread == event->forward_thread && way->sequence == event->sequence) {
                link(context, ++flow->links, way, event);
                way->thread = 0;
                break;
            }
        }
    }
    return 0;
}
