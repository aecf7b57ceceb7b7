/*
 * Records wait until what they tell of is over, then go into a buffer that the owner gave. Full buffers are handed back by a
 * thread of our own, as CUPTI does; a flush hands back what is ready, or all there is.
 */
#include "simgpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD_MAX = 256, FULL_MAX = 1024 };

struct waiting {
    uint64_t ready, turn;
    size_t bytes;
    uint8_t record[RECORD_MAX];
};

struct buffer {
    uint8_t *memory;
    size_t bytes, valid, records, most;
};

struct sim_buffers {
    pthread_mutex_t lock, hand; /* hand: buffers go back one at a time */
    pthread_cond_t work, brought;
    pthread_t worker;
    pid_t worker_of;            /* a forked child has no worker yet */
    bool ends, asking;          /* asking: a thread is about to bring a buffer */
    struct waiting *heap;       /* the soonest first */
    size_t count, room;
    uint64_t turns, made, asked, random;
    size_t dropped;
    struct buffer open, full[FULL_MAX];
    size_t full_count;
    sim_buffer_request request;
    sim_buffer_complete complete;
};

struct sim_buffers *sim_buffers_new(void)
{
    struct sim_buffers *buffers = calloc(1, sizeof *buffers);
    if (!buffers)
        abort();
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE); /* an owner may call us while it takes a buffer back */
    pthread_mutex_init(&buffers->lock, NULL);
    pthread_mutex_init(&buffers->hand, &recursive);
    pthread_cond_init(&buffers->work, NULL);
    pthread_cond_init(&buffers->brought, NULL);
    buffers->random = 88172645463325252u;
    return buffers;
}

static bool sooner(const struct waiting *a, const struct waiting *b)
{
    return a->ready != b->ready ? a->ready < b->ready : a->turn < b->turn;
}

static void swap(struct waiting *a, struct waiting *b)
{
    struct waiting kept = *a;
    *a = *b;
    *b = kept;
}

static bool push(struct sim_buffers *buffers, const struct waiting *new)
{
    if (buffers->count == buffers->room) {
        size_t room = buffers->room ? 2 * buffers->room : 1024;
        struct waiting *larger = realloc(buffers->heap, room * sizeof *larger);
        if (!larger)
            return false;
        buffers->heap = larger;
        buffers->room = room;
    }
    size_t at = buffers->count++;
    buffers->heap[at] = *new;
    for (; at && sooner(&buffers->heap[at], &buffers->heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&buffers->heap[at], &buffers->heap[(at - 1) / 2]);
    return true;
}

static void pop(struct sim_buffers *buffers)
{
    struct waiting *heap = buffers->heap;
    heap[0] = heap[--buffers->count];
    for (size_t at = 0, least;; at = least) {
        least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < buffers->count && sooner(&heap[child], &heap[least]))
                least = child;
        if (least == at)
            return;
        swap(&heap[at], &heap[least]);
    }
}

static uint64_t random_up_to(struct sim_buffers *buffers, uint64_t most)
{
    buffers->random ^= buffers->random << 13;
    buffers->random ^= buffers->random >> 7;
    buffers->random ^= buffers->random << 17;
    return buffers->random % (most + 1);
}

static bool turn_of(const char *fault, uint64_t nth)
{
    uint64_t every = sim_fault_number(fault);
    return every && nth % every == 0;
}

/* Under the lock, which the owner's callback does not get to see. */
static bool open_buffer(struct sim_buffers *buffers)
{
    if (buffers->open.memory)
        return true;
    sim_buffer_request request = buffers->request;
    if (!request)
        return false;
    struct buffer given = {0};
    uint64_t nth = ++buffers->asked;
    buffers->asking = true;
    pthread_mutex_unlock(&buffers->lock);
    if (!turn_of("refuse", nth))
        request(&given.memory, &given.bytes, &given.most);
    pthread_mutex_lock(&buffers->lock);
    buffers->asking = false;
    pthread_cond_broadcast(&buffers->brought);
    if (!given.memory || !given.bytes)
        return false;
    buffers->open = given;
    return true;
}

static void hand_back(struct sim_buffers *buffers)
{
    pthread_mutex_lock(&buffers->hand);
    pthread_mutex_lock(&buffers->lock);
    while (buffers->full_count) {
        struct buffer full = buffers->full[0];
        memmove(buffers->full, buffers->full + 1, --buffers->full_count * sizeof full);
        sim_buffer_complete complete = buffers->complete;
        pthread_mutex_unlock(&buffers->lock);
        if (complete)
            complete(NULL, 0, full.memory, full.bytes, full.valid);
        pthread_mutex_lock(&buffers->lock);
    }
    pthread_mutex_unlock(&buffers->lock);
    pthread_mutex_unlock(&buffers->hand);
}

