#include "thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arena.h"
#include "critical.h"
#include "drain.h"
#include "hooks.h"
#include "ring.h"

__thread struct tp_thread *tp_thread_word __attribute__((tls_model("initial-exec")));

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tp_thread *list;   /* under list_lock */
static struct tp_thread *unused; /* under list_lock */
static struct tp_arena states;   /* under list_lock; states are never unmapped */
static uint64_t last_serial;     /* under list_lock */
static pthread_key_t key;
static bool key_made;
static uint64_t (*logical_id_of_self)(void);
static _Atomic uint64_t lost_late;
static _Atomic bool main_gone;

static void thread_gone(void *state)
{
    struct tp_thread *thread = state;
    tp_thread_word = TP_THREAD_LATE;
    if (!tp_hooks_at_home())
        return; /* its chunk is not mapped here */
    tp_ring_leave(thread);
    tp_thread_count_late(atomic_load_explicit(&thread->lost, memory_order_relaxed) -
                         atomic_load_explicit(&thread->lost_told, memory_order_relaxed));
    atomic_store_explicit(&thread->lost, 0, memory_order_relaxed); /* told once, here */
    atomic_store_explicit(&thread->lost_told, 0, memory_order_relaxed);
    /* Release: the seal comes first. Pairs with the acquire in tp_threads_recycle. */
    bool is_main = thread->info.os_id == (uint32_t)getpid();
    atomic_store_explicit(&thread->dead, true, memory_order_release);
    if (is_main) {
        atomic_store(&main_gone, true);
        tp_drain_wake();
    }
}

bool tp_threads_main_is_gone(void)
{
    return atomic_load(&main_gone);
}

int tp_thread_init(uint64_t (*logical_id)(void))
{
    logical_id_of_self = logical_id;
    if (key_made)
        return 0;
    int error = pthread_key_create(&key, thread_gone);
    key_made = error == 0;
    return -error;
}

static struct tp_thread *new_state(void)
{
    struct tp_thread *thread = unused;
    if (thread) {
        unused = thread->next_thread;
        memset(thread, 0, sizeof *thread);
    } else {
        /* The arena aligns to 16; a state wants cache lines of its own. */
        char *piece = tp_arena_alloc(&states, sizeof *thread + _Alignof(struct tp_thread));
        if (!piece)
            return NULL;
        thread = (struct tp_thread *)tp_round_up((uintptr_t)piece, _Alignof(struct tp_thread));
    }
    thread->info.serial = ++last_serial;
    thread->next_thread = list;
    list = thread;
    return thread;
}

TP_COLD struct tp_thread *tp_thread_enter(void)
{
    if (tp_thread_word == TP_THREAD_LATE)
        return NULL;
    int saved = errno;
    struct tp_thread *thread = NULL;
    tp_critical_begin();
    pthread_mutex_lock(&list_lock);
    if (key_made)
        thread = new_state();
    pthread_mutex_unlock(&list_lock);
    tp_critical_end();
    if (thread) {
        thread->info.os_id = (uint32_t)syscall(SYS_gettid);
        thread->info.logical_id = logical_id_of_self ? logical_id_of_self() : 0;
        prctl(PR_GET_NAME, thread->info.name, 0, 0, 0);
        if (pthread_setspecific(key, thread) != 0) {
            /* No memory for the thread-local slot: the state would never be known dead. */
            atomic_store_explicit(&thread->dead, true, memory_order_release);
            thread = NULL;
        }
    }
    tp_thread_word = thread ? thread : TP_THREAD_LATE;
    errno = saved;
    return thread;
}

void tp_thread_never_records(void)
{
    tp_thread_word = TP_THREAD_LATE;
}

void tp_thread_count_late(uint64_t count)
{
    atomic_fetch_add_explicit(&lost_late, count, memory_order_relaxed);
}

uint64_t tp_thread_lost_late(void)
{
    return atomic_load_explicit(&lost_late, memory_order_relaxed);
}

void tp_threads_lock(void)
{
    pthread_mutex_lock(&list_lock);
}

void tp_threads_unlock(void)
{
    pthread_mutex_unlock(&list_lock);
}

struct tp_thread *tp_threads_first(void)
{
    return list;
}

void tp_threads_recycle(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct tp_thread **at = &list; *at;) {
        struct tp_thread *thread = *at;
        if (atomic_load_explicit(&thread->dead, memory_order_acquire) && thread->drained == thread->chunks) {
            *at = thread->next_thread;
            thread->next_thread = unused;
            unused = thread;
        } else {
            at = &thread->next_thread;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

void tp_threads_reset_in_child(void)
{
    /* The states of the parent's other threads are the child's memory now, and free. */
    while (list) {
        struct tp_thread *thread = list;
        list = thread->next_thread;
        thread->next_thread = unused;
        unused = thread;
    }
    last_serial = 0;
    atomic_store(&main_gone, false);
    atomic_store_explicit(&lost_late, 0, memory_order_relaxed);
    if (key_made)
        pthread_setspecific(key, NULL);
    tp_thread_word = NULL;
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    list_lock = unlocked;
}
