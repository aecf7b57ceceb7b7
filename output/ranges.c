#include "ranges.h"

#include <errno.h>
#include <string.h>

#define FIRST_BITS 10

static inline size_t bucket_of(const struct tp_ranges *ranges, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ranges->bucket_bits));
}

int tp_ranges_init(struct tp_ranges *ranges, struct tp_arena *arena)
{
    *ranges = (struct tp_ranges){.arena = arena, .bucket_bits = FIRST_BITS};
    ranges->buckets = tp_arena_alloc(arena, sizeof *ranges->buckets << FIRST_BITS);
    return ranges->buckets ? 0 : -ENOMEM;
}

/* Twice as many buckets; without memory for them the chains grow longer, no more. Each old bucket is split into two by
 * appending, so that chains keep their order. */
static TP_COLD void split_buckets(struct tp_ranges *ranges)
{
    struct tp_range **buckets = tp_arena_alloc(ranges->arena, sizeof *buckets << (ranges->bucket_bits + 1));
    if (!buckets)
        return;
    size_t count = (size_t)1 << ranges->bucket_bits++;
    for (size_t i = 0; i < count; i++) {
        struct tp_range **last[2] = {&buckets[2 * i], &buckets[2 * i + 1]};
        for (struct tp_range *range = ranges->buckets[i]; range; range = range->chain) {
            size_t half = bucket_of(ranges, range->key) & 1;
            *last[half] = range;
            last[half] = &range->chain;
        }
        *last[0] = *last[1] = NULL;
    }
    ranges->buckets = buckets;
}

struct tp_range *tp_ranges_open(struct tp_ranges *ranges, uint64_t key)
{
    struct tp_range *range = ranges->free;
    if (TP_LIKELY(range))
        ranges->free = range->chain;
    else if (!(range = tp_arena_alloc(ranges->arena, sizeof *range)))
        return NULL;
    if (TP_UNLIKELY(ranges->open++ >> ranges->bucket_bits))
        split_buckets(ranges);
    struct tp_range **bucket = &ranges->buckets[bucket_of(ranges, key)];
    range->key = key;
    range->chain = *bucket;
    *bucket = range;
    return range;
}

void tp_ranges_close(struct tp_ranges *ranges, struct tp_range *range)
{
    struct tp_range **link = &ranges->buckets[bucket_of(ranges, range->key)];
    while (*link != range)
        link = &(*link)->chain;
    *link = range->chain;
    range->chain = ranges->free;
    ranges->free = range;
    ranges->open--;
}

struct tp_range *tp_ranges_find(const struct tp_ranges *ranges, uint64_t key, const struct tp_model_thread *thread)
{
    struct tp_range *found = NULL;
    for (struct tp_range *range = ranges->buckets[bucket_of(ranges, key)]; range; range = range->chain) {
        if (range->key != key)
            continue;
        if (range->thread == thread)
            return range;
        if (!found)
            found = range;
    }
    return found;
}

struct tp_range *tp_ranges_any(const struct tp_ranges *ranges, size_t *bucket)
{
    for (; *bucket < (size_t)1 << ranges->bucket_bits; ++*bucket)
        if (ranges->buckets[*bucket])
            return ranges->buckets[*bucket];
    return NULL;
}

#define CLASS_BYTES(size_class) ((size_t)64 << (size_class))

_Static_assert(CLASS_BYTES(TP_TEXT_CLASSES - 1) >= sizeof(struct tp_range_text) + sizeof(struct tp_event_values) +
                                                     TP_VALUES_ITEMS_MAX * 8 &&
                   TP_VALUES_ITEMS_MAX > TP_INPUTS_ITEMS_MAX && TP_INPUTS_ITEMS_MAX > TP_RECORD_MAX_WORDS,
               "the largest class holds all values, all inputs, and the longest text");

size_t tp_ranges_text_room(const struct tp_range_text *text)
{
    return CLASS_BYTES(text->size_class) - sizeof *text;
}

static bool is_scarce(const struct tp_arena *arena)
{
    return arena->limit && arena->mapped > arena->limit / 4 * 3;
}

struct tp_range_text *tp_ranges_take_text(struct tp_ranges *ranges, size_t bytes, bool needed)
{
    uint32_t size_class = 0;
    while (CLASS_BYTES(size_class) < sizeof(struct tp_range_text) + bytes)
        size_class++;
    struct tp_range_text *text = ranges->free_texts[size_class];
    if (text)
        ranges->free_texts[size_class] = text->next;
    else if ((!needed && is_scarce(ranges->arena)) ||
             !(text = tp_arena_alloc(ranges->arena, CLASS_BYTES(size_class))))
        return NULL;
    text->size_class = size_class;
    return text;
}

void tp_ranges_free_texts(struct tp_ranges *ranges, struct tp_range_text *list)
{
    while (list) {
        struct tp_range_text *next = list->next;
        list->next = ranges->free_texts[list->size_class];
        ranges->free_texts[list->size_class] = list;
        list = next;
    }
}
