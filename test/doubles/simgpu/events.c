#include "simgpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_NS = 500 };

static _Atomic uint32_t last_id;
static _Atomic uint64_t last_sync_id;

struct sim_event *sim_event_new(void)
{
    struct sim_event *event = calloc(1, sizeof *event);
    if (event)
        event->id = ++last_id;
    return event;
}

void sim_event_end(struct sim_event *event)
{
    free(event->nodes);
    free(event);
}

static void remember(struct sim_event *event, struct sim_stream *stream)
{
    event->capture = stream->capture;
    event->capture_id = stream->capture_id;
    event->count = stream->last_count;
    event->nodes = realloc(event->nodes, (event->count + 1) * sizeof(struct sim_node *));
    memcpy(event->nodes, stream->last, event->count * sizeof(struct sim_node *));
}

void sim_event_record(struct sim_event *event, struct sim_stream *stream, bool external)
{
    struct sim_operation operation = {.kind = SIM_MARK, .sync = {.event = event->id}};
    event->stream = stream->id;
    sim_fill(&operation, stream);
    if (stream->capture) {
        if (external)
            sim_capture(stream, SIM_MARK_NODE, &operation);
        remember(event, stream);
        return;
    }
    sim_lock();
    uint64_t soonest = sim_clock_now() + RECORD_NS;
    if (stream->ready < soonest)
        stream->ready = soonest;
    event->capture = NULL;
    event->recorded = true;
    event->time = operation.start = operation.end = stream->ready;
    event->sync_id = operation.sync.sync_id = ++last_sync_id;
    sim_unlock();
    sim_observers.operation(&operation);
}

void sim_event_sync(struct sim_event *event)
{
    uint64_t since = sim_clock_now();
    if (event->recorded)
        sim_clock_wait(event->time);
    struct sim_stream at = *sim_stream(NULL);
    at.id = event->stream;
    sim_waited(&at, SIM_EVENT_WAIT, since, event->id, event->sync_id);
}

bool sim_event_wait(struct sim_stream *stream, struct sim_event *event)
{
    if (event->capture) {
        if (stream->capture && stream->capture != event->capture)
            return false;
        stream->capture = event->capture;
        stream->capture_id = event->capture_id;
        sim_capture_after(stream, event->nodes, event->count, false);
        return true;
    }
    if (!event->recorded)
        return true;
    sim_lock();
    if (stream->ready < event->time)
        stream->ready = event->time;
    sim_unlock();
    sim_waited(stream, SIM_STREAM_EVENT_WAIT, sim_clock_now(), event->id, event->sync_id);
    return true;
}
