#include "cycle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tp_cycle *queue, *unused; /* under queue_lock */
static struct tp_arena objects;         /* under queue_lock; kept, cycles are used again */

static struct tp_cycle *new_object(void)
{
    struct tp_cycle *cycle = unused;
    if (!cycle)
        return tp_arena_alloc(&objects, sizeof *cycle);
    unused = cycle->next;
    memset(cycle, 0, sizeof *cycle);
    return cycle;
}

void tp_cycles_use(struct tp_cycle *memory, size_t count)
{
    pthread_mutex_lock(&queue_lock);
    for (size_t i = count; i > 0; i--) {
        memory[i - 1].next = unused;
        unused = &memory[i - 1];
    }
    pthread_mutex_unlock(&queue_lock);
}

struct tp_cycle *tp_cycle_open(uint64_t begin)
{
    pthread_mutex_lock(&queue_lock);
    struct tp_cycle *cycle = new_object();
    if (cycle) {
        cycle->begin = cycle->keep_from = begin;
        cycle->end = UINT64_MAX;
        cycle->edges = cycle->inline_edges;
        cycle->edge_capacity = TP_CYCLE_INLINE_EDGES;
        atomic_signal_fence(memory_order_seq_cst); /* the process may be killed at any point */
        cycle->state = TP_CYCLE_OPEN;
        struct tp_cycle **at = &queue;
        while (*at)
            at = &(*at)->next;
        *at = cycle;
    }
    pthread_mutex_unlock(&queue_lock);
    return cycle;
}

static void free_edges(struct tp_cycle *cycle)
{
    if (cycle->edges != cycle->inline_edges)
        munmap(cycle->edges, cycle->edge_capacity * sizeof *cycle->edges);
}

static bool more_edges(struct tp_cycle *cycle)
{
    size_t capacity = cycle->edge_capacity < 128 ? 128 : cycle->edge_capacity * 2;
    if (capacity > TP_CYCLE_MAX_EDGES)
        return false;
    void *memory = mmap(NULL, capacity * sizeof *cycle->edges, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    memcpy(memory, cycle->edges, cycle->edge_count * sizeof *cycle->edges);
    free_edges(cycle);
    cycle->edges = memory;
    cycle->edge_capacity = capacity;
    return true;
}

static void drop_edges(struct tp_cycle *cycle, size_t count)
{
    cycle->edge_count -= count;
    memmove(cycle->edges, cycle->edges + count, cycle->edge_count * sizeof *cycle->edges);
}

void tp_cycle_add_edge(struct tp_cycle *cycle, const struct tp_cycle_edge *edge)
{
    if (cycle->edge_count == cycle->edge_capacity && !more_edges(cycle)) {
        cycle->edges_dropped += cycle->edge_count / 2;
        drop_edges(cycle, cycle->edge_count / 2);
    }
    cycle->edges[cycle->edge_count++] = *edge;
}

void tp_cycle_may_cut(struct tp_cycle *cycle, uint64_t begin)
{
    pthread_mutex_lock(&queue_lock);
    cycle->keep_from = begin;
    cycle->dropped_kept = 0; /* what was let go before now is older */
    pthread_mutex_unlock(&queue_lock);
}

void tp_cycle_cut(struct tp_cycle *cycle, uint64_t begin)
{
    pthread_mutex_lock(&queue_lock);
    if (cycle->keep_from == begin)
        cycle->dropped = cycle->dropped_kept;
    if (cycle->dropped_until <= begin)
        cycle->dropped_until = 0;
    cycle->begin = cycle->keep_from = begin;
    pthread_mutex_unlock(&queue_lock);
    size_t past = 0;
    while (past < cycle->edge_count && cycle->edges[past].time <= begin)
        past++;
    if (past > 0)
        cycle->first_step = cycle->edges[past - 1].number + 1;
    drop_edges(cycle, past);
}

void tp_cycle_close(struct tp_cycle *cycle, uint64_t end, bool save)
{
    pthread_mutex_lock(&queue_lock);
    cycle->end = end;
    cycle->save = save;
    cycle->state = TP_CYCLE_CLOSED;
    pthread_mutex_unlock(&queue_lock);
}

struct tp_cycle *tp_cycle_first(void)
{
    pthread_mutex_lock(&queue_lock);
    struct tp_cycle *cycle = queue;
    pthread_mutex_unlock(&queue_lock);
    return cycle;
}

struct tp_cycle *tp_cycle_after(const struct tp_cycle *cycle)
{
    pthread_mutex_lock(&queue_lock);
    struct tp_cycle *next = cycle->next;
    pthread_mutex_unlock(&queue_lock);
    return next;
}

enum tp_cycle_state tp_cycle_state(const struct tp_cycle *cycle)
{
    pthread_mutex_lock(&queue_lock);
    enum tp_cycle_state state = cycle->state;
    pthread_mutex_unlock(&queue_lock);
    return state;
}

void tp_cycle_window(const struct tp_cycle *cycle, uint64_t *ret_begin, uint64_t *ret_end)
{
    pthread_mutex_lock(&queue_lock);
    *ret_begin = cycle->begin;
    *ret_end = cycle->end;
    pthread_mutex_unlock(&queue_lock);
}

uint64_t tp_cycle_kept_from(const struct tp_cycle *cycle)
{
    pthread_mutex_lock(&queue_lock);
    uint64_t from = cycle->keep_from > cycle->begin ? cycle->keep_from : cycle->begin;
    pthread_mutex_unlock(&queue_lock);
    return from;
}

void tp_cycle_set_state(struct tp_cycle *cycle, enum tp_cycle_state state)
{
    pthread_mutex_lock(&queue_lock);
    cycle->state = state;
    pthread_mutex_unlock(&queue_lock);
}

void tp_cycle_dropped(struct tp_cycle *cycle, uint64_t count, uint64_t count_kept, uint64_t until)
{
    pthread_mutex_lock(&queue_lock);
    cycle->dropped += count;
    cycle->dropped_kept += count_kept;
    if (until > cycle->dropped_until)
        cycle->dropped_until = until;
    pthread_mutex_unlock(&queue_lock);
}

struct tp_cycle *tp_cycle_next_whole(void)
{
    pthread_mutex_lock(&queue_lock);
    struct tp_cycle *cycle = queue;
    while (cycle && cycle->state == TP_CYCLE_WRITTEN)
        cycle = cycle->next;
    if (cycle && cycle->state != TP_CYCLE_WHOLE)
        cycle = NULL;
    pthread_mutex_unlock(&queue_lock);
    return cycle;
}

void tp_cycle_remove(struct tp_cycle *cycle)
{
    free_edges(cycle);
    pthread_mutex_lock(&queue_lock);
    struct tp_cycle **at = &queue;
    while (*at != cycle)
        at = &(*at)->next;
    *at = cycle->next;
    cycle->state = TP_CYCLE_UNUSED;
    cycle->next = unused;
    unused = cycle;
    pthread_mutex_unlock(&queue_lock);
}

void tp_cycles_forget(void)
{
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    queue_lock = unlocked; /* another thread of the parent may have held it; here there is no other thread */
    queue = unused = NULL; /* their memory may be the parent's spool, which is not mapped here */
}
