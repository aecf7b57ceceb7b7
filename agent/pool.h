/*
 * pool.h: chunks, the working memory of recording threads. A thread owns one chunk at a time and fills it; a full one is
 * sealed and goes to the background thread, which copies the records out and gives the chunk back.
 *
 *     free --tp_pool_take (owner)--> owned --tp_pool_seal (owner)--> sealed --tp_pool_sealed, tp_pool_give (drain)--> free
 *
 * Both hand-overs are lock-free lists; neither allocates nor calls the kernel. The pool's memory is mapped whole but only
 * the first `grown` chunks are ever handed out: those are backed and faulted in by the background thread (tp_pool_grow).
 */
#ifndef TP_POOL_H
#define TP_POOL_H

#include <stdatomic.h>

#include "base.h"
#include "record.h"

#define TP_CHUNK_BYTES (64 * 1024)

struct tp_chunk {
    /* Written by the owner. */
    _Atomic uint32_t used;     /* bytes of data, whole records; release, pairs with the drain's acquire */
    uint32_t index;            /* in the pool; constant */
    _Atomic uint64_t sequence; /* this is the owner's n-th chunk, from 0 */
    struct tp_thread_info thread;
    struct tp_thread *owner;
    /* Written by the drain (and by whoever moves the chunk between lists). */
    _Alignas(TP_CACHE_LINE) uint32_t taken; /* bytes already copied out */
    _Atomic uint32_t next;                  /* index + 1 of the next chunk in a list; 0: last */
    /* Written by the owner, where it finds no other chunk: begins lost of which no record tells yet. For a reader of
     * the spool, should the process die now. */
    _Atomic uint64_t untold;
    _Alignas(TP_CACHE_LINE) uint64_t data[];
};

#define TP_CHUNK_DATA_BYTES (TP_CHUNK_BYTES - 2 * TP_CACHE_LINE)

struct tp_pool {
    char *memory;
    uint32_t capacity; /* chunks that the memory can hold */
    uint32_t grown;    /* chunks in circulation; drain only */
    _Alignas(TP_CACHE_LINE) _Atomic uint64_t free;   /* head: index + 1 in the low half, a tag against ABA in the high */
    _Alignas(TP_CACHE_LINE) _Atomic uint32_t sealed; /* head of a list, newest first */
    _Alignas(TP_CACHE_LINE) _Atomic uint32_t free_count;
    _Atomic uint64_t *chunkless; /* begins lost by threads that have no chunk yet, as `untold` is for those that have one */
};

void tp_pool_init(struct tp_pool *pool, char *memory, size_t bytes, _Atomic uint64_t *chunkless);

/* Puts `count` more chunks into circulation, whose memory is backed already. Drain only. */
void tp_pool_grow(struct tp_pool *pool, uint32_t count);

struct tp_chunk *tp_pool_take(struct tp_pool *pool); /* NULL: none is free */
void tp_pool_seal(struct tp_pool *pool, struct tp_chunk *chunk);

/* All sealed chunks, oldest first, linked by next; NULL: none. Drain only. */
struct tp_chunk *tp_pool_sealed(struct tp_pool *pool);
struct tp_chunk *tp_pool_next(const struct tp_pool *pool, const struct tp_chunk *chunk);
void tp_pool_give(struct tp_pool *pool, struct tp_chunk *chunk);

uint32_t tp_pool_free_count(const struct tp_pool *pool); /* about */

#endif
