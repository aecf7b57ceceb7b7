/* Runtime API: streams and events. */
#include "sim_cudart.h"
#include "simgpu.h"

#include <stdlib.h>

static struct sim_event *event_of(cudaEvent_t event)
{
    return (struct sim_event *)event;
}

static cudaError_t not_ready(bool pending)
{
    sim_call_now()->answer = true;
    return pending ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t sim_cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    *stream = (cudaStream_t)sim_stream_new(flags, priority);
    return *stream ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return sim_cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t sim_cudaStreamCreate(cudaStream_t *stream)
{
    return sim_cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t sim_cudaStreamDestroy(cudaStream_t stream)
{
    sim_stream_end(sim_stream(stream));
    return cudaSuccess;
}

cudaError_t sim_cudaStreamSynchronize(cudaStream_t stream)
{
    if (sim_stream(stream)->capture)
        return cudaErrorStreamCaptureUnsupported;
    sim_stream_sync(sim_stream(stream));
    return cudaSuccess;
}

cudaError_t sim_cudaStreamQuery(cudaStream_t stream)
{
    return not_ready(sim_stream(stream)->ready > sim_clock_now());
}

cudaError_t sim_cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    *priority = sim_stream(stream)->priority;
    return cudaSuccess;
}

cudaError_t sim_cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    *flags = sim_stream(stream)->flags;
    return cudaSuccess;
}

cudaError_t sim_cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    *id = sim_stream(stream)->id;
    return cudaSuccess;
}

cudaError_t sim_cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    *device = sim_stream(stream)->device;
    return cudaSuccess;
}

cudaError_t sim_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    return sim_event_wait(sim_stream(stream), event_of(event)) ? cudaSuccess : cudaErrorStreamCaptureMerge;
}

cudaError_t sim_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = (cudaEvent_t)sim_event_new();
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_cudaEventCreate(cudaEvent_t *event)
{
    return sim_cudaEventCreateWithFlags(event, 0);
}

cudaError_t sim_cudaEventDestroy(cudaEvent_t event)
{
    sim_event_end(event_of(event));
    return cudaSuccess;
}

cudaError_t sim_cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    sim_event_record(event_of(event), sim_stream(stream), flags & cudaEventRecordExternal);
    return cudaSuccess;
}

cudaError_t sim_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return sim_cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t sim_cudaEventQuery(cudaEvent_t event)
{
    return not_ready(event_of(event)->recorded && event_of(event)->time > sim_clock_now());
}

cudaError_t sim_cudaEventSynchronize(cudaEvent_t event)
{
    sim_event_sync(event_of(event));
    return cudaSuccess;
}

cudaError_t sim_cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    const struct sim_event *first = event_of(from), *last = event_of(to);
    if (!first->recorded || !last->recorded)
        return cudaErrorInvalidResourceHandle;
    if (first->time > sim_clock_now() || last->time > sim_clock_now())
        return not_ready(true);
    *milliseconds = (float)((double)(int64_t)(last->time - first->time) / 1e6);
    return cudaSuccess;
}
