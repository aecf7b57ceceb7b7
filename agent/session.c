#include "session.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "critical.h"
#include "drain.h"
#include "held.h"
#include "hooks.h"
#include "log.h"
#include "ring.h"
#include "thread.h"

struct tp_session tp_session;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tp_steps *steps;       /* under the lock */
static enum tp_observe observed;     /* under the lock */
static _Atomic uint32_t marking;     /* threads inside tp_session_mark */
static uint64_t cut_at;              /* under the lock: where the window of the unset schedule will begin */

bool tp_session_is_marking(void)
{
    /* Sequentially consistent, as in tp_session_mark: either the drain sees the mark coming, or the mark's time is later
     * than everything that the drain had read before it looked. */
    return atomic_load(&marking) > 0;
}

static void observe_all(enum tp_observe what)
{
    for (const struct tp_collector *const *c = tp_session.collectors; *c; c++)
        if ((*c)->observe)
            (*c)->observe(what);
}

static void observe(enum tp_observe what)
{
    if (what == observed)
        return;
    if (what < observed)
        tp_hooks_set(what == TP_OBSERVE_MARKS ? TP_HOOK_MARKS : 0);
    observe_all(what);
    observed = what;
    tp_hooks_set(what == TP_OBSERVE_EVENTS ? TP_HOOK_RECORD | TP_HOOK_MARKS : what == TP_OBSERVE_MARKS ? TP_HOOK_MARKS : 0);
    tp_drain_wake();
}

static bool records(enum tp_action action)
{
    return action == TP_ACTION_RECORD || action == TP_ACTION_RECORD_AND_SAVE;
}

/* So many steps back a late decision commonly reaches. */
#define LOOK_AHEAD 8

static enum tp_action action_at(uint64_t step)
{
    return tp_schedule_action(&tp_session.settings->schedule, step);
}

/* What the hooks have to do in the present state. */
static void observe_what_is_needed(void)
{
    if (tp_session.window || tp_session.provisional || records(tp_session.action) ||
        tp_session.action == TP_ACTION_WARMUP)
        observe(TP_OBSERVE_EVENTS);
    else
        observe(TP_OBSERVE_MARKS); /* step times go on being measured when the schedule is over */
}

static void no_room(void)
{
    if (!tp_session.warned_no_room)
        tp_log(TP_LOG_WARN, "no memory for another recording window; it is not recorded");
    tp_session.warned_no_room = true;
}

static void open_window(uint64_t time)
{
    if (tp_session.window_is_unset_schedule) {
        cut_at = time;
        tp_cycle_may_cut(tp_session.window, time);
        return;
    }
    if (tp_session.provisional) {
        tp_session.window = tp_session.provisional;
        tp_session.provisional = NULL;
        tp_session.window->provisional = false;
        tp_cycle_cut(tp_session.window, time);
    } else {
        tp_session.window = tp_cycle_open(time);
    }
    if (tp_session.window)
        tp_session.window->first_step = tp_session.step;
    else
        no_room();
}

static void close_window(uint64_t time, bool save, bool partial)
{
    struct tp_cycle *window = tp_session.window;
    if (!window)
        return;
    if (tp_session.window_is_unset_schedule && !partial)
        tp_cycle_cut(window, cut_at);
    tp_session.window = NULL;
    tp_session.window_is_unset_schedule = false;
    window->partial = partial;
    if (save)
        window->number = tp_session.cycles++;
    window->clock_begin = tp_session.attached;
    window->clock_end = tp_clock_pair_now();
    tp_cycle_close(window, time, save);
    tp_drain_wake();
}

static void transit(enum tp_action previous, enum tp_action current, uint64_t time)
{
    const struct tp_transition *transition = tp_schedule_transition(previous, current);
    if (transition->warning)
        tp_log(TP_LOG_WARN, "%s", transition->warning);
    bool stop = false, ready = false;
    for (size_t i = 0; i < TP_COUNT(transition->steps) && transition->steps[i]; i++)
        switch (transition->steps[i]) {
        case TP_TRANSITION_PREPARE:
            break; /* the hooks run from observe_what_is_needed on; no window is open, so their records are let go */
        case TP_TRANSITION_START:
            if (stop)
                close_window(time, ready, false);
            stop = false;
            open_window(time);
            break;
        case TP_TRANSITION_STOP:
            stop = true;
            break;
        case TP_TRANSITION_READY:
            ready = true;
            break;
        }
    if (stop)
        close_window(time, ready, current == TP_ACTION_EXIT && !tp_session.settings->schedule.always);
}

