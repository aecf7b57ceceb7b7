#include "held.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base.h"

void tp_held_begin(struct tp_held *held)
{
    static const int signals[] = {SIGXFSZ, SIGPIPE};
    sigset_t pending;
    sigpending(&pending);
    sigemptyset(&held->ours);
    for (size_t i = 0; i < TP_COUNT(signals); i++)
        if (sigismember(&pending, signals[i]) == 0)
            sigaddset(&held->ours, signals[i]);
    pthread_sigmask(SIG_BLOCK, &held->ours, &held->before);
}

void tp_held_end(const struct tp_held *held)
{
    int saved = errno;
    while (sigtimedwait(&held->ours, NULL, &(struct timespec){0}) > 0 || errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = saved;
}
