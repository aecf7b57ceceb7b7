#include "drain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bell.h"
#include "cycle.h"
#include "dir.h"
#include "hooks.h"
#include "pool.h"
#include "session.h"
#include "spool.h"
#include "thread.h"
#include "worker.h"

#define POLL_MIN_MS 1
#define POLL_MAX_MS 5
#define IDLE_MS 3600000 /* nothing is recorded: whatever changes wakes this thread */
#define ALONE_MS 50 /* how soon the end of the last thread is seen, once the main thread has ended */
#define GRACE_NS 1000000
#define DISK_PERIOD_NS 50000000

static struct tp_bell wake, finished; /* `finished` rings once */
static pthread_t thread_id;
static _Atomic bool running; /* set and cleared by who attaches and who leaves; asked by any way out */
static _Atomic(const char *) finish_how; /* non-NULL: asked to finish */
static struct tp_drain_cost cost; /* drain only, until finished */

void tp_drain_wake(void)
{
    if (running)
        tp_bell_ring(&wake);
}

void tp_drain_ask_finish(const char *how)
{
    const char *none = NULL;
    atomic_compare_exchange_strong(&finish_how, &none, how);
    tp_drain_wake();
}

bool tp_drain_wait_finished(uint64_t limit_ms)
{
    return !running || tp_bell_wait(&finished, 0, limit_ms);
}

/* What the windows want, as known after the records in hand were written. */
static uint64_t keep_from(void)
{
    /* A window that is just being opened takes its time first and enters the queue a moment later. */
    for (int i = 0; i < 1000 && tp_session_is_marking(); i++)
        sched_yield();
    uint64_t from = UINT64_MAX;
    for (struct tp_cycle *c = tp_cycle_first(); c; c = tp_cycle_after(c)) {
        uint64_t begin, end;
        tp_cycle_window(c, &begin, &end);
        if (tp_cycle_state(c) <= TP_CYCLE_CLOSED && begin < from)
            from = begin;
    }
    return from;
}

/* Begins of a block whose time is in [from, until), those among them that its loss records tell of. */
static uint64_t begins_between(const struct tp_block *block, const uint64_t *words, uint64_t from, uint64_t until)
{
    if (block->first_time >= from && block->last_time < until)
        return block->begins + block->lost;
    if (block->last_time < from || block->first_time >= until)
        return 0;
    uint64_t begins = 0;
    const uint64_t *end = words + block->bytes / 8;
    for (const uint64_t *at = words; at < end; at += tp_record_words(*at))
        if (at[1] >= from && at[1] < until)
            begins += tp_record_begins(at);
    return begins;
}

static void count_dropped(const struct tp_block *block, const uint64_t *words, bool oldest)
{
    for (struct tp_cycle *c = tp_cycle_first(); c; c = tp_cycle_after(c)) {
        if (tp_cycle_state(c) > TP_CYCLE_CLOSED)
            continue;
        uint64_t begin, end;
        tp_cycle_window(c, &begin, &end);
        uint64_t count = begins_between(block, words, begin, end);
        uint64_t kept = begins_between(block, words, tp_cycle_kept_from(c), end);
        tp_cycle_dropped(c, count, kept, oldest ? block->last_time : 0);
    }
}

/* The oldest block makes room, unless the worker may be reading it. */
static bool drop_oldest(struct tp_spool *spool)
{
    for (struct tp_cycle *c = tp_cycle_first(); c; c = tp_cycle_after(c))
        if (tp_cycle_state(c) == TP_CYCLE_WHOLE)
            return false;
    uint64_t position = tp_log_tail(&spool->log);
    struct tp_block *block = tp_log_at(&spool->log, &position);
    if (!block)
        return false;
    count_dropped(block, (const uint64_t *)(block + 1), true);
    tp_log_release(spool, tp_log_after(position, block));
    return true;
}

static void append(const struct tp_block *block, const uint64_t *words)
{
    struct tp_spool *spool = &tp_session.spool;
    int failed;
    while ((failed = tp_log_append(spool, block, words)) == -ENOSPC)
        if (!drop_oldest(spool))
            break;
    if (failed)
        count_dropped(block, words, false);
}

/* Takes the records of one chunk up to `used` bytes. */
static void take(struct tp_chunk *chunk, uint32_t used, uint64_t from)
{
    if (used <= chunk->taken)
        return;
    const uint64_t *words = (const uint64_t *)((const char *)chunk->data + chunk->taken);
    struct tp_block block = {.magic = TP_BLOCK_MAGIC, .bytes = used - chunk->taken, .thread = chunk->thread};
    cost.records_taken_bytes += block.bytes;
    block.first_time = words[1];
    const uint64_t *end = words + block.bytes / 8;
    for (const uint64_t *at = words; at < end; at += tp_record_words(*at)) {
        block.last_time = at[1];
        block.begins += tp_record_kind(*at) == TP_RECORD_BEGIN;
        if (tp_record_kind(*at) == TP_RECORD_LOSS)
            block.lost += ((const struct tp_loss *)at)->count;
    }
    if (block.last_time >= from)
        append(&block, words);
    chunk->taken = used; /* last: a process that is killed in between has the records twice, and spool_in.c sees that */
}

