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

/* A thread's place among the others. One that is over stands last. */
struct tp_merge_leaf {
    uint64_t time, serial;
    struct tp_cursor *cursor;
};

/* A tournament: each inner node keeps the loser of what lies below, so that a thread that moved on meets only those on its
 * way to the root, in a number of steps that does not depend on times. */
struct tp_merge {
    const struct tp_source *source;
    struct tp_merge_leaf *leaves;
    uint32_t *losers;  /* by inner node; 1 is the root */
    uint32_t *winners; /* by node, while the tournament is set up */
    size_t count;
    uint64_t damaged; /* blocks */
};

/* Room for that many threads. -ENOMEM. */
int tp_merge_init(struct tp_merge *merge, const struct tp_source *source, size_t threads, struct tp_arena *arena);

/* The cursor must be zeroed but for info.serial. */
void tp_merge_add(struct tp_merge *merge, struct tp_cursor *cursor);

/* Takes the record at which the cursor stands. Negative: stops the run, which returns it; positive: no more of this thread. */
typedef int tp_merge_take(void *context, struct tp_cursor *cursor);

/* All records before this time. May be called again for later ones. */
int tp_merge_run(struct tp_merge *merge, uint64_t before, tp_merge_take *take, void *context);

#endif
