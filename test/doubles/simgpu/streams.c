#include "simgpu.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ID = 7, FIRST_ID = 13, HANDLES = 2 }; /* the default, per-thread and legacy handles are 0, 1, 2 */

static struct sim_stream defaults[SIM_DEVICES]; /* each begins the list of its device's streams */
static uint32_t next_id = FIRST_ID;

static struct sim_stream *default_stream(int device)
{
    struct sim_stream *stream = &defaults[device];
    sim_context(device);
    stream->device = device;
    stream->id = DEFAULT_ID;
    return stream;
}

struct sim_stream *sim_stream(const void *handle)
{
    return (uintptr_t)handle <= HANDLES ? default_stream(sim_device()) : (struct sim_stream *)handle;
}

struct sim_stream *sim_stream_new(unsigned flags, int priority)
{
    struct sim_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    struct sim_stream *first = default_stream(sim_device());
    stream->device = first->device;
    stream->flags = flags;
    stream->priority = priority;
    sim_lock();
    stream->id = next_id++;
    stream->next = first->next;
    first->next = stream;
    sim_unlock();
    sim_observers.stream(stream, false);
    return stream;
}

void sim_stream_end(struct sim_stream *stream)
{
    sim_observers.stream(stream, true);
    sim_lock();
    for (struct sim_stream **at = &defaults[stream->device].next; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    sim_unlock();
    free(stream->last);
    free(stream);
}

uint64_t sim_idle_at(int device)
{
    uint64_t last = 0;
    sim_lock();
    for (struct sim_stream *stream = &defaults[device]; stream; stream = stream->next)
        if (stream->ready > last)
            last = stream->ready;
    sim_unlock();
    return last;
}

void sim_waited(struct sim_stream *stream, enum sim_wait type, uint64_t since, uint32_t event, uint64_t sync_id)
{
    struct sim_operation operation = {.kind = SIM_SYNC, .sync = {type, event, sync_id}};
    sim_fill(&operation, stream);
    if (type == SIM_DEVICE_WAIT)
        operation.stream = UINT32_MAX;
    operation.start = since;
    operation.end = sim_clock_now();
    sim_observers.operation(&operation);
}

void sim_stream_sync(struct sim_stream *stream)
{
    uint64_t since = sim_clock_now();
    sim_clock_wait(stream->ready);
    sim_waited(stream, SIM_STREAM_WAIT, since, 0, 0);
}

void sim_device_sync(void)
{
    uint64_t since = sim_clock_now();
    sim_clock_wait(sim_idle_at(sim_device()));
    sim_waited(sim_stream(NULL), SIM_DEVICE_WAIT, since, 0, 0);
}

static void run(struct sim_operation *operation, struct sim_stream *stream)
{
    sim_lock();
    sim_place(operation, stream, sim_duration(operation));
    sim_unlock();
    sim_observers.operation(operation);
}

void sim_kernel(struct sim_stream *stream, const char *name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared)
{
    sim_kernel_work(stream, name, grid, block, shared, NULL, NULL, 0);
}

void sim_kernel_work(struct sim_stream *stream, const char *name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                     void (*work)(void *), const void *argument, size_t bytes)
{
    struct sim_operation operation = {.kind = SIM_KERNEL, .kernel = {.name = name, .registers = 32, .shared_dynamic = shared}};
    memcpy(operation.kernel.grid, grid, sizeof operation.kernel.grid);
    memcpy(operation.kernel.block, block, sizeof operation.kernel.block);
    sim_fill(&operation, stream);
    if (sim_call_now())
        sim_call_now()->symbol = name;
    void *own = work ? malloc(bytes) : NULL;
    if (own)
        memcpy(own, argument, bytes);
    struct sim_node *node = sim_capture(stream, SIM_KERNEL_NODE, &operation);
    if (node) {
        node->function = work;
        node->argument = own;
        return;
    }
    run(&operation, stream);
    if (own)
        work(own);
    free(own);
}

static void move(void *to, const void *from, size_t width, size_t height, size_t to_pitch, size_t from_pitch)
{
    for (size_t row = 0; row < height; row++)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
}

static enum sim_copy direction(const struct sim_operation *operation)
{
    bool from = operation->copy.from == SIM_DEVICE, to = operation->copy.to == SIM_DEVICE;
    if (from && to)
        return operation->copy.from_device == operation->copy.to_device ? SIM_ON_DEVICE : SIM_TO_PEER;
    return to ? SIM_TO_DEVICE : from ? SIM_TO_HOST : SIM_ON_HOST;
}

void sim_copy(struct sim_stream *stream, void *to, const void *from, size_t width, size_t height, size_t to_pitch,
              size_t from_pitch, bool async)
{
    struct sim_operation operation = {.kind = SIM_COPY, .async = async, .copy = {.bytes = (uint64_t)width * height}};
    struct sim_allocation place;
    operation.copy.from = sim_memory_of(from);
    operation.copy.to = sim_memory_of(to);
    operation.copy.from_device = sim_allocation_of(from, &place) ? (uint32_t)place.device : 0;
    operation.copy.to_device = sim_allocation_of(to, &place) ? (uint32_t)place.device : 0;
    operation.copy.kind = direction(&operation);
    sim_fill(&operation, stream);
    struct sim_node *node = sim_capture(stream, SIM_COPY_NODE, &operation);
    if (node) {
        node->to = to;
        node->from = from;
        node->width = width;
        node->height = height;
        node->to_pitch = to_pitch;
        node->from_pitch = from_pitch;
        return;
    }
    run(&operation, stream);
    move(to, from, width, height, to_pitch, from_pitch);
    if (!async || (operation.copy.kind == SIM_TO_HOST && operation.copy.to == SIM_PAGEABLE))
        sim_clock_wait(operation.end);
}

void sim_set(struct sim_stream *stream, void *to, int value, size_t bytes, bool async)
{
    struct sim_operation operation = {.kind = SIM_SET, .async = async, .set = {bytes, (uint32_t)value, sim_memory_of(to)}};
    sim_fill(&operation, stream);
    struct sim_node *node = sim_capture(stream, SIM_SET_NODE, &operation);
    if (node) {
        node->to = to;
        return;
    }
    run(&operation, stream);
    memset(to, value, bytes);
}

void sim_host(struct sim_stream *stream, void (*function)(void *), void *argument)
{
    struct sim_node *node = sim_capture(stream, SIM_HOST_NODE, NULL);
    if (node) {
        node->function = function;
        node->to = argument;
        return;
    }
    sim_clock_wait(stream->ready);
    function(argument);
}