static void *hand_over(void *of)
{
    struct sim_buffers *buffers = of;
    for (;;) {
        pthread_mutex_lock(&buffers->lock);
        while (!buffers->full_count && !buffers->ends)
            pthread_cond_wait(&buffers->work, &buffers->lock);
        bool ends = buffers->ends;
        pthread_mutex_unlock(&buffers->lock);
        if (ends)
            return NULL;
        hand_back(buffers);
    }
}

/* Under the lock. */
static void close_buffer(struct sim_buffers *buffers)
{
    if (buffers->full_count == FULL_MAX)
        return; /* it stays open, and records that do not fit are dropped */
    buffers->full[buffers->full_count++] = buffers->open;
    buffers->open = (struct buffer){0};
    if (buffers->worker_of != getpid() && pthread_create(&buffers->worker, NULL, hand_over, buffers) == 0)
        buffers->worker_of = getpid();
    pthread_cond_signal(&buffers->work);
}

static bool fits(const struct buffer *buffer, size_t bytes)
{
    return buffer->valid + bytes <= buffer->bytes && (!buffer->most || buffer->records < buffer->most);
}

/* Under the lock: what is over by now goes into buffers, unless a thread is bringing one, which will see to it. */
static void settle(struct sim_buffers *buffers, uint64_t now)
{
    while (!buffers->asking && buffers->count && buffers->heap[0].ready <= now) {
        if (!open_buffer(buffers) || !buffers->count) { /* the lock was open meanwhile */
            buffers->dropped += buffers->count != 0;
            if (buffers->count)
                pop(buffers);
            continue;
        }
        struct waiting *next = &buffers->heap[0];
        if (!fits(&buffers->open, next->bytes)) {
            bool empty = !buffers->open.valid;
            close_buffer(buffers);
            if (!empty && !buffers->open.memory)
                continue;
            buffers->dropped++; /* too large for any buffer of this owner, or nobody takes full ones */
            pop(buffers);
            continue;
        }
        memcpy(buffers->open.memory + buffers->open.valid, next->record, next->bytes);
        buffers->open.valid += next->bytes;
        buffers->open.records++;
        pop(buffers);
    }
}

void sim_buffers_put(struct sim_buffers *buffers, const void *record, size_t bytes, uint64_t ready)
{
    if (bytes > RECORD_MAX)
        abort();
    struct waiting new = {.ready = ready + sim_fault_number("late"), .bytes = bytes};
    memcpy(new.record, record, bytes);
    pthread_mutex_lock(&buffers->lock);
    if (turn_of("drop", ++buffers->made)) {
        buffers->dropped++;
    } else {
        uint64_t shuffle = sim_fault_number("shuffle");
        if (shuffle)
            new.ready += random_up_to(buffers, shuffle);
        new.turn = buffers->turns++;
        if (!push(buffers, &new))
            buffers->dropped++;
        if (!buffers->open.memory && !buffers->asking)
            open_buffer(buffers); /* CUPTI asks as soon as there is a first record */
        settle(buffers, sim_clock_now());
    }
    pthread_mutex_unlock(&buffers->lock);
}

void sim_buffers_flush(struct sim_buffers *buffers, bool forced)
{
    pthread_mutex_lock(&buffers->lock);
    while (forced && buffers->asking)
        pthread_cond_wait(&buffers->brought, &buffers->lock);
    settle(buffers, forced ? UINT64_MAX : sim_clock_now());
    if (forced && buffers->open.memory)
        close_buffer(buffers);
    pthread_mutex_unlock(&buffers->lock);
    hand_back(buffers);
}

void sim_buffers_callbacks(struct sim_buffers *buffers, sim_buffer_request request, sim_buffer_complete complete)
{
    pthread_mutex_lock(&buffers->lock);
    buffers->request = request;
    buffers->complete = complete;
    pthread_mutex_unlock(&buffers->lock);
}

size_t sim_buffers_dropped(struct sim_buffers *buffers)
{
    pthread_mutex_lock(&buffers->lock);
    size_t dropped = buffers->dropped;
    buffers->dropped = 0;
    pthread_mutex_unlock(&buffers->lock);
    return dropped;
}

void sim_buffers_end(struct sim_buffers *buffers)
{
    pthread_mutex_lock(&buffers->lock);
    buffers->ends = true;
    pthread_cond_signal(&buffers->work);
    pthread_mutex_unlock(&buffers->lock);
    if (buffers->worker_of == getpid())
        pthread_join(buffers->worker, NULL);
    free(buffers->heap);
    free(buffers);
}
