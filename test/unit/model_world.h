/* model_world.h: threads, blocks and records made by hand, as a source for the model; what came out of it. */
#ifndef TP_TEST_MODEL_WORLD_H
#define TP_TEST_MODEL_WORLD_H

#include "../../output/model.h"

struct stream {
    struct tp_thread_info info;
    uint64_t *words;
    size_t count, capacity;
    size_t *cuts; /* where blocks end, in words */
    size_t cut_count, cut_capacity;
    size_t given; /* blocks */
    struct tp_block *block; /* the one that may be read now */
    uint32_t magic;         /* TP_BLOCK_MAGIC unless a test says otherwise */
    uint32_t extra_bytes;   /* added to what each block's header says */
};

struct world {
    struct stream *streams;
    size_t stream_count;
    uint64_t ns_divisor; /* ticks a nanosecond */
    struct tp_event *events; /* copies in the order of delivery, names too */
    size_t event_count, event_capacity;
    size_t segment_count, largest_segment;
    size_t unsorted; /* events that stood behind one of a higher index in their segment */
    size_t stop_at_segment; /* 1, 2, ...: that one returns -EIO */
    bool discard;           /* copies nothing */
    struct tp_model_options options;
    struct tp_model_counts counts;
};

struct world *world_new(size_t streams); /* serials 1, 2, ...; window all, 64 MiB */
void world_free(struct world *world);
int world_run(struct world *world);
/* By index; fails the test if it is not there exactly once. */
const struct tp_event *world_event(const struct world *world, uint64_t index);

/* Names of numbers: 1 is "one"; world_name gives the text. */
enum { NAME_ONE = 1, NAME_TWO, NAME_WRAPPER, NAME_OTHER_WRAPPER, NAME_BACKWARD };

/* Records at the end of a thread's stream. thread counts from 1, as serials do. */
struct tp_begin *begin_range(struct world *world, unsigned thread, uint64_t time, uint64_t key);
void begin_as(struct world *world, unsigned thread, uint64_t time, uint64_t key, struct tp_begin like,
              uint64_t forward_thread);
void begin_text(struct world *world, unsigned thread, uint64_t time, uint64_t key, const char *text, uint8_t flags);
void end_range(struct world *world, unsigned thread, uint64_t time, uint64_t key);
void lose(struct world *world, unsigned thread, uint64_t time, uint64_t count);
void put_word(struct world *world, unsigned thread, uint64_t word);
void cut(struct world *world, unsigned thread); /* what follows is in a new block */

#endif
