#include "records.h"

#include <string.h>
#include <unistd.h>

enum { CHANNELS = 32 };

/* A record is written whole into the newest struct and cut to the size of its version. */
_Static_assert(sizeof(CUpti_ActivityKernel10) == 216 && sizeof(CUpti_ActivityKernel9) == 208, "sizes.c: CONCURRENT_KERNEL");
_Static_assert(sizeof(CUpti_ActivityKernel8) == 200 && sizeof(CUpti_ActivityKernel7) == 176, "sizes.c: CONCURRENT_KERNEL");
_Static_assert(sizeof(CUpti_ActivityMemcpy6) == 96 && sizeof(CUpti_ActivityMemcpy5) == 88, "sizes.c: MEMCPY");
_Static_assert(sizeof(CUpti_ActivityMemcpyPtoP4) == 96 && sizeof(CUpti_ActivityMemset4) == 88, "sizes.c: MEMCPY2, MEMSET");
_Static_assert(sizeof(CUpti_ActivityAPI) == 40 && sizeof(CUpti_ActivityExternalCorrelation) == 24, "sizes.c: RUNTIME");
_Static_assert(sizeof(CUpti_ActivityOverhead3) == 56 && sizeof(CUpti_ActivityOverhead) == 40, "sizes.c: OVERHEAD");
_Static_assert(sizeof(CUpti_ActivitySynchronization2) == 56 && sizeof(CUpti_ActivitySynchronization) == 40,
               "sizes.c: SYNCHRONIZATION");
_Static_assert(sizeof(CUpti_ActivityCudaEvent2) == 56 && sizeof(CUpti_ActivityCudaEvent) == 24, "sizes.c: CUDA_EVENT");
_Static_assert(sizeof(CUpti_ActivityMemory4) == 128 && sizeof(CUpti_ActivityMemory3) == 120, "sizes.c: MEMORY2");
_Static_assert(sizeof(CUpti_ActivityGraphTrace2) == 56 && sizeof(CUpti_ActivityGraphTrace) == 48, "sizes.c: GRAPH_TRACE");

