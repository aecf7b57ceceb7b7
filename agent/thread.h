/*
 * thread.h: what a recording thread owns, behind one thread-local word.
 *
 *     word NULL        the thread has not recorded yet (or its state was reset by fork): tp_thread_enter makes one
 *     word = state     it records
 *     word = TP_THREAD_LATE   its thread-local destructors have run, or it is one of ours: it never records (again);
 *                      what a late one still does is counted as lost
 *
 * The list of threads has one lock. It protects the list and the free states, nests in nothing, and nothing is locked
 * inside it. It is taken when a thread first records, by the drain, and around fork.
 */
#ifndef TP_THREAD_H
#define TP_THREAD_H

#include <stdatomic.h>

#include "base.h"
#include "pool.h"
#include "record.h"

/* A name that this thread has interned; its place follows from the address at which it stood. */
struct tp_thread_name {
    const char *text; /* in the table */
    uint32_t id, bytes;
};

#define TP_THREAD_NAMES 64

struct tp_thread {
    /* Hot, written by the owner at each record; two lines, shared with nothing. */
    _Alignas(2 * TP_CACHE_LINE) uint64_t *next; /* where the next record goes */
    uint64_t *end;                              /* end of the chunk's data */
    uint64_t *begin_end;                        /* a begin may fill up to here; behind it lies room for the open ranges' ends */
    uint64_t open;                              /* begins recorded whose ends are still to come */
    uint64_t lost_depth;                        /* ranges open now whose begin was lost */
    _Atomic(struct tp_chunk *) chunk;           /* release by the owner, acquire by the drain */
    uint64_t chunks;                            /* taken so far */
    uint32_t epoch;                             /* of hooks.h, when this thread last recorded */
    uint64_t loss_first, loss_last;             /* times of the begins lost since the last loss record */
    _Atomic uint64_t lost;                      /* all begins lost */
    _Atomic uint64_t lost_told;                 /* of them, told by loss records */
    struct tp_thread_name names[TP_THREAD_NAMES];
    /* Cold. */
    _Alignas(2 * TP_CACHE_LINE) struct tp_thread_info info;
    struct tp_thread *next_thread; /* list lock */
    uint64_t drained;              /* drain: the chunk to be emptied next is this one by sequence */
    _Atomic bool dead;             /* its last chunk is sealed, or it had none */
};

#define TP_THREAD_LATE ((struct tp_thread *)1)

extern __thread struct tp_thread *tp_thread_word __attribute__((tls_model("initial-exec")));

/* NULL or a state; never TP_THREAD_LATE. */
static inline struct tp_thread *tp_thread_self(void)
{
    struct tp_thread *thread = tp_thread_word;
    return TP_LIKELY(thread > TP_THREAD_LATE) ? thread : NULL;
}

/* Once, before the first enter. logical_id (may be NULL) gives the number that the observed program gives to the calling
 * thread. -errno when no thread-local key is left. */
int tp_thread_init(uint64_t (*logical_id)(void));

/* The slow path of a first record: a state for the calling thread, or NULL (late, ours, or no memory: counted as lost). */
struct tp_thread *tp_thread_enter(void);

/* Marks the calling thread as one of ours. */
void tp_thread_never_records(void);

/* Begins that have no thread state to be counted in: those of late threads, and those that a thread took to its grave. */
void tp_thread_count_late(uint64_t count);
uint64_t tp_thread_lost_late(void);

void tp_threads_lock(void);
void tp_threads_unlock(void);
struct tp_thread *tp_threads_first(void); /* under the lock */
/* Takes dead threads whose chunks are all emptied off the list; their states are used again. Drain only. */
void tp_threads_recycle(void);

/* True once the main thread has ended by itself, while others may go on: the process ends with the last of them. */
bool tp_threads_main_is_gone(void);

/* In a forked child: no thread has a state, and nobody holds the lock. */
void tp_threads_reset_in_child(void);

#endif
