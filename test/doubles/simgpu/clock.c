#include "simgpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { CALL_NS = 100, SPIN_NS = 60000 };

static bool virtual;
static _Atomic uint64_t virtual_now;

__attribute__((constructor)) static void begin(void)
{
    const char *start = getenv("SIMGPU_CLOCK");
    if (start)
        sim_clock_virtual(strtoull(start, NULL, 10));
}

void sim_clock_virtual(uint64_t start)
{
    virtual = true;
    virtual_now = start;
}

uint64_t sim_clock_now(void)
{
    if (virtual)
        return virtual_now;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sim_clock_tick(void)
{
    if (virtual)
        virtual_now += CALL_NS;
}

void sim_clock_wait(uint64_t until)
{
    if (virtual) {
        uint64_t now = virtual_now;
        while (now < until && !atomic_compare_exchange_weak(&virtual_now, &now, until))
            continue;
        return;
    }
    for (uint64_t now; (now = sim_clock_now()) < until;) {
        if (until - now < SPIN_NS)
            continue; /* a sleep would take longer */
        uint64_t rest = until - now - SPIN_NS / 2;
        nanosleep(&(struct timespec){.tv_sec = (time_t)(rest / 1000000000), .tv_nsec = (long)(rest % 1000000000)}, NULL);
    }
}
