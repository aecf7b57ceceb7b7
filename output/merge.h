/*
 * merge.h: the records of many threads as one stream, ordered by time (of equal times the thread with the smaller serial
 * comes first). Blocks are checked while they are read: a damaged one is counted and left where the damage begins.
 */
#ifndef TP_MERGE_H
#define TP_MERGE_H

#include "model.h"

/* Where one thread's stream stands. Belongs to whoever added it to the merge. */
struct tp_cursor {
    const uint64_t *at, *end; /* the record to be read now; behind the last one of its block */
    uint64_t time;            /* of that record; never falls */
    struct tp_thread_info info; /* as the newest block told; the serial never changes */
};

struct tp_merge_head {
    uint64_t time;
    struct tp_cursor *cursor;
};

struct tp_merge {
    const struct tp_source *source;
    struct tp_merge_head *heads; /* heap: the smallest is the first */
    size_t count;
    uint64_t damaged; /* blocks */
};

/* Room for that many threads. -ENOMEM. */
int tp_merge_init(struct tp_merge *merge, const struct tp_source *source, size_t threads, struct tp_arena *arena);

/* The cursor must be zeroed but for info.serial. A thread without records is not added. */
void tp_merge_add(struct tp_merge *merge, struct tp_cursor *cursor);

/* The cursor whose record is the next one before this time, or NULL. It stays the one until tp_merge_step says otherwise. */
struct tp_cursor *tp_merge_first(const struct tp_merge *merge, uint64_t before);

/* Moves that cursor on: true if its next record is before this time and still the first of all. */
bool tp_merge_step(struct tp_merge *merge, uint64_t before);

/* Reads no more of the first one's thread. */
void tp_merge_drop(struct tp_merge *merge);

#endif