CUpti_ActivityKind sim_record_kind(const struct sim_operation *operation, const bool *enabled)
{
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
    switch (operation->kind) {
    case SIM_KERNEL:
        kind = enabled[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL;
        break;
    case SIM_COPY:
        kind = operation->copy.kind == SIM_TO_PEER ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY;
        break;
    case SIM_SET:
        kind = CUPTI_ACTIVITY_KIND_MEMSET;
        break;
    case SIM_MARK:
        kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
        break;
    case SIM_SYNC:
        kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
        break;
    case SIM_ALLOCATION:
        kind = CUPTI_ACTIVITY_KIND_MEMORY2;
        break;
    case SIM_GRAPH:
        kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
        break;
    }
    return enabled[kind] ? kind : CUPTI_ACTIVITY_KIND_INVALID;
}

/* What most of them have, by the same names. */
#define PLACE(record) \
    (record).correlationId = operation->correlation; \
    (record).deviceId = operation->device; \
    (record).contextId = operation->device + 1; \
    (record).streamId = operation->stream
#define TIMES(record) \
    (record).start = sim_timebase_of(operation->start); \
    (record).end = sim_timebase_of(operation->end)
#define NODE(record) \
    (record).graphId = operation->graph; \
    (record).graphNodeId = operation->node; \
    (record).channelID = 1 + operation->stream % CHANNELS; \
    (record).channelType = CUPTI_CHANNEL_TYPE_COMPUTE

static void make_kernel(CUpti_ActivityKernel10 *kernel, const struct sim_operation *operation)
{
    PLACE(*kernel);
    TIMES(*kernel);
    NODE(*kernel);
    kernel->name = operation->kernel.name;
    kernel->gridId = operation->correlation;
    kernel->gridX = (int32_t)operation->kernel.grid[0];
    kernel->gridY = (int32_t)operation->kernel.grid[1];
    kernel->gridZ = (int32_t)operation->kernel.grid[2];
    kernel->blockX = (int32_t)operation->kernel.block[0];
    kernel->blockY = (int32_t)operation->kernel.block[1];
    kernel->blockZ = (int32_t)operation->kernel.block[2];
    kernel->registersPerThread = (uint16_t)operation->kernel.registers;
    kernel->staticSharedMemory = (int32_t)operation->kernel.shared_static;
    kernel->dynamicSharedMemory = (int32_t)operation->kernel.shared_dynamic;
}

static void make_memory(CUpti_ActivityMemory4 *memory, const struct sim_operation *operation)
{
    PLACE(*memory);
    memory->memoryOperationType = operation->allocation.frees ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                                              : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    memory->memoryKind = (CUpti_ActivityMemoryKind)operation->allocation.memory;
    memory->address = operation->allocation.address;
    memory->bytes = operation->allocation.bytes;
    memory->timestamp = sim_timebase_of(operation->start);
    memory->processId = (uint32_t)getpid();
}

#define COPIED(record) \
    (record).copyKind = (uint8_t)operation->copy.kind; \
    (record).srcKind = (uint8_t)operation->copy.from; \
    (record).dstKind = (uint8_t)operation->copy.to; \
    (record).flags = operation->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE; \
    (record).bytes = operation->copy.bytes

void sim_record_make(union sim_record *record, CUpti_ActivityKind kind, const struct sim_operation *operation)
{
    memset(record, 0, sizeof *record);
    record->kind = kind;
    switch (operation->kind) {
    case SIM_KERNEL:
        make_kernel(&record->kernel, operation);
        break;
    case SIM_COPY:
        if (kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
            PLACE(record->peer);
            TIMES(record->peer);
            NODE(record->peer);
            COPIED(record->peer);
            record->peer.srcDeviceId = operation->copy.from_device;
            record->peer.dstDeviceId = operation->copy.to_device;
            record->peer.srcContextId = operation->copy.from_device + 1;
            record->peer.dstContextId = operation->copy.to_device + 1;
        } else {
            PLACE(record->copy);
            TIMES(record->copy);
            NODE(record->copy);
            COPIED(record->copy);
            record->copy.copyCount = 1;
        }
        break;
    case SIM_SET:
        PLACE(record->set);
        TIMES(record->set);
        NODE(record->set);
        record->set.value = operation->set.value;
        record->set.bytes = operation->set.bytes;
        record->set.memoryKind = (uint16_t)operation->set.memory;
        record->set.flags = operation->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
        break;
    case SIM_MARK:
        PLACE(record->event);
        record->event.eventId = operation->sync.event;
        record->event.deviceTimestamp = sim_timebase_of(operation->end);
        record->event.cudaEventSyncId = operation->sync.sync_id;
        break;
    case SIM_SYNC:
        TIMES(record->sync);
        record->sync.type = (CUpti_ActivitySynchronizationType)operation->sync.type;
        record->sync.correlationId = operation->correlation;
        record->sync.contextId = operation->device + 1;
        record->sync.streamId = operation->stream;
        record->sync.cudaEventId = operation->sync.event;
        record->sync.cudaEventSyncId = operation->sync.sync_id;
        break;
    case SIM_ALLOCATION:
        make_memory(&record->memory, operation);
        break;
    case SIM_GRAPH:
        PLACE(record->graph);
        TIMES(record->graph);
        record->graph.graphId = operation->graph;
        record->graph.endDeviceId = operation->device;
        record->graph.endContextId = operation->device + 1;
        break;
    }
}

void sim_record_spoil(union sim_record *record, uint64_t nth)
{
    enum { NEWS, NO_TIMES, BACKWARDS, NO_CORRELATION, NO_NAME, WAYS };
    bool kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    int way = kernel ? (int)(nth % WAYS) : NEWS;
    if (way == NEWS) {
        record->kind = (CUpti_ActivityKind)SIM_NEWS;
    } else if (way == NO_TIMES) {
        record->kernel.start = record->kernel.end = 0;
    } else if (way == BACKWARDS) {
        uint64_t start = record->kernel.start;
        record->kernel.start = record->kernel.end;
        record->kernel.end = start;
    } else if (way == NO_CORRELATION) {
        record->kernel.correlationId = 0;
    } else {
        record->kernel.name = NULL;
    }
}
