#include "pool.h"

_Static_assert(sizeof(struct tp_chunk) == 2 * TP_CACHE_LINE, "TP_CHUNK_DATA_BYTES counts on two lines of header");

static struct tp_chunk *chunk_at(const struct tp_pool *pool, uint32_t link)
{
    return link ? (struct tp_chunk *)(pool->memory + (size_t)(link - 1) * TP_CHUNK_BYTES) : NULL;
}

void tp_pool_init(struct tp_pool *pool, char *memory, size_t bytes, _Atomic uint64_t *chunkless)
{
    pool->memory = memory;
    pool->capacity = (uint32_t)(bytes / TP_CHUNK_BYTES);
    pool->grown = 0;
    pool->chunkless = chunkless;
    atomic_store_explicit(&pool->free, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->sealed, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->free_count, 0, memory_order_relaxed);
}

void tp_pool_give(struct tp_pool *pool, struct tp_chunk *chunk)
{
    uint64_t head = atomic_load_explicit(&pool->free, memory_order_relaxed);
    uint64_t fresh;
    do {
        atomic_store_explicit(&chunk->next, (uint32_t)head, memory_order_relaxed);
        fresh = (chunk->index + 1) | ((head >> 32) + 1) << 32;
        /* Release: the chunk's state is written before it can be taken. Pairs with the acquire in tp_pool_take. */
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, fresh, memory_order_release, memory_order_relaxed));
    atomic_fetch_add_explicit(&pool->free_count, 1, memory_order_relaxed);
}

void tp_pool_grow(struct tp_pool *pool, uint32_t count)
{
    for (; count > 0 && pool->grown < pool->capacity; count--) {
        struct tp_chunk *chunk = chunk_at(pool, pool->grown + 1);
        chunk->index = pool->grown++;
        tp_pool_give(pool, chunk);
    }
}

struct tp_chunk *tp_pool_take(struct tp_pool *pool)
{
    uint64_t head = atomic_load_explicit(&pool->free, memory_order_acquire); /* pairs with tp_pool_give */
    while ((uint32_t)head != 0) {
        struct tp_chunk *chunk = chunk_at(pool, (uint32_t)head);
        /* The chunk may be taken, filled and given back meanwhile: then the tag has moved on and the exchange fails. */
        uint64_t rest = atomic_load_explicit(&chunk->next, memory_order_relaxed) | ((head >> 32) + 1) << 32;
        if (atomic_compare_exchange_weak_explicit(&pool->free, &head, rest, memory_order_acquire, memory_order_acquire)) {
            atomic_fetch_sub_explicit(&pool->free_count, 1, memory_order_relaxed);
            return chunk;
        }
    }
    return NULL;
}

void tp_pool_seal(struct tp_pool *pool, struct tp_chunk *chunk)
{
    uint32_t head = atomic_load_explicit(&pool->sealed, memory_order_relaxed);
    do {
        atomic_store_explicit(&chunk->next, head, memory_order_relaxed);
        /* Release: pairs with the exchange in tp_pool_sealed. */
    } while (!atomic_compare_exchange_weak_explicit(&pool->sealed, &head, chunk->index + 1, memory_order_release,
                                                    memory_order_relaxed));
}

struct tp_chunk *tp_pool_sealed(struct tp_pool *pool)
{
    uint32_t newest = atomic_exchange_explicit(&pool->sealed, 0, memory_order_acquire); /* pairs with tp_pool_seal */
    uint32_t oldest = 0;
    while (newest) {
        struct tp_chunk *chunk = chunk_at(pool, newest);
        uint32_t next = atomic_load_explicit(&chunk->next, memory_order_relaxed);
        atomic_store_explicit(&chunk->next, oldest, memory_order_relaxed);
        oldest = newest;
        newest = next;
    }
    return chunk_at(pool, oldest);
}

struct tp_chunk *tp_pool_next(const struct tp_pool *pool, const struct tp_chunk *chunk)
{
    return chunk_at(pool, atomic_load_explicit(&chunk->next, memory_order_relaxed));
}

uint32_t tp_pool_free_count(const struct tp_pool *pool)
{
    return atomic_load_explicit(&pool->free_count, memory_order_relaxed);
}