/* A chunk's sequence says whether it is the next one of its thread: then all older ones have been emptied. */
static bool take_sealed(void)
{
    struct tp_pool *pool = &tp_session.spool.pool;
    struct tp_chunk *chunk = tp_pool_sealed(pool);
    if (!chunk)
        return false;
    uint64_t from = keep_from();
    while (chunk) {
        struct tp_chunk *next = tp_pool_next(pool, chunk);
        take(chunk, atomic_load_explicit(&chunk->used, memory_order_acquire), from);
        chunk->owner->drained++;
        tp_pool_give(pool, chunk);
        chunk = next;
    }
    return true;
}

/* Everything that threads have written until now, also in chunks that are not full. The list may grow at its head while
 * it is walked; only this thread takes states off it. */
static void take_all(void)
{
    take_sealed();
    tp_threads_lock();
    struct tp_thread *first = tp_threads_first();
    tp_threads_unlock();
    for (struct tp_thread *t = first; t; t = t->next_thread) {
        struct tp_chunk *chunk = atomic_load_explicit(&t->chunk, memory_order_acquire); /* pairs with ring.c */
        if (!chunk)
            continue;
        /* Chunks that this thread sealed before it took this one are in the sealed list by now. */
        take_sealed();
        if (atomic_load_explicit(&t->chunk, memory_order_acquire) != chunk ||
            atomic_load_explicit(&chunk->sequence, memory_order_relaxed) != t->drained)
            continue; /* it has gone on meanwhile: what it sealed is in the list, taken at the end */
        uint32_t used = atomic_load_explicit(&chunk->used, memory_order_acquire); /* pairs with tp_ring_commit */
        take(chunk, used, keep_from());
    }
    take_sealed();
}

/* Begins that were lost and of which no record tells yet: their threads have not recorded since. */
static uint64_t untold_losses(void)
{
    static uint64_t late_told;
    uint64_t late = tp_thread_lost_late();
    uint64_t untold = late - late_told;
    late_told = late;
    tp_threads_lock();
    for (struct tp_thread *t = tp_threads_first(); t; t = t->next_thread)
        untold += atomic_load_explicit(&t->lost, memory_order_relaxed) -
                  atomic_load_explicit(&t->lost_told, memory_order_relaxed);
    tp_threads_unlock();
    return untold;
}

static void sleep_ns(long ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

/* The blocks before the window's first one may go. */
static void pass_older_blocks(struct tp_cycle *cycle)
{
    uint64_t begin, end;
    tp_cycle_window(cycle, &begin, &end);
    struct tp_log *log = &tp_session.spool.log;
    for (;;) {
        struct tp_block *block = tp_log_at(log, &cycle->log_begin);
        if (!block || block->last_time >= begin)
            break;
        cycle->log_begin = tp_log_after(cycle->log_begin, block);
    }
}

/* Closed windows become whole: everything up to now is taken, and what lies in the log is theirs. */
static bool make_whole(void)
{
    struct tp_cycle *last = NULL;
    for (struct tp_cycle *c = tp_cycle_first(); c; c = tp_cycle_after(c))
        if (tp_cycle_state(c) == TP_CYCLE_CLOSED && c->log_begun)
            last = c;
    if (!last)
        return false;
    sleep_ns(GRACE_NS); /* a hook that took its time before the end may still be storing its record */
    take_all();
    last->untold = untold_losses();
    uint64_t head = tp_log_head(&tp_session.spool.log);
    for (struct tp_cycle *c = tp_cycle_first(); c; c = c == last ? NULL : tp_cycle_after(c))
        if (tp_cycle_state(c) == TP_CYCLE_CLOSED) {
            pass_older_blocks(c);
            c->log_end = head;
            tp_cycle_set_state(c, TP_CYCLE_WHOLE);
        }
    return true;
}

/* New windows get their place in the log, closed ones go to the worker, written ones go away. */
static void tend_cycles(void)
{
    struct tp_spool *spool = &tp_session.spool;
    uint64_t oldest = UINT64_MAX;
    struct tp_cycle *next;
    for (struct tp_cycle *c = tp_cycle_first(); c; c = next) {
        next = tp_cycle_after(c);
        if (tp_cycle_state(c) == TP_CYCLE_WRITTEN) {
            tp_cycle_remove(c);
            continue;
        }
        if (!c->log_begun) {
            /* A window may have been opened in the past: its first records may lie with those of the one before it. */
            c->log_begin = oldest != UINT64_MAX ? oldest : tp_log_tail(&spool->log);
            c->log_begun = true;
        }
        if (oldest == UINT64_MAX) {
            if (tp_cycle_state(c) < TP_CYCLE_WHOLE) /* the worker reads a whole one's place, and from there on */
                pass_older_blocks(c);
            oldest = c->log_begin;
        }
    }
    tp_log_release(spool, oldest != UINT64_MAX ? oldest : tp_log_head(&spool->log));
    if (make_whole())
        tp_worker_wake();
}

static uint64_t next_period; /* of `every:`, CLOCK_MONOTONIC */

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Makes the marks of `every:`; returns how long there is until the next, in ms. */
static uint64_t tend_period(void)
{
    const struct tp_step_rule *rule = &tp_session.settings->step;
    if (rule->kind != TP_STEP_EVERY)
        return IDLE_MS;
    uint64_t now = monotonic_ns();
    if (!next_period)
        next_period = now + rule->period_ns;
    if (now >= next_period) {
        tp_session_mark(TP_MARK_TIME, TP_MARK_END, 0, "every");
        next_period += (now - next_period) / rule->period_ns * rule->period_ns + rule->period_ns;
    }
    uint64_t rest = (next_period - now) / 1000000 + 1;
    return rest < IDLE_MS ? rest : IDLE_MS;
}

static void count_entry(void *count, int folder, const char *name)
{
    (void)folder;
    *(unsigned *)count += name[0] != '.';
}

/* Are the drain and the worker, and what is left of the main thread, the last threads? The process would have ended. */
static bool is_alone(void)
{
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks < 0)
        return false;
    unsigned count = 0;
    tp_dir_each(tasks, count_entry, &count);
    close(tasks);
    return count <= 3;
}

