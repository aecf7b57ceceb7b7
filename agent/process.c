#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "critical.h"
#include "drain.h"
#include "hooks.h"
#include "log.h"
#include "session.h"

/* How long a way out waits for the files at most. A job that is told to end has about half a minute before it is killed. */
#define WAIT_MS 25000

int (*tp_process_real_sigaction)(int, const struct sigaction *, struct sigaction *);
static _Atomic bool initialised, catches;
static _Atomic pid_t dying; /* the process (its id) that is ending by a signal which was caught */

/* Weak: musl's loader would end a program for want of a name, even in a library that is only preloaded. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern int __cxa_at_quick_exit(void (*)(void *), void *) __attribute__((weak));

static bool must_finish(void)
{
    return tp_session.state == TP_SESSION_ATTACHED && tp_session_is_here();
}

static void finish(const char *how)
{
    tp_drain_ask_finish(how);
    if (!tp_drain_wait_finished(WAIT_MS))
        tp_log(TP_LOG_WARN, "the files were not complete %d s after the program ended (%s); gave up%s", WAIT_MS / 1000, how,
               tp_session.spool.path[0] ? ": tprof recover, or the next process, writes the rest" : "");
}

bool tp_process_is_recorded(void)
{
    return initialised && tp_session_is_here() && tp_session.state != TP_SESSION_DORMANT;
}

void tp_process_leave(const char *how)
{
    if (!tp_process_is_recorded())
        return;
    if (must_finish())
        finish(how);
    else
        tp_drain_wait_finished(WAIT_MS); /* another way out is under way: it must be able to end its work */
}

/* A signal that is ending the process decides the status, not this thread. */
static void wait_for_signal(void)
{
    struct timespec t = {.tv_nsec = 5000000};
    while (dying == getpid())
        nanosleep(&t, NULL);
}

static void at_exit(void)
{
    if (must_finish())
        tp_session_check();
    tp_process_leave("exit");
    wait_for_signal();
    if (tp_session_is_here())
        tp_drain_join();
}

static void leave_quickly(void *nothing)
{
    (void)nothing;
    tp_process_leave("quick_exit");
    wait_for_signal();
}

static void die(int number)
{
    struct sigaction default_action;
    memset(&default_action, 0, sizeof default_action);
    default_action.sa_handler = SIG_DFL;
    tp_process_real_sigaction(number, &default_action, NULL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_kill(pthread_self(), number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void on_signal(int number)
{
    int saved = errno;
    if (tp_critical.depth > 0) {
        tp_critical.signal = number; /* tp_critical_end raises it again */
        errno = saved;
        return;
    }
    if (must_finish())
        dying = getpid();
    tp_process_leave(number == SIGINT ? "SIGINT" : "SIGTERM"); /* a further signal waits for the files too */
    die(number);
    dying = 0; /* still here: process 1 of its namespace, which such a signal does not end, or a debugger kept it */
    errno = saved;
}

bool tp_process_catches(int signal_number)
{
    return catches && (signal_number == SIGTERM || signal_number == SIGINT);
}

bool tp_process_is_our_handler(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == on_signal;
}

void tp_process_our_action(struct sigaction *ret_action)
{
    memset(ret_action, 0, sizeof *ret_action);
    ret_action->sa_handler = on_signal;
    ret_action->sa_flags = SA_RESTART;
    sigemptyset(&ret_action->sa_mask);
}

int tp_process_init(void)
{
    if (initialised)
        return 0;
    if (!__register_atfork || atexit(at_exit) != 0 ||
        __register_atfork(tp_session_before_fork, tp_session_after_fork_in_parent, tp_session_after_fork_in_child,
                          NULL) != 0)
        return -ENOMEM;
    if (__cxa_at_quick_exit)
        __cxa_at_quick_exit(leave_quickly, NULL);
    initialised = true;
    return 0;
}

void tp_process_catch_signals(void)
{
    catches = true;
    static const int caught[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < TP_COUNT(caught) && tp_process_real_sigaction; i++) {
        struct sigaction now, ours;
        tp_process_our_action(&ours);
        if (tp_process_real_sigaction(caught[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            tp_process_real_sigaction(caught[i], &ours, NULL);
    }
}
