#include "bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t = {0};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void tp_bell_ring(struct tp_bell *bell)
{
    atomic_fetch_add(&bell->rings, 1);
    syscall(SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool tp_bell_wait(struct tp_bell *bell, uint32_t seen, uint64_t limit_ms)
{
    bool forever = limit_ms == TP_BELL_FOREVER;
    uint64_t until = forever ? 0 : now_ns() + limit_ms * 1000000;
    while (atomic_load(&bell->rings) == seen) {
        struct timespec rest = {0};
        if (!forever) {
            uint64_t now = now_ns();
            if (now >= until)
                return false;
            rest.tv_sec = (time_t)((until - now) / 1000000000);
            rest.tv_nsec = (long)((until - now) % 1000000000);
        }
        /* A signal, a ring or the end of the time: the loop tells them apart. */
        syscall(SYS_futex, &bell->rings, FUTEX_WAIT_PRIVATE, seen, forever ? NULL : &rest, NULL, 0);
    }
    return true;
}
