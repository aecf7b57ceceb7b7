/*
 * ranges.h: the ranges that are open, and the texts of names that records brought along. Pieces are used again and
 * again: what is held from the arena follows the most that was open at a time.
 */
#ifndef TP_RANGES_H
#define TP_RANGES_H

#include "model.h"

/* A name's own text, or a range's inputs or values: kept while its range is open and until the segment with its event
 * is delivered. */
struct tp_range_text {
    struct tp_range_text *next;
    uint32_t size_class;
    _Alignas(8) char chars[];
};

struct tp_range {
    struct tp_range *up, *above; /* the range around it on its thread, the one inside it; NULL if apart */
    struct tp_range *chain;      /* of the hash: newest first; of free ones */
    struct tp_model_thread *thread;
    struct tp_range_text *text;   /* or NULL */
    struct tp_range_text *inputs; /* or NULL */
    struct tp_range_text *values[2]; /* given, returned: a struct tp_event_values; or NULL */
    uint64_t key;
    uint64_t start_ns; /* the thread's stamp */
    uint64_t clock_ns; /* what the clock said */
    uint64_t child_ns; /* what direct children took */
    uint64_t index, parent;
    int64_t sequence;
    uint64_t forward_thread, forward_parent, id;
    uint32_t name_id, text_bytes, depth;
    uint16_t input_count, input_words;
    uint16_t inputs_here; /* of the words */
    bool has_values;      /* says its begin */
    bool values_end[2];   /* the last record of them was here */
    uint8_t scope;
    uint8_t flags; /* enum tp_event_flag; TP_EVENT_ASYNC from the begin on: it stands apart from its thread's stack */
};

#define TP_TEXT_CLASSES 14 /* 64, 128, ... 512 KiB with the head */

struct tp_ranges {
    struct tp_arena *arena;
    struct tp_range **buckets; /* hash by key of all that are open */
    unsigned bucket_bits;
    size_t open;
    struct tp_range *free;
    struct tp_range_text *free_texts[TP_TEXT_CLASSES];
};

int tp_ranges_init(struct tp_ranges *ranges, struct tp_arena *arena); /* -ENOMEM */

/* One that is open under this key; all else in it is for the caller to set. NULL: memory is out. */
struct tp_range *tp_ranges_open(struct tp_ranges *ranges, uint64_t key);
void tp_ranges_close(struct tp_ranges *ranges, struct tp_range *range);

/* The newest one of this key that the thread began; if there is none, the newest of any thread; NULL. */
struct tp_range *tp_ranges_find(const struct tp_ranges *ranges, uint64_t key, const struct tp_model_thread *thread);

/* Any one that is open, from this bucket on; NULL: none is left. */
struct tp_range *tp_ranges_any(const struct tp_ranges *ranges, size_t *bucket);

/* NULL: memory is out; of what can be done without, the last quarter of it is left alone. */
struct tp_range_text *tp_ranges_take_text(struct tp_ranges *ranges, size_t bytes, bool needed);
size_t tp_ranges_text_room(const struct tp_range_text *text); /* bytes of its chars */
void tp_ranges_free_texts(struct tp_ranges *ranges, struct tp_range_text *list);

#endif
