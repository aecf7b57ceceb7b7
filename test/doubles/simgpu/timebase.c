/*
 * A reader may give CUPTI a clock of its own (cuptiActivityRegisterTimestampCallback). The host's times are then read from it,
 * the device's are converted: both clocks are read together now and then, and times lie on the line through two such pairs.
 */
#include "simgpu.h"

#include <pthread.h>

enum { FIRST_NS = 2000000, AGAIN_NS = 100000000, TRIES = 8 };

struct pair {
    uint64_t ours, theirs;
};

static uint64_t (*reader)(void);
static struct pair first, last;
static double rate;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The reading that took the least time is the one that nothing came between. */
static struct pair read_both(void)
{
    struct pair best = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = reader(), ours = sim_clock_now(), after = reader();
        if (after - before < least) {
            least = after - before;
            best = (struct pair){ours, before + (after - before) / 2};
        }
    }
    return best;
}

static void measure(void)
{
    last = read_both();
    uint64_t passed = last.ours - first.ours;
    rate = passed ? (double)(last.theirs - first.theirs) / (double)passed : 1;
}

void sim_timebase(uint64_t (*clock)(void))
{
    pthread_mutex_lock(&lock);
    reader = clock;
    if (clock) {
        first = read_both();
        sim_clock_wait(first.ours + FIRST_NS);
        measure();
    }
    pthread_mutex_unlock(&lock);
}

uint64_t sim_timebase_now(void)
{
    return reader ? reader() : sim_clock_now();
}

uint64_t sim_timebase_of(uint64_t time)
{
    if (!reader)
        return time;
    pthread_mutex_lock(&lock);
    if (reader && sim_clock_now() > last.ours + AGAIN_NS)
        measure();
    double distance = (double)(int64_t)(time - last.ours) * rate;
    uint64_t converted = last.theirs + (uint64_t)(int64_t)distance;
    pthread_mutex_unlock(&lock);
    return converted;
}
