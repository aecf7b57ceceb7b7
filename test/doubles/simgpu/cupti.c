/* CUPTI over the simulated GPU: the callback API with its one subscriber, and the activity API. */
#include "records.h"
#include "sim_cupti.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KINDS = 256, CALLS = 2048, DOMAINS = 8, EXTERNALS = 8, NESTED = 64, ATTRIBUTES = 32 };

static unsigned version = CUPTI_API_VERSION;
static struct sim_buffers *buffers;
static bool enabled[KINDS], hidden[3][CALLS]; /* by kind; by enum sim_domain and id */
static sim_buffer_request reader_request;
static struct {
    uint64_t start, end;
    uint32_t thread;
} asked;                                      /* the last request for a buffer: an OVERHEAD to tell of */
static pthread_mutex_t asked_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t attributes[ATTRIBUTES];

static CUpti_CallbackFunc subscriber;
static void *subscriber_data;
static bool wanted[DOMAINS][CALLS];

static _Thread_local struct {
    uint64_t ids[NESTED];
    size_t depth;
} externals[EXTERNALS];

static uint32_t thread_id(void)
{
    return (uint32_t)pthread_self();
}

static void put(union sim_record *record, uint64_t ready)
{
    static _Atomic uint64_t made;
    uint64_t nth = ++made, every = sim_fault_number("garbage");
    if (every && nth % every == 0)
        sim_record_spoil(record, nth / every);
    sim_buffers_put(buffers, record, sim_record_bytes(record->kind, version), ready);
}

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
    uint64_t start = sim_timebase_now();
    reader_request(buffer, bytes, records);
    pthread_mutex_lock(&asked_lock);
    asked.start = start;
    asked.end = sim_timebase_now();
    asked.thread = thread_id();
    pthread_mutex_unlock(&asked_lock);
}

/* A request is made while a record is on its way, so its own record comes with the next call. */
static void tell_overhead(void)
{
    union sim_record record = {.overhead = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
                                            .overheadKind = CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST,
                                            .objectKind = CUPTI_ACTIVITY_OBJECT_THREAD}};
    pthread_mutex_lock(&asked_lock);
    bool any = asked.end != 0;
    record.overhead.objectId.pt.processId = (uint32_t)getpid();
    record.overhead.objectId.pt.threadId = asked.thread;
    record.overhead.start = asked.start;
    record.overhead.end = asked.end;
    asked.end = 0;
    pthread_mutex_unlock(&asked_lock);
    if (any && enabled[CUPTI_ACTIVITY_KIND_OVERHEAD])
        put(&record, 0);
}

static void call_back(struct sim_call *call, bool ends)
{
    if (!subscriber || call->id >= CALLS || !wanted[call->domain][call->id])
        return;
    CUpti_CallbackData data = {
        .callbackSite = ends ? CUPTI_API_EXIT : CUPTI_API_ENTER,
        .functionName = call->name,
        .functionParams = call->parameters,
        .functionReturnValue = ends ? &call->status : NULL,
        .symbolName = call->symbol,
        .context = sim_context(sim_device()),
        .contextUid = (uint32_t)sim_device() + 1,
        .correlationData = &call->kept[0],
        .correlationId = call->correlation,
    };
    subscriber(subscriber_data, (CUpti_CallbackDomain)call->domain, call->id, &data);
}

static void tell_call(struct sim_call *call)
{
    bool runtime = call->domain == SIM_RUNTIME;
    CUpti_ActivityKind kind = runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    if (!enabled[kind] || !call->begin || call->id >= CALLS || hidden[call->domain][call->id])
        return;
    uint64_t now = sim_clock_now();
    for (uint32_t i = 0; enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] && i < EXTERNALS; i++)
        if (externals[i].depth) {
            union sim_record external = {.external = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                      .externalKind = (CUpti_ExternalCorrelationKind)i,
                                                      .externalId = externals[i].ids[externals[i].depth - 1],
                                                      .correlationId = call->correlation}};
            put(&external, now);
        }
    union sim_record record = {.call = {.kind = kind,
                                        .cbid = call->id,
                                        .start = call->begin,
                                        .end = sim_timebase_now(),
                                        .processId = (uint32_t)getpid(),
                                        .threadId = thread_id(),
                                        .correlationId = call->correlation,
                                        .returnValue = (uint32_t)call->status}};
    put(&record, now);
    tell_overhead();
}

static void on_call(struct sim_call *call, bool ends)
{
    if (!ends)
        call->begin = sim_timebase_now();
    call_back(call, ends);
    if (ends)
        tell_call(call);
}

static void on_operation(const struct sim_operation *operation)
{
    CUpti_ActivityKind kind = sim_record_kind(operation, enabled);
    if (kind == CUPTI_ACTIVITY_KIND_INVALID)
        return;
    union sim_record record;
    sim_record_make(&record, kind, operation);
    put(&record, operation->end);
}

static void on_resource(CUpti_CallbackIdResource id, int device, CUstream stream, void *more)
{
    if (!subscriber || !wanted[CUPTI_CB_DOMAIN_RESOURCE][id])
        return;
    CUpti_ResourceData data = {.context = sim_context(device), .resourceHandle.stream = stream, .resourceDescriptor = more};
    subscriber(subscriber_data, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

static void on_context(int device)
{
    on_resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, device, NULL, NULL);
}

static void on_stream(struct sim_stream *stream, bool ends)
{
    on_resource(ends ? CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING : CUPTI_CBID_RESOURCE_STREAM_CREATED, stream->device,
                (CUstream)stream, NULL);
}

static void on_node(struct sim_graph *graph, struct sim_node *node)
{
    CUpti_GraphData data = {.graph = (CUgraph)graph, .node = (CUgraphNode)node, .nodeType = (CUgraphNodeType)node->kind};
    on_resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, sim_device(), NULL, &data);
}

