/*
 * ring.h: reserve and commit in the calling thread's chunk. No lock, no allocation, no system call.
 *
 *     uint64_t *at = tp_ring_reserve_begin(thread, words, time);    NULL: lost, and counted
 *     ... plain stores to at[0..words) ...
 *     tp_ring_commit(thread, at + words);
 *
 * reserve is has_room_for, and then take, or a refill: the parts are there for callers that leave the refill to others.
 *
 * A begin is accepted only if there will also be room for the ends of all open ranges, so that an end never fails (up to
 * TP_RING_OPEN_MAX open ranges; beyond that an end may find no room, and its range shows as unfinished). While a range
 * whose begin was lost is open, what begins inside it is lost too, and their ends are passed over: what is recorded nests.
 *
 * Reentrance: a thread is inside at most one reserve..commit at a time. Nothing between the two may raise, block or call
 * what could record again.
 */
#ifndef TP_RING_H
#define TP_RING_H

#include "pool.h"
#include "record.h"
#include "thread.h"

#define TP_RING_OPEN_MAX (TP_CHUNK_DATA_BYTES / 2 / (TP_END_WORDS * 8))

void tp_ring_init(struct tp_pool *pool); /* NULL: nothing is recorded */

/* Recording was switched on anew: what was open or lost before is forgotten, since its ends were not recorded. */
void tp_ring_restart(struct tp_thread *thread, uint32_t epoch);

/* Slow paths: the chunk is full, or there is none yet. */
uint64_t *tp_ring_refill_begin(struct tp_thread *thread, unsigned words, uint64_t time);
uint64_t *tp_ring_refill_end(struct tp_thread *thread);
uint64_t *tp_ring_refill_more(struct tp_thread *thread, unsigned words);

/* The thread is gone: its chunk is sealed. */
void tp_ring_leave(struct tp_thread *thread);

static inline void tp_ring_commit(struct tp_thread *thread, uint64_t *next)
{
    thread->next = next;
    struct tp_chunk *chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed); /* our own store */
    /* Release: the record is whole before it is counted. Pairs with the acquire in drain.c. */
    atomic_store_explicit(&chunk->used, (uint32_t)((char *)next - (char *)chunk->data), memory_order_release);
}

static inline bool tp_ring_has_room_for_begin(const struct tp_thread *thread, unsigned words)
{
    return !(thread->lost_depth | thread->loss_first) &&
           thread->begin_end - thread->next >= (ptrdiff_t)words + TP_END_WORDS;
}

static inline uint64_t *tp_ring_take_begin(struct tp_thread *thread)
{
    thread->open++;
    thread->begin_end -= TP_END_WORDS;
    return thread->next;
}

static inline uint64_t *tp_ring_reserve_begin(struct tp_thread *thread, unsigned words, uint64_t time)
{
    if (TP_UNLIKELY(!tp_ring_has_room_for_begin(thread, words)))
        return tp_ring_refill_begin(thread, words, time);
    return tp_ring_take_begin(thread);
}

static inline bool tp_ring_has_room_for_end(const struct tp_thread *thread)
{
    return !thread->lost_depth && thread->end - thread->next >= TP_END_WORDS && thread->open;
}

static inline uint64_t *tp_ring_take_end(struct tp_thread *thread)
{
    thread->open--;
    thread->begin_end += TP_END_WORDS;
    return thread->next;
}

/* NULL: the end of a range whose begin was lost. */
static inline uint64_t *tp_ring_reserve_end(struct tp_thread *thread)
{
    if (TP_UNLIKELY(!tp_ring_has_room_for_end(thread)))
        return tp_ring_refill_end(thread);
    return tp_ring_take_end(thread);
}

/* For what belongs to a range that is open, behind its begin. NULL: there is no room, or what is open was lost. */
static inline uint64_t *tp_ring_reserve_more(struct tp_thread *thread, unsigned words)
{
    if (TP_UNLIKELY(thread->lost_depth || thread->begin_end - thread->next < (ptrdiff_t)words))
        return tp_ring_refill_more(thread, words);
    return thread->next;
}

#endif
