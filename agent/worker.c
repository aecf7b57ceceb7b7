#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bell.h"
#include "cycle.h"
#include "descriptors.h"
#include "drain.h"
#include "session.h"
#include "thread.h"

#define NICENESS 10

static struct tp_bell wake;
static pthread_t thread_id;
static bool running;
static _Atomic bool ending;
static uint64_t cpu_ns; /* after the join */

struct start {
    void *(*body)(void *);
    const char *name;
    sem_t taken;
};

static void *start_of_ours(void *argument)
{
    struct start *start = argument;
    void *(*body)(void *) = start->body;
    tp_thread_never_records();
    tp_descriptors_own();
    prctl(PR_SET_NAME, start->name, 0, 0, 0);
    sem_post(&start->taken);
    return body(NULL);
}

int tp_thread_of_ours(void *(*body)(void *), const char *name, size_t stack_bytes, void *ret_pthread)
{
    struct start start = {.body = body, .name = name};
    sem_init(&start.taken, 0, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(ret_pthread, &attributes, start_of_ours, &start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!failed)
        while (sem_wait(&start.taken) != 0 && errno == EINTR)
            ;
    sem_destroy(&start.taken);
    return -failed;
}

static void *worker_main(void *nothing)
{
    (void)nothing;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    if (!tp_session.child)
        tp_session.outputs->recover(&ending);
    for (;;) {
        uint32_t rings = tp_bell_rings(&wake);
        bool last_look = atomic_load(&ending);
        struct tp_cycle *cycle = tp_cycle_next_whole();
        if (cycle) {
            if (cycle->save)
                tp_session.outputs->cycle(cycle);
            tp_cycle_set_state(cycle, TP_CYCLE_WRITTEN);
            tp_drain_wake();
            continue;
        }
        if (last_look)
            break;
        tp_bell_wait(&wake, rings, TP_BELL_FOREVER);
    }
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    cpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return NULL;
}

int tp_worker_start(void)
{
    atomic_store(&ending, false);
    int failed = tp_thread_of_ours(worker_main, "tprof-write", 512 * 1024, &thread_id);
    running = !failed;
    return failed;
}

void tp_worker_wake(void)
{
    if (running)
        tp_bell_ring(&wake);
}

void tp_worker_finish(void)
{
    if (!running)
        return;
    atomic_store(&ending, true);
    tp_worker_wake();
    pthread_join(thread_id, NULL);
    running = false;
}

uint64_t tp_worker_cpu_ns(void)
{
    return cpu_ns;
}

void tp_worker_forget(void)
{
    running = false;
}
