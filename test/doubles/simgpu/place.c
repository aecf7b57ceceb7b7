/* When the device does what it is given: one operation after the other on a stream, and never before it was asked for. */
#include "simgpu.h"

#include <pthread.h>

enum { LAUNCH_NS = 2500, NEXT_NS = 600, KERNEL_NS = 1500, WAVE_NS = 900, COPY_NS = 1000, SET_NS = 800, WAVE = 108 * 2048 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void sim_fill(struct sim_operation *operation, const struct sim_stream *stream)
{
    const struct sim_call *call = sim_call_now();
    operation->correlation = call ? call->correlation : 0;
    operation->device = (uint32_t)stream->device;
    operation->stream = stream->id;
}

uint64_t sim_duration(const struct sim_operation *operation)
{
    if (operation->kind == SIM_KERNEL) {
        uint64_t threads = 1;
        for (int i = 0; i < 3; i++)
            threads *= (uint64_t)operation->kernel.grid[i] * operation->kernel.block[i];
        return KERNEL_NS + (threads + WAVE - 1) / WAVE * WAVE_NS;
    }
    if (operation->kind == SIM_SET)
        return SET_NS + operation->set.bytes / 1500;
    uint64_t bytes_per_ns = operation->copy.kind == SIM_ON_DEVICE ? 1500 : operation->copy.kind == SIM_TO_PEER ? 200 : 25;
    return COPY_NS + operation->copy.bytes / bytes_per_ns;
}

void sim_place(struct sim_operation *operation, struct sim_stream *stream, uint64_t duration)
{
    uint64_t start = sim_clock_now();
    operation->queued = start;
    start += LAUNCH_NS;
    if (start < stream->ready + NEXT_NS)
        start = stream->ready + NEXT_NS;
    struct sim_stream *others = sim_stream(NULL);
    bool is_default = stream->id == others->id;
    /* The default stream waits for those that block, and they for it. */
    for (struct sim_stream *other = is_default ? others->next : others; other; other = is_default ? other->next : NULL)
        if (other->device == stream->device && !((is_default ? other : stream)->flags & SIM_NON_BLOCKING) &&
            start < other->ready + NEXT_NS)
            start = other->ready + NEXT_NS;
    operation->start = start;
    operation->end = stream->ready = start + duration;
}
