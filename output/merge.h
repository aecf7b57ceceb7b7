/*
 * merge.h: the records of many threads as one stream, ordered by time (of equal times the thread with the smaller
 * serial comes first). Blocks are checked while they are read: a damaged one is counted and left where the damage
 * begins.
 */
#ifndef TP_MERGE_H
#define TP_MERGE_H

#include "model.h"

/* Where one thread's stream stands. Belongs to whoever added it to the merge. */
struct tp_cursor {
    const uint64_t *at, *end; /* the record to be read now; behind the last one of its block */
    uint64_t time;            /* of that record; never falls */
    size_t place;             /* its leaf in the tournament */
    struct tp_thread_info info; /* as the newest block told; the serial never changes */
};

/* A thread as the others see it. One that is over stands last. */
struct tp_merge_player {
    uint64_t time, serial;
    struct tp_cursor *cursor;
};

/* A tournament: each inner node keeps the loser of what lies below, so that a thread that moved on meets only those on
 * its way to the root, in a number of steps that does not depend on times. */
struct tp_merge {
    const struct tp_source *source;
    struct tp_merge_player *losers;  /* by inner node; 1 is the root */
    struct tp_merge_player *winners; /* by node, while the tournament is set up; the second half are the threads */
    size_t threads, added;
    uint64_t damaged; /* blocks */
};

/* For that many threads, all of which must be added before the run. -ENOMEM. */
int tp_merge_init(struct tp_merge *merge, const struct tp_source *source, size_t threads, struct tp_arena *arena);

/* The cursor must be zeroed but for info.serial. */
void tp_merge_add(struct tp_merge *merge, struct tp_cursor *cursor);

enum tp_merge_taken {
    TP_MERGE_NEXT = 0,
    TP_MERGE_DAMAGED, /* this record and with it the rest of its block cannot be read */
    TP_MERGE_DROP,    /* no more of this thread */
};

/* Takes the record at which the cursor stands: its size is right for its kind. Returns enum tp_merge_taken, or a
 * negative value that ends the run. */
typedef int tp_merge_take(void *context, struct tp_cursor *cursor);

/* All records before this time. May be called again for later ones. */
int tp_merge_run(struct tp_merge *merge, uint64_t before, tp_merge_take *take, void *context);

#endif