/* While it is open which marks are steps, what is recorded now may turn out to lie in a step that the schedule records. */
static void review_provisional(uint64_t now)
{
    bool wanted = false;
    if (!tp_session.window && tp_steps_undecided(steps))
        for (uint64_t ahead = 1; ahead <= LOOK_AHEAD; ahead++)
            wanted = wanted || records(action_at(tp_session.step + ahead));
    if (wanted && !tp_session.provisional) {
        tp_session.provisional = tp_cycle_open(now);
        if (tp_session.provisional)
            tp_session.provisional->provisional = true;
    } else if (!wanted && tp_session.provisional) {
        tp_cycle_close(tp_session.provisional, now, false);
        tp_session.provisional = NULL;
    }
}

static uint32_t os_thread_of(uint64_t serial)
{
    uint32_t os_thread = 0;
    tp_threads_lock();
    for (struct tp_thread *t = tp_threads_first(); t; t = t->next_thread)
        if (t->info.serial == serial)
            os_thread = t->info.os_id;
    tp_threads_unlock();
    return os_thread;
}

static void step_over(const struct tp_step_edge *edge, bool by_program)
{
    struct tp_session *s = &tp_session;
    if (edge->thread != s->last_thread || !s->last_os_thread) {
        s->last_thread = edge->thread;
        s->last_os_thread = os_thread_of(edge->thread);
    }
    s->outputs->step(s->step, s->step_begin, edge->time, edge->kind);
    tp_spool_add_step(&s->spool, &(struct tp_spool_step){.begin = s->step_begin,
                                                         .end = edge->time,
                                                         .number = s->step,
                                                         .thread = edge->thread,
                                                         .os_thread = s->last_os_thread,
                                                         .kind = edge->kind,
                                                         .by_program = by_program});
    struct tp_cycle_edge inside = {.time = edge->time,
                                   .number = s->step,
                                   .thread = edge->thread,
                                   .os_thread = s->last_os_thread,
                                   .kind = edge->kind};
    struct tp_cycle *cycles[] = {s->window, s->provisional};
    for (size_t i = 0; i < TP_COUNT(cycles); i++)
        if (cycles[i]) {
            tp_cycle_add_edge(cycles[i], &inside);
            cycles[i]->steps_by_program |= by_program;
        }
    s->step++;
    s->edges++;
    s->step_begin = edge->time;
    enum tp_action previous = s->action, previous_scheduled = s->scheduled;
    s->scheduled = action_at(s->step);
    s->action = tp_schedule_override(previous, previous_scheduled, s->scheduled, s->device_stopped);
    s->device_stopped = false;
    transit(previous, s->action, edge->time);
}

static void tell_news(void)
{
    const char *news = tp_steps_news(steps);
    if (news)
        tp_log(TP_LOG_INFO, "%s", news);
}

/* Optimizers of one class are told apart by the line that steps them. */
static uint64_t place_of(enum tp_mark_kind kind)
{
    uint64_t place = 0;
    for (const struct tp_collector *const *c = tp_session.collectors; kind == TP_MARK_OPTIMIZER && *c; c++)
        if ((*c)->place)
            place ^= (*c)->place();
    return place * UINT64_C(0x9e3779b97f4a7c15); /* addresses of instructions have few bits that differ */
}

void tp_session_mark(enum tp_mark_kind kind, enum tp_mark_edge edge, uint64_t identity, const char *name)
{
    tp_critical_begin();
    identity ^= place_of(kind);
    atomic_fetch_add(&marking, 1);
    pthread_mutex_lock(&lock);
    if (tp_session.state == TP_SESSION_ATTACHED) {
        struct tp_thread *thread = tp_thread_self();
        if (!thread)
            thread = tp_thread_enter();
        struct tp_mark mark = {.kind = kind,
                               .edge = edge,
                               .identity = identity,
                               .thread = thread ? thread->info.serial : 0,
                               .time = tp_clock_now(),
                               .name = name};
        struct tp_step_edge edges[TP_STEPS_MAX_EDGES];
        unsigned count = tp_steps_feed(steps, &mark, edges);
        for (unsigned i = 0; i < count; i++)
            step_over(&edges[i], kind == TP_MARK_PROFILER_STEP);
        tell_news();
        review_provisional(mark.time);
        observe_what_is_needed();
        tp_session.edge_ns_ticks += tp_clock_now() - mark.time;
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&marking, 1);
    tp_critical_end();
}

