/* Runtime API: capture, graphs and their replay. */
#include "sim_cudart.h"
#include "simgpu.h"

#include <stdlib.h>
#include <string.h>

static struct sim_graph *graph_of(cudaGraph_t graph)
{
    return (struct sim_graph *)graph;
}

cudaError_t sim_cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    (void)flags;
    *graph = (cudaGraph_t)sim_graph_new();
    return *graph ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_cudaGraphDestroy(cudaGraph_t graph)
{
    sim_graph_end(graph_of(graph));
    return cudaSuccess;
}

cudaError_t sim_cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    struct sim_graph *graph = sim_graph_new();
    if (sim_capture_begins(sim_stream(stream), graph))
        return cudaSuccess;
    sim_graph_end(graph);
    return cudaErrorIllegalState;
}

cudaError_t sim_cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *needs,
                                              const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode)
{
    (void)edges, (void)mode;
    if (!sim_capture_begins(sim_stream(stream), graph_of(graph)))
        return cudaErrorIllegalState;
    sim_capture_after(sim_stream(stream), (struct sim_node *const *)needs, count, true);
    return cudaSuccess;
}

cudaError_t sim_cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    *graph = (cudaGraph_t)sim_capture_ends(sim_stream(stream));
    return *graph ? cudaSuccess : cudaErrorIllegalState;
}

cudaError_t sim_cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    *status = sim_stream(stream)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t sim_cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                         cudaGraph_t *graph, const cudaGraphNode_t **needs, const cudaGraphEdgeData **edges,
                                         size_t *count)
{
    const struct sim_stream *on = sim_stream(stream);
    sim_cudaStreamIsCapturing(stream, status);
    if (!on->capture)
        return cudaSuccess;
    if (id)
        *id = on->capture_id;
    if (graph)
        *graph = (cudaGraph_t)on->capture;
    if (needs)
        *needs = (const cudaGraphNode_t *)on->last;
    if (edges)
        *edges = NULL;
    if (count)
        *count = on->last_count;
    return cudaSuccess;
}

cudaError_t sim_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *needs, const cudaGraphEdgeData *edges,
                                                    size_t count, unsigned flags)
{
    (void)edges;
    if (!sim_stream(stream)->capture)
        return cudaErrorIllegalState;
    sim_capture_after(sim_stream(stream), (struct sim_node *const *)needs, count, flags == cudaStreamSetCaptureDependencies);
    return cudaSuccess;
}

cudaError_t sim_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static _Thread_local enum cudaStreamCaptureMode current;
    enum cudaStreamCaptureMode before = current;
    current = *mode;
    *mode = before;
    return cudaSuccess;
}

cudaError_t sim_cudaGraphInstantiateWithFlags(cudaGraphExec_t *replay, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *replay = (cudaGraphExec_t)sim_replay_new(graph_of(graph));
    return *replay ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t sim_cudaGraphInstantiate(cudaGraphExec_t *replay, cudaGraph_t graph, unsigned long long flags)
{
    return sim_cudaGraphInstantiateWithFlags(replay, graph, flags);
}

cudaError_t sim_cudaGraphExecDestroy(cudaGraphExec_t replay)
{
    sim_replay_end((struct sim_replay *)replay);
    return cudaSuccess;
}

cudaError_t sim_cudaGraphUpload(cudaGraphExec_t replay, cudaStream_t stream)
{
    (void)replay, (void)stream;
    return cudaSuccess;
}

cudaError_t sim_cudaGraphLaunch(cudaGraphExec_t replay, cudaStream_t stream)
{
    if (sim_stream(stream)->capture)
        return cudaErrorStreamCaptureUnsupported;
    sim_replay((struct sim_replay *)replay, sim_stream(stream));
    return cudaSuccess;
}

static size_t nodes_to(cudaGraphNode_t *to, size_t room, struct sim_node *const *nodes, size_t count)
{
    if (!to)
        return count;
    if (count > room)
        count = room;
    if (count)
        memcpy(to, nodes, count * sizeof(struct sim_node *));
    return count;
}

cudaError_t sim_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    *count = nodes_to(nodes, *count, graph_of(graph)->nodes, graph_of(graph)->count);
    return cudaSuccess;
}

cudaError_t sim_cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    *type = (enum cudaGraphNodeType)((const struct sim_node *)node)->kind;
    return cudaSuccess;
}

cudaError_t sim_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *needs, cudaGraphEdgeData *edges, size_t *count)
{
    const struct sim_node *of = (const struct sim_node *)node;
    *count = nodes_to(needs, *count, of->needs, of->need_count);
    if (edges)
        memset(edges, 0, *count * sizeof *edges);
    return cudaSuccess;
}

/* What a graph keeps alive lives until the process ends. */
cudaError_t sim_cudaUserObjectCreate(cudaUserObject_t *object, void *what, cudaHostFn_t end, unsigned count, unsigned flags)
{
    (void)end, (void)count, (void)flags;
    *object = (cudaUserObject_t)what;
    return cudaSuccess;
}

cudaError_t sim_cudaUserObjectRelease(cudaUserObject_t object, unsigned count)
{
    (void)object, (void)count;
    return cudaSuccess;
}

cudaError_t sim_cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags)
{
    (void)graph, (void)object, (void)count, (void)flags;
    return cudaSuccess;
}