static uint64_t own_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Chunks are not in the file of a spool on a disk: there what lies in those that are not full is fetched now and then, lest
 * it die with the process. */
static void take_what_would_die(void)
{
    static uint64_t next;
    if (tp_session.spool.kind != TP_SPOOL_DISK || !(tp_hooks_active() & TP_HOOK_RECORD) || monotonic_ns() < next)
        return;
    take_all();
    next = monotonic_ns() + DISK_PERIOD_NS;
}

static void *drain_main(void *nothing)
{
    (void)nothing;
    uint64_t poll_ms = POLL_MIN_MS;
    for (;;) {
        uint32_t rings = tp_bell_rings(&wake);
        if (atomic_load(&finish_how))
            break;
        bool busy = take_sealed();
        take_what_would_die();
        tp_session.spool.state->process.saw_backward = atomic_load(&tp_session.saw_backward);
        tp_spool_tend(&tp_session.spool);
        tend_cycles();
        tp_threads_recycle();
        uint64_t wait_ms = tend_period();
        if (tp_hooks_active() & TP_HOOK_RECORD) {
            poll_ms = busy ? (poll_ms + 1) / 2 : poll_ms * 2 < POLL_MAX_MS ? poll_ms * 2 : POLL_MAX_MS;
            if (poll_ms < wait_ms)
                wait_ms = poll_ms;
        }
        if (tp_threads_main_is_gone()) {
            wait_ms = wait_ms < ALONE_MS ? wait_ms : ALONE_MS;
            if (is_alone()) /* when this thread has ended too, the C library calls exit(0), as it would have */
                tp_drain_ask_finish("return");
        }
        tp_bell_wait(&wake, rings, wait_ms);
    }
    const char *how = atomic_load(&finish_how);
    tp_session.ended = how;
    tp_session_close(how);
    tend_cycles();
    tp_worker_finish();
    tend_cycles();
    cost.worker_cpu_ns = tp_worker_cpu_ns();
    cost.drain_cpu_ns = own_cpu_ns();
    tp_session.outputs->finish();
    tp_spool_retire(&tp_session.spool);
    tp_bell_ring(&finished);
    return NULL;
}

int tp_drain_start(void)
{
    atomic_store(&finished.rings, 0);
    atomic_store(&finish_how, NULL);
    next_period = 0;
    cost = (struct tp_drain_cost){0};
    int failed = tp_worker_start();
    if (failed)
        return failed;
    running = true;
    failed = tp_thread_of_ours(drain_main, "tprof-drain", 256 * 1024, &thread_id);
    if (failed) {
        running = false;
        tp_worker_finish();
    }
    return failed;
}

void tp_drain_join(void)
{
    if (running && tp_bell_rings(&finished)) {
        pthread_join(thread_id, NULL);
        running = false;
    }
}

void tp_drain_forget(void)
{
    running = false;
    atomic_store(&finish_how, NULL);
    tp_worker_forget();
}

void tp_drain_get_cost(struct tp_drain_cost *ret_cost)
{
    *ret_cost = cost;
}