/* The first state, at attach or in a woken child. Under the lock. */
static int begin(void)
{
    struct tp_session *s = &tp_session;
    struct tp_error note = {0}, error = {0};
    char line[800];
    int failed = tp_hooks_init();
    /* Three quarters are for records; the rest is the model's, the writers' and the compressor's. */
    struct tp_spool_options options = {.folder = s->settings->spool_dir, .budget = s->settings->buffer_bytes / 4 * 3};
    if (!failed) {
        struct tp_held held;
        tp_held_begin(&held);
        failed = tp_spool_open(&s->spool, &options, &note, &error);
        tp_held_end(&held);
    }
    if (note.set && tp_error_line(&note, line, sizeof line))
        tp_log(s->settings->spool_dir ? TP_LOG_WARN : TP_LOG_INFO, "%s", line); /* of what was asked for, in any case */
    if (!failed && !steps) {
        void *memory = mmap(NULL, tp_steps_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        failed = memory == MAP_FAILED ? -ENOMEM : 0;
        steps = failed ? NULL : memory;
    }
    bool prepared = !failed && (failed = s->outputs->prepare()) == 0;
    if (!failed) {
        tp_cycles_use(s->spool.state->cycles, TP_COUNT(s->spool.state->cycles));
        tp_ring_init(&s->spool.pool);
        failed = tp_drain_start();
    }
    if (failed) {
        if (error.set && tp_error_line(&error, line, sizeof line))
            tp_log(TP_LOG_WARN, "%s; this process is not recorded", line);
        else
            tp_log(TP_LOG_WARN, "cannot start: %s; this process is not recorded", strerror(-failed));
        tp_ring_init(NULL);
        if (prepared)
            s->outputs->forget();
        tp_spool_close(&s->spool);
        return failed;
    }
    tp_steps_init(steps, &s->settings->step);
    s->attached = tp_clock_pair_now();
    s->step = s->cycles = s->last_thread = 0;
    s->edges = 0;
    s->last_os_thread = 0;
    s->step_begin = s->attached.ticks;
    s->window = s->provisional = NULL;
    s->window_is_unset_schedule = false;
    s->state = TP_SESSION_ATTACHED;
    if (!s->settings->schedule_set) {
        open_window(s->attached.ticks);
        s->window_is_unset_schedule = s->window != NULL;
        cut_at = s->attached.ticks;
    }
    s->action = s->scheduled = action_at(0);
    const char *warning = s->settings->schedule_set ? tp_schedule_warning(&s->settings->schedule) : NULL;
    if (warning)
        tp_log(TP_LOG_WARN, "%s", warning);
    transit(TP_ACTION_NONE, s->action, s->attached.ticks);
    review_provisional(s->attached.ticks);
    observe_what_is_needed();
    return 0;
}

int tp_session_attach(const struct tp_settings *settings, const struct tp_collector *const *collectors,
                      const struct tp_session_outputs *outputs)
{
    struct tp_session *s = &tp_session;
    if (s->state != TP_SESSION_DORMANT)
        return 0;
    tp_identity_read(&s->identity);
    s->pid = s->identity.pid;
    s->child = tp_identity_is_child();
    if (s->child && settings->children == TP_CHILDREN_NONE) {
        s->state = TP_SESSION_FINISHED;
        return 0;
    }
    s->settings = settings;
    s->collectors = collectors;
    s->outputs = outputs;
    tp_clock_init();
    uint64_t begun = tp_clock_now();
    for (const struct tp_collector *const *c = collectors; *c; c++) {
        struct tp_error error = {0};
        int failed = (*c)->attach(settings, &error);
        if (failed) {
            char line[800];
            tp_error_line(&error, line, sizeof line);
            tp_log(TP_LOG_WARN, "%s; the program runs as if tprof were not there", line);
            s->state = TP_SESSION_FINISHED;
            return failed;
        }
    }
    pthread_mutex_lock(&lock);
    int failed = begin();
    if (failed)
        s->state = TP_SESSION_FINISHED;
    s->attach_ticks = tp_clock_now() - begun;
    pthread_mutex_unlock(&lock);
    return failed;
}

bool tp_session_wake_child(void)
{
    tp_critical_begin();
    pthread_mutex_lock(&lock);
    struct tp_session *s = &tp_session;
    if (s->state == TP_SESSION_COLD) {
        tp_identity_read(&s->identity);
        s->child = true;
        if (begin() != 0) {
            s->state = TP_SESSION_FINISHED;
            tp_hooks_set(0);
        }
    }
    bool attached = s->state == TP_SESSION_ATTACHED;
    pthread_mutex_unlock(&lock);
    tp_critical_end();
    return attached;
}

static bool lock_within(uint64_t ms)
{
    for (; pthread_mutex_trylock(&lock) != 0; ms--) {
        if (ms == 0)
            return false;
        struct timespec t = {.tv_nsec = 1000000};
        nanosleep(&t, NULL);
    }
    return true;
}

bool tp_session_is_here(void)
{
    return tp_session.pid == (uint32_t)getpid() && tp_hooks_at_home();
}

void tp_session_check(void)
{
    if (tp_session.state == TP_SESSION_ATTACHED)
        for (const struct tp_collector *const *c = tp_session.collectors; *c; c++)
            if ((*c)->check)
                (*c)->check();
}

void tp_session_close(const char *how)
{
    struct tp_session *s = &tp_session;
    /* Whoever holds the lock for this long is stopped (a debugger, a suspended thread): what it left is good enough. */
    bool locked = lock_within(2000);
    if (s->state == TP_SESSION_ATTACHED) {
        uint64_t now = tp_clock_now();
        tp_hooks_set(0);
        s->state = TP_SESSION_FINISHED;
        struct tp_step_edge edges[TP_STEPS_MAX_EDGES];
        unsigned count = locked ? tp_steps_finish(steps, edges) : 0;
        for (unsigned i = 0; i < count; i++)
            step_over(&edges[i], false);
        tell_news();
        if (s->edges == 0)
            s->outputs->step(0, s->step_begin, now, TP_STEP_KIND_WHOLE);
        if (s->provisional)
            tp_cycle_close(s->provisional, now, false);
        s->provisional = NULL;
        if (s->window_is_unset_schedule)
            close_window(now, true, true);
        else
            transit(s->action, TP_ACTION_EXIT, now);
        tp_log(TP_LOG_DEBUG, "closed by %s after %llu steps", how, (unsigned long long)s->edges);
    }
    if (locked)
        pthread_mutex_unlock(&lock);
}

static __thread bool locked_for_fork __attribute__((tls_model("initial-exec")));

/* A signal handler may fork while its thread holds these very locks, and in a child of a raw clone a thread may hold them
 * that is not there. Then they are not taken: a child finds nothing that it would not make anew. */
void tp_session_before_fork(void)
{
    bool inside = tp_critical.depth > 0;
    tp_critical_begin();
    locked_for_fork = !inside && tp_session_is_here();
    if (!locked_for_fork)
        return;
    pthread_mutex_lock(&lock);
    tp_threads_lock();
}

void tp_session_after_fork_in_parent(void)
{
    if (locked_for_fork) {
        tp_threads_unlock();
        pthread_mutex_unlock(&lock);
    }
    tp_critical_end();
}

void tp_session_after_fork_in_child(void)
{
    struct tp_session *s = &tp_session;
    bool was_attached = s->state == TP_SESSION_ATTACHED || s->state == TP_SESSION_COLD;
    tp_hooks_set(0); /* already so where the kernel wipes the page */
    tp_threads_reset_in_child();
    tp_cycles_forget();
    tp_spool_forget(&s->spool);
    tp_ring_init(NULL);
    tp_drain_forget();
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    lock = unlocked;
    atomic_store(&marking, 0);
    atomic_store(&s->saw_backward, false);
    s->window = s->provisional = NULL;
    s->pid = (uint32_t)getpid();
    s->child = true;
    s->edge_ns_ticks = s->attach_ticks = 0;
    if (was_attached) {
        s->outputs->forget();
        s->state = s->settings->children == TP_CHILDREN_NONE ? TP_SESSION_FINISHED : TP_SESSION_COLD;
        if (s->state == TP_SESSION_COLD) {
            observe_all(TP_OBSERVE_EVENTS);
            observed = TP_OBSERVE_NOTHING;
            tp_hooks_set(TP_HOOK_COLD);
        }
    }
    tp_hooks_move_in();
    tp_critical_end();
}
