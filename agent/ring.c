#include "ring.h"

static struct tp_pool *pool;

void tp_ring_init(struct tp_pool *new_pool)
{
    pool = new_pool;
}

/* Where begins must stop so that the ends of all open ranges still fit. */
static void place_begin_end(struct tp_thread *thread)
{
    uint64_t open = thread->open < TP_RING_OPEN_MAX ? thread->open : TP_RING_OPEN_MAX;
    thread->begin_end = thread->end - open * TP_END_WORDS;
}

static uint64_t untold(const struct tp_thread *thread)
{
    return atomic_load_explicit(&thread->lost, memory_order_relaxed) -
           atomic_load_explicit(&thread->lost_told, memory_order_relaxed);
}

/* Changes the full chunk (or none) for an empty one. The old one is given away only when the new one is there, since it
 * holds the room for the ends of what is open. */
static bool next_chunk(struct tp_thread *thread)
{
    struct tp_chunk *fresh = pool ? tp_pool_take(pool) : NULL;
    if (!fresh)
        return false;
    struct tp_chunk *full = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    if (full) {
        atomic_store_explicit(&full->untold, 0, memory_order_relaxed);
        tp_pool_seal(pool, full);
    } else if (thread->loss_first) {
        atomic_fetch_sub_explicit(pool->chunkless, untold(thread), memory_order_relaxed);
    }
    /* First: whoever reads the spool of a dead process must not see old records as this thread's. */
    atomic_store_explicit(&fresh->used, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    fresh->owner = thread;
    fresh->thread = thread->info;
    fresh->taken = 0;
    atomic_store_explicit(&fresh->untold, untold(thread), memory_order_relaxed);
    atomic_store_explicit(&fresh->sequence, thread->chunks, memory_order_relaxed);
    thread->chunks++;
    thread->next = fresh->data;
    thread->end = fresh->data + TP_CHUNK_DATA_BYTES / 8;
    place_begin_end(thread);
    /* Release: header first, and the seal above before this. Pairs with the acquire in drain.c. */
    atomic_store_explicit(&thread->chunk, fresh, memory_order_release);
    return true;
}

TP_COLD void tp_ring_restart(struct tp_thread *thread, uint32_t epoch)
{
    thread->epoch = epoch;
    thread->open = 0;
    thread->lost_depth = 0;
    if (thread->end)
        place_begin_end(thread);
}

static void put_loss(struct tp_thread *thread)
{
    struct tp_chunk *chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    struct tp_loss *loss = (struct tp_loss *)thread->next;
    loss->head = tp_record_head(TP_RECORD_LOSS, TP_LOSS_WORDS, 0);
    loss->time = thread->loss_first;
    loss->count = untold(thread);
    loss->last_time = thread->loss_last;
    atomic_store_explicit(&thread->lost_told, atomic_load_explicit(&thread->lost, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&chunk->untold, 0, memory_order_relaxed);
    thread->loss_first = 0;
    tp_ring_commit(thread, thread->next + TP_LOSS_WORDS);
}

static uint64_t *lose(struct tp_thread *thread, uint64_t time)
{
    if (!thread->loss_first)
        thread->loss_first = time;
    thread->loss_last = time;
    thread->lost_depth++;
    uint64_t lost = atomic_load_explicit(&thread->lost, memory_order_relaxed); /* one writer */
    atomic_store_explicit(&thread->lost, lost + 1, memory_order_relaxed);
    struct tp_chunk *chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    if (chunk)
        atomic_store_explicit(&chunk->untold, untold(thread), memory_order_relaxed);
    else if (pool)
        atomic_fetch_add_explicit(pool->chunkless, 1, memory_order_relaxed);
    return NULL;
}

uint64_t *tp_ring_refill_begin(struct tp_thread *thread, unsigned words, uint64_t time)
{
    if (thread->lost_depth)
        return lose(thread, time);
    unsigned need = words + TP_END_WORDS + (thread->loss_first ? TP_LOSS_WORDS : 0);
    if (thread->begin_end - thread->next < (ptrdiff_t)need && !next_chunk(thread))
        return lose(thread, time);
    if (thread->loss_first)
        put_loss(thread);
    if (thread->begin_end - thread->next < (ptrdiff_t)words + TP_END_WORDS)
        return lose(thread, time); /* deeper than TP_RING_OPEN_MAX allows in one chunk */
    thread->open++;
    place_begin_end(thread);
    return thread->next;
}

uint64_t *tp_ring_refill_end(struct tp_thread *thread)
{
    if (thread->lost_depth) {
        thread->lost_depth--;
        return NULL;
    }
    if (thread->end - thread->next < TP_END_WORDS && !next_chunk(thread))
        return NULL;
    if (thread->open) /* else it began on another thread, or before recording did */
        thread->open--;
    place_begin_end(thread);
    return thread->next;
}

uint64_t *tp_ring_refill_more(struct tp_thread *thread, unsigned words)
{
    if (thread->lost_depth || !next_chunk(thread) || thread->begin_end - thread->next < (ptrdiff_t)words)
        return NULL;
    return thread->next;
}

void tp_ring_leave(struct tp_thread *thread)
{
    struct tp_chunk *chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    if (!chunk)
        return;
    if (thread->loss_first && thread->end - thread->next >= TP_LOSS_WORDS)
        put_loss(thread);
    atomic_store_explicit(&chunk->untold, 0, memory_order_relaxed); /* the rest is counted as late: thread.c */
    atomic_store_explicit(&thread->chunk, NULL, memory_order_release); /* pairs with drain.c */
    tp_pool_seal(pool, chunk);
}
