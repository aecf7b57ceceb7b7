#include "simgpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint32_t last_graph;
static _Atomic uint64_t last_node, last_capture;

struct sim_graph *sim_graph_new(void)
{
    struct sim_graph *graph = calloc(1, sizeof *graph);
    if (graph) {
        graph->id = ++last_graph;
        graph->users = 1;
    }
    return graph;
}

void sim_graph_end(struct sim_graph *graph)
{
    sim_lock();
    bool used = --graph->users;
    sim_unlock();
    if (used)
        return;
    for (size_t i = 0; i < graph->count; i++) {
        free(graph->nodes[i]->needs);
        free(graph->nodes[i]->argument);
        free(graph->nodes[i]);
    }
    free(graph->nodes);
    free(graph);
}

bool sim_capture_begins(struct sim_stream *stream, struct sim_graph *graph)
{
    if (stream->capture || !graph)
        return false;
    stream->capture = graph;
    stream->capture_id = ++last_capture;
    stream->last_count = 0;
    return true;
}

struct sim_graph *sim_capture_ends(struct sim_stream *stream)
{
    struct sim_graph *graph = stream->capture;
    uint64_t id = stream->capture_id;
    sim_lock();
    for (struct sim_stream *other = sim_stream(NULL); graph && other; other = other->next)
        if (other->capture && other->capture_id == id)
            other->capture = NULL;
    sim_unlock();
    return graph;
}

void sim_capture_after(struct sim_stream *stream, struct sim_node *const *nodes, size_t count, bool instead)
{
    if (instead)
        stream->last_count = 0;
    stream->last = realloc(stream->last, (stream->last_count + count + 1) * sizeof *stream->last);
    if (count)
        memcpy(stream->last + stream->last_count, nodes, count * sizeof *nodes);
    stream->last_count += count;
}

struct sim_node *sim_capture(struct sim_stream *stream, enum sim_node_kind kind, const struct sim_operation *operation)
{
    struct sim_graph *graph = stream->capture;
    if (!graph)
        return NULL;
    struct sim_node *node = calloc(1, sizeof *node);
    node->id = ++last_node;
    node->kind = kind;
    if (operation)
        node->operation = *operation;
    node->needs = malloc((stream->last_count + 1) * sizeof *node->needs);
    node->need_count = stream->last_count;
    if (stream->last_count)
        memcpy(node->needs, stream->last, stream->last_count * sizeof *node->needs);
    sim_lock();
    graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof(struct sim_node *));
    graph->nodes[graph->count++] = node;
    sim_unlock();
    sim_capture_after(stream, &node, 1, true);
    sim_observers.node(graph, node);
    return node;
}

struct sim_replay *sim_replay_new(struct sim_graph *graph)
{
    struct sim_replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return NULL;
    sim_lock();
    graph->users++;
    sim_unlock();
    replay->graph = graph;
    replay->id = ++last_graph;
    return replay;
}

void sim_replay_end(struct sim_replay *replay)
{
    sim_graph_end(replay->graph);
    free(replay);
}

static void do_node(const struct sim_node *node)
{
    if (node->kind == SIM_KERNEL_NODE && node->argument)
        node->function(node->argument);
    else if (node->kind == SIM_SET_NODE)
        memset(node->to, (int)node->operation.set.value, node->operation.set.bytes);
    else if (node->kind == SIM_COPY_NODE)
        for (size_t row = 0; row < node->height; row++)
            memmove((char *)node->to + row * node->to_pitch, (const char *)node->from + row * node->from_pitch, node->width);
}

/* Nodes go one after the other in the order of their capture, which fits every dependency. */
void sim_replay(struct sim_replay *replay, struct sim_stream *stream)
{
    struct sim_operation whole = {.kind = SIM_GRAPH, .graph = replay->id};
    sim_fill(&whole, stream);
    whole.start = sim_clock_now();
    bool first = true;
    for (size_t i = 0; i < replay->graph->count; i++) {
        struct sim_node *node = replay->graph->nodes[i];
        if (node->kind == SIM_HOST_NODE)
            sim_host(stream, node->function, node->to);
        if (node->kind == SIM_HOST_NODE || node->kind == SIM_MARK_NODE)
            continue;
        struct sim_operation operation = node->operation;
        operation.graph = replay->id;
        operation.node = node->id;
        sim_fill(&operation, stream);
        sim_lock();
        sim_place(&operation, stream, sim_duration(&operation));
        sim_unlock();
        do_node(node);
        if (first)
            whole.start = operation.start;
        first = false;
        sim_observers.operation(&operation);
    }
    whole.end = first ? whole.start : stream->ready;
    sim_observers.operation(&whole);
}
