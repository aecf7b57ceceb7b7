#include "segment.h"

#include <errno.h>
#include <string.h>

int tp_segment_init(struct tp_segment *segment, struct tp_arena *arena)
{
    size_t capacity = (size_t)1 << TP_SEGMENT_BITS;
    size_t event_bytes = sizeof *segment->events + sizeof *segment->order + sizeof *segment->spare;
    while (arena->limit && capacity > 1 && capacity * event_bytes > arena->limit / 4)
        capacity /= 2;
    *segment = (struct tp_segment){.capacity = capacity};
    segment->events = tp_arena_alloc(arena, capacity * sizeof *segment->events);
    segment->order = tp_arena_alloc(arena, capacity * sizeof *segment->order);
    segment->spare = tp_arena_alloc(arena, capacity * sizeof *segment->spare);
    return segment->events && segment->order && segment->spare ? 0 : -ENOMEM;
}

#define DIGIT_BITS 8
#define DIGITS (1u << DIGIT_BITS)

/* One pass of a radix sort, stable: order to spare, and the two change places. */
static void sort_by_digit(struct tp_segment *segment, unsigned shift)
{
    uint32_t places[DIGITS] = {0};
    for (size_t i = 0; i < segment->count; i++)
        places[segment->order[i] >> shift & (DIGITS - 1)]++;
    uint32_t place = 0;
    for (size_t digit = 0; digit < DIGITS; digit++) {
        uint32_t count = places[digit];
        places[digit] = place;
        place += count;
    }
    for (size_t i = 0; i < segment->count; i++)
        segment->spare[places[segment->order[i] >> shift & (DIGITS - 1)]++] = segment->order[i];
    uint64_t *sorted = segment->spare;
    segment->spare = segment->order;
    segment->order = sorted;
}

/* order[i] is where the event that belongs to place i lies now: follows each ring of them once. */
static void move_events(struct tp_segment *segment)
{
    struct tp_event *events = segment->events;
    uint64_t *order = segment->order;
    for (size_t i = 0; i < segment->count; i++) {
        if (order[i] == i)
            continue;
        struct tp_event first = events[i];
        size_t to = i;
        for (size_t from; (from = order[to]) != i; to = from) {
            events[to] = events[from];
            order[to] = to;
        }
        events[to] = first;
        order[to] = to;
    }
}

/* The usual segment: its indices are close together, each has a slot. */
static void order_by_slots(struct tp_segment *segment, uint64_t smallest, size_t slot_count)
{
    uint32_t *slots = (uint32_t *)segment->spare;
    memset(slots, 0, slot_count * sizeof *slots);
    for (size_t i = 0; i < segment->count; i++)
        slots[segment->events[i].index - smallest] = (uint32_t)i + 1;
    size_t placed = 0;
    for (size_t slot = 0; placed < segment->count; slot++)
        if (slots[slot])
            segment->order[placed++] = slots[slot] - 1;
}

/* Ranges that were open for long are in it. What is sorted is one word an event: its index above the smallest one, and
 * its place below. */
static void order_by_digits(struct tp_segment *segment, uint64_t smallest, uint64_t largest)
{
    for (size_t i = 0; i < segment->count; i++)
        segment->order[i] = (segment->events[i].index - smallest) << TP_SEGMENT_BITS | i;
    for (unsigned bits = 0; bits + TP_SEGMENT_BITS < 64 && (largest - smallest) >> bits; bits += DIGIT_BITS)
        sort_by_digit(segment, TP_SEGMENT_BITS + bits);
    for (size_t i = 0; i < segment->count; i++)
        segment->order[i] &= ((uint64_t)1 << TP_SEGMENT_BITS) - 1;
}

void tp_segment_sort(struct tp_segment *segment)
{
    uint64_t smallest = UINT64_MAX, largest = 0;
    for (size_t i = 0; i < segment->count; i++) {
        uint64_t index = segment->events[i].index;
        smallest = index < smallest ? index : smallest;
        largest = index > largest ? index : largest;
    }
    if (largest - smallest < 2 * segment->capacity) /* what spare has room for */
        order_by_slots(segment, smallest, (size_t)(largest - smallest) + 1);
    else
        order_by_digits(segment, smallest, largest);
    move_events(segment);
}
