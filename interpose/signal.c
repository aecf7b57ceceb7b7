/*
 * signal.c: keeps our handler of SIGTERM and SIGINT invisible. To the program their disposition is the default one as long
 * as it has not set another; when it sets the default one, ours comes back.
 *
 * Both functions keep no state of ours: a child of vfork may call them, and shares our memory.
 */
#include <errno.h>
#include <string.h>

#include "../agent/process.h"
#include "real.h"

static bool is_default(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

TP_EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict old)
{
    const struct tp_real *real = tp_real();
    if (!real->sigaction) {
        errno = ENOSYS;
        return -1;
    }
    if (!tp_process_catches(number))
        return real->sigaction(number, action, old);
    struct sigaction ours, before;
    if (action && is_default(action)) {
        tp_process_our_action(&ours);
        action = &ours;
    }
    int result = real->sigaction(number, action, &before);
    if (result == 0 && old) {
        if (tp_process_is_our_handler(&before)) {
            memset(&before, 0, sizeof before);
            before.sa_handler = SIG_DFL;
        }
        *old = before;
    }
    return result;
}

TP_EXPORT void (*signal(int number, void (*handler)(int)))(int)
{
    const struct tp_real *real = tp_real();
    if (!real->signal || !real->sigaction) {
        errno = ENOSYS;
        return SIG_ERR;
    }
    if (!tp_process_catches(number))
        return real->signal(number, handler);
    struct sigaction before;
    if (handler == SIG_DFL) {
        struct sigaction ours;
        tp_process_our_action(&ours);
        if (real->sigaction(number, &ours, &before) != 0)
            return SIG_ERR;
    } else {
        if (real->sigaction(number, NULL, &before) != 0 || real->signal(number, handler) == SIG_ERR)
            return SIG_ERR;
    }
    return tp_process_is_our_handler(&before) ? SIG_DFL : before.sa_handler;
}
