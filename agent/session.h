/*
 * session.h: the state of the agent in this process: torch.profiler's state machine, driven by step marks, and the
 * windows (cycles) that come of it.
 *
 *     dormant --attach--> attached --finish--> finished          a forked child: cold --first hook--> attached
 *
 * The session's lock protects all of it and nests in nothing; inside it the locks of cycle.h and those that a collector's
 * observe takes. Marks, finish and fork take it; hooks that record do not.
 */
#ifndef TP_SESSION_H
#define TP_SESSION_H

#include "base.h"
#include "collector.h"
#include "cycle.h"
#include "identity.h"
#include "settings.h"
#include "spool.h"
#include "steps.h"

enum tp_session_state { TP_SESSION_DORMANT, TP_SESSION_ATTACHED, TP_SESSION_COLD, TP_SESSION_FINISHED };

/* What the rest of the house does for the session; set by entry.c. All but step are called on threads of ours. */
struct tp_session_outputs {
    void (*recover)(const _Atomic bool *stop); /* first of all, on the worker: what processes that died here left */
    int (*prepare)(void);                               /* before the first record, on the program's thread */
    void (*step)(uint64_t number, uint64_t begin, uint64_t end, enum tp_step_kind kind); /* each step; under the lock */
    void (*cycle)(struct tp_cycle *cycle);              /* a saved cycle; its blocks are in the log until this returns */
    void (*finish)(void);                               /* after the last cycle */
    void (*forget)(void);                               /* in a forked child */
};

struct tp_session {
    _Atomic enum tp_session_state state; /* written under the lock; ways out ask without it */
    const struct tp_settings *settings;
    const struct tp_collector *const *collectors; /* NULL at the end */
    const struct tp_session_outputs *outputs;
    struct tp_identity identity;
    struct tp_spool spool;
    bool child;  /* a process above this one is profiled, or this one was forked from a profiled one */
    _Atomic uint32_t pid;
    struct tp_clock_pair attached;
    uint64_t attach_ticks; /* how long attaching took */
    const char *ended; /* by which way the process leaves; set once it does */
    /* Under the lock. */
    enum tp_action action, scheduled; /* of the step that runs now; what the schedule alone said of it */
    uint64_t step;          /* number of the step that runs now */
    uint64_t step_begin;    /* its begin */
    _Atomic uint64_t edges; /* how many there were; the worker reads it without the lock */
    uint64_t last_thread;   /* serial of the thread that made the last one */
    uint32_t last_os_thread;
    struct tp_cycle *window;       /* open */
    struct tp_cycle *provisional;  /* records while the steps are undecided */
    uint64_t cycles;               /* saved */
    uint64_t edge_ns_ticks;        /* time that marks and edges took on the program's threads */
    bool window_is_unset_schedule; /* `window` began with step 0 and may be cut */
    bool warned_no_room;
    bool device_stopped; /* a collector's device ended its collection early in this cycle */
    /* Written by hooks; whether a child is worth a file. */
    _Atomic bool saw_backward;
};

TP_INTERNAL extern struct tp_session tp_session;

/* On the thread that loaded the library to observe. 0, or -errno after one line: the program runs as if we were not there. */
int tp_session_attach(const struct tp_settings *settings, const struct tp_collector *const *collectors,
                      const struct tp_session_outputs *outputs);

/* A forked child's first hook. True if it is attached now. */
bool tp_session_wake_child(void);

/* False in children that share or copied our memory but not our threads: of vfork, posix_spawn, a raw clone. Any child of
 * fork is at home in itself. Async-signal-safe. */
bool tp_session_is_here(void);

/* From a hook that saw a mark; the time is taken here, and the place in the program. */
void tp_session_mark(enum tp_mark_kind kind, enum tp_mark_edge edge, uint64_t identity, const char *name);

/* True while a window may just be opening: what is about to be let go may belong to it. */
bool tp_session_is_marking(void);

/* At the program's end, on its thread, before finish: lets collectors say what they noticed. */
void tp_session_check(void);

/* The drain's part of finish: the last transitions. How: see process.h. */
void tp_session_close(const char *how);

/* Around fork(). */
void tp_session_before_fork(void);
void tp_session_after_fork_in_parent(void);
void tp_session_after_fork_in_child(void);

#endif
