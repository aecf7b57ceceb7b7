/*
 * segment.h: finished events until they are handed on. They come in the order of their ends and leave in the order of
 * their begins.
 */
#ifndef TP_SEGMENT_H
#define TP_SEGMENT_H

#include "model.h"

#define TP_SEGMENT_BITS 13 /* at most 8192 events */

struct tp_segment {
    struct tp_event *events;
    uint64_t *order, *spare; /* for sorting */
    size_t count, capacity;
};

/* As many events as fit into a quarter of the arena's limit, up to the constant. -ENOMEM. */
int tp_segment_init(struct tp_segment *segment, struct tp_arena *arena);

/* Room for one more; the caller empties the segment when count reaches capacity. */
static inline struct tp_event *tp_segment_add(struct tp_segment *segment)
{
    return &segment->events[segment->count++];
}

/* By index. Indices of one segment lie less than 2^51 apart. */
void tp_segment_sort(struct tp_segment *segment);

#endif
