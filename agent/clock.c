#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool tp_clock_is_tsc;
static struct tp_clock_pair first_pair;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tp_clock_now_syscall(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static bool kernel_trusts_tsc(void)
{
#if defined(__x86_64__)
    char name[16] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    close(fd);
    return n >= 3 && strncmp(name, "tsc\n", 4) == 0;
#else
    return false;
#endif
}

void tp_clock_init(void)
{
    tp_clock_is_tsc = kernel_trusts_tsc();
    first_pair = tp_clock_pair_now();
}

struct tp_clock_pair tp_clock_pair_now(void)
{
    struct tp_clock_pair best = {0};
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        uint64_t before = tp_clock_now();
        uint64_t monotonic = read_clock(CLOCK_MONOTONIC);
        uint64_t middle = tp_clock_now();
        uint64_t realtime = read_clock(CLOCK_REALTIME);
        uint64_t after = tp_clock_now();
        if (after - before < best_width) {
            best_width = after - before;
            best.ticks = before + (middle - before) / 2;
            best.monotonic_ns = monotonic;
            /* The wall clock was read half a width later: bring it back to the same moment. */
            best.realtime_ns = realtime - (read_clock(CLOCK_MONOTONIC) - monotonic) / 3;
        }
    }
    return best;
}

static uint64_t rate(const struct tp_clock_pair *begin, const struct tp_clock_pair *end)
{
    uint64_t ticks = end->ticks - begin->ticks;
    if (ticks == 0)
        return UINT64_C(1) << TP_CLOCK_SHIFT;
    return (uint64_t)(((unsigned __int128)(end->monotonic_ns - begin->monotonic_ns) << TP_CLOCK_SHIFT) / ticks);
}

struct tp_clock_map tp_clock_map_between(const struct tp_clock_pair *begin, const struct tp_clock_pair *end)
{
    struct tp_clock_map map = {.begin = *begin, .ns_per_tick = UINT64_C(1) << TP_CLOCK_SHIFT};
    if (!tp_clock_is_tsc)
        return map;
    const struct tp_clock_pair *from = end->monotonic_ns - begin->monotonic_ns < 1000000 ? &first_pair : begin;
    map.ns_per_tick = rate(from, end);
    return map;
}

uint64_t tp_clock_ns(const struct tp_clock_map *map, uint64_t ticks)
{
    if (ticks >= map->begin.ticks)
        return map->begin.realtime_ns +
               (uint64_t)(((unsigned __int128)(ticks - map->begin.ticks) * map->ns_per_tick) >> TP_CLOCK_SHIFT);
    return map->begin.realtime_ns -
           (uint64_t)(((unsigned __int128)(map->begin.ticks - ticks) * map->ns_per_tick) >> TP_CLOCK_SHIFT);
}

double tp_clock_ticks_per_ns(const struct tp_clock_map *map)
{
    return (double)(UINT64_C(1) << TP_CLOCK_SHIFT) / (double)map->ns_per_tick;
}
