/*
 * cycle_source.h: the blocks of one cycle in the log, as the model wants them (tp_source): each thread's in order, joined by
 * the blocks' link words. Holds a table of threads in the arena, nothing a block.
 */
#ifndef TP_CYCLE_SOURCE_H
#define TP_CYCLE_SOURCE_H

#include "../agent/arena.h"
#include "../agent/clock.h"
#include "../agent/cycle.h"
#include "../agent/intern.h"
#include "../agent/spool.h"
#include "model.h"

struct tp_cycle_thread {
    struct tp_thread_info info;
    uint64_t next; /* position + 1 of the block to be given next; 0: none */
    uint64_t last; /* position of the newest one, while the index is made */
};

struct tp_cycle_source {
    struct tp_log *log;
    const struct tp_intern *names;
    struct tp_clock_map map;
    struct tp_cycle_thread *threads;
    size_t thread_count, thread_capacity;
    uint32_t *slots; /* hash of serials: index + 1 */
    size_t slot_count;
    struct tp_arena *arena;
};

/* Reads the cycle's blocks once. -ENOMEM. */
int tp_cycle_source_open(struct tp_cycle_source *source, struct tp_log *log, const struct tp_intern *names,
                         const struct tp_cycle *cycle, struct tp_arena *arena);

/* Begins in [from, until), recorded or told of by loss records, counted over all blocks. */
uint64_t tp_cycle_source_begins(struct tp_cycle_source *source, const struct tp_cycle *cycle, uint64_t from, uint64_t until);

/* Of a thread of this cycle; NULL: it has no block here. */
const struct tp_thread_info *tp_cycle_source_thread(const struct tp_cycle_source *source, uint64_t serial);
const struct tp_thread_info *tp_cycle_source_os_thread(const struct tp_cycle_source *source, uint32_t os_id);

struct tp_source tp_cycle_source_as_source(struct tp_cycle_source *source);

#endif