__attribute__((constructor)) static void begin(void)
{
    static const struct sim_observer observer = {on_call, on_operation, on_context, on_stream, on_node};
    const char *asked_version = getenv("SIMGPU_CUPTI");
    if (asked_version)
        version = (unsigned)atoi(asked_version);
    buffers = sim_buffers_new();
    sim_observe(&observer);
}

CUptiResult sim_cuptiGetVersion(uint32_t *to)
{
    *to = version;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetTimestamp(uint64_t *time)
{
    *time = sim_timebase_now();
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetResultString(CUptiResult result, const char **text)
{
    static _Thread_local char unnamed[32];
    snprintf(unnamed, sizeof unnamed, "CUPTI_ERROR_%d", (int)result);
    *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS"
            : result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : unnamed;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    static const char *const runtime[] = {SIM_RUNTIME_CALLS}, *const driver[] = {SIM_DRIVER_CALLS};
    bool of_runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API, of_driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
    *name = of_runtime && id < sizeof runtime / sizeof *runtime ? runtime[id]
            : of_driver && id < sizeof driver / sizeof *driver ? driver[id] : NULL;
    return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult sim_cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc function, void *data)
{
    if (subscriber)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber_data = data;
    subscriber = function;
    *handle = (CUpti_SubscriberHandle)&subscriber;
    return CUPTI_SUCCESS;
}

static bool is_subscriber(CUpti_SubscriberHandle handle)
{
    return subscriber && (void *)handle == (void *)&subscriber;
}

CUptiResult sim_cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
    if (!is_subscriber(handle))
        return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber = NULL;
    memset(wanted, 0, sizeof wanted);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
    if (!is_subscriber(handle) || (unsigned)domain >= DOMAINS || id >= CALLS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    wanted[domain][id] = enable;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle, CUpti_CallbackDomain domain)
{
    if (!is_subscriber(handle) || (unsigned)domain >= DOMAINS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memset(wanted[domain], enable != 0, sizeof wanted[domain]);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiFinalize(void)
{
    memset(enabled, 0, sizeof enabled);
    sim_buffers_flush(buffers, true);
    sim_buffers_callbacks(buffers, NULL, NULL);
    subscriber = NULL;
    memset(wanted, 0, sizeof wanted);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc ask, CUpti_BuffersCallbackCompleteFunc complete)
{
    if (!ask || !complete)
        return CUPTI_ERROR_INVALID_PARAMETER;
    reader_request = ask;
    sim_buffers_callbacks(buffers, request, (sim_buffer_complete)complete);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock)
{
    sim_timebase(clock);
    return CUPTI_SUCCESS;
}

static CUptiResult enable_kind(CUpti_ActivityKind kind, bool on)
{
    if (!sim_record_bytes(kind, version))
        return CUPTI_ERROR_INVALID_KIND;
    enabled[kind] = on;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityEnable(CUpti_ActivityKind kind)
{
    return enable_kind(kind, true);
}

CUptiResult sim_cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return enable_kind(kind, false);
}

CUptiResult sim_cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, uint8_t enable)
{
    if (id >= CALLS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    hidden[SIM_RUNTIME][id] = !enable;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityEnableDriverApi(CUpti_CallbackId id, uint8_t enable)
{
    if (id >= CALLS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    hidden[SIM_DRIVER][id] = !enable;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable)
{
    (void)enable; /* they are always there */
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
    if ((unsigned)attribute >= ATTRIBUTES || *bytes > sizeof *attributes)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(&attributes[attribute], value, *bytes);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t *bytes, void *value)
{
    if ((unsigned)attribute >= ATTRIBUTES || *bytes > sizeof *attributes)
        return CUPTI_ERROR_INVALID_PARAMETER;
    memcpy(value, &attributes[attribute], *bytes);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityFlushAll(uint32_t flags)
{
    sim_buffers_flush(buffers, flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    size_t at = 0;
    if (*record) {
        size_t bytes = sim_record_bytes((*record)->kind, version);
        if (!bytes)
            return CUPTI_ERROR_INVALID_KIND;
        at = (size_t)((uint8_t *)*record - buffer) + bytes;
    }
    if (at >= valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(buffer + at);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = sim_buffers_dropped(buffers);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    if ((unsigned)kind >= EXTERNALS || externals[kind].depth == NESTED)
        return CUPTI_ERROR_INVALID_PARAMETER;
    externals[kind].ids[externals[kind].depth++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
    if ((unsigned)kind >= EXTERNALS)
        return CUPTI_ERROR_INVALID_PARAMETER;
    if (!externals[kind].depth)
        return CUPTI_ERROR_QUEUE_EMPTY;
    externals[kind].depth--;
    if (last)
        *last = externals[kind].ids[externals[kind].depth];
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id)
{
    (void)context, (void)per_thread;
    *id = sim_stream(stream)->id;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetContextId(CUcontext context, uint32_t *id)
{
    *id = (uint32_t)sim_context_device(context) + 1;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetDeviceId(CUcontext context, uint32_t *id)
{
    *id = (uint32_t)sim_context_device(context);
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
    *id = ((const struct sim_node *)node)->id;
    return CUPTI_SUCCESS;
}

CUptiResult sim_cuptiGetGraphId(CUgraph graph, uint32_t *id)
{
    *id = ((const struct sim_graph *)graph)->id;
    return CUPTI_SUCCESS;
}
