#include "simgpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { OBSERVERS = 4 };

static _Atomic uint32_t last_correlation;
static _Thread_local struct sim_call *innermost;
static _Thread_local int last_error;
static bool logs;
static const struct sim_observer *observers[OBSERVERS];
static _Atomic unsigned observer_count;

__attribute__((constructor)) static void begin(void)
{
    logs = getenv("SIMGPU_LOG");
}

void sim_observe(const struct sim_observer *observer)
{
    if (observer_count == OBSERVERS)
        abort();
    observers[observer_count] = observer;
    observer_count++;
}

static void tell_call(struct sim_call *call, bool ends)
{
    for (unsigned i = 0; i < observer_count; i++)
        observers[i]->call(call, ends);
}

static void tell_operation(const struct sim_operation *operation)
{
    for (unsigned i = 0; i < observer_count; i++)
        observers[i]->operation(operation);
}

static void tell_context(int device)
{
    for (unsigned i = 0; i < observer_count; i++)
        observers[i]->context(device);
}

static void tell_stream(struct sim_stream *stream, bool ends)
{
    for (unsigned i = 0; i < observer_count; i++)
        observers[i]->stream(stream, ends);
}

static void tell_node(struct sim_graph *graph, struct sim_node *node)
{
    for (unsigned i = 0; i < observer_count; i++)
        observers[i]->node(graph, node);
}

const struct sim_observer sim_observers = {tell_call, tell_operation, tell_context, tell_stream, tell_node};

bool sim_call_begins(struct sim_call *call)
{
    if (logs)
        fprintf(stderr, "simgpu: %s\n", call->name);
    sim_clock_tick();
    if (call->domain != SIM_LIBRARY) {
        call->correlation = ++last_correlation;
        call->outer = innermost;
        innermost = call;
        if (call->id)
            tell_call(call, false);
    }
    call->status = sim_fault(call->name);
    return call->status == 0;
}

int sim_call_ends(struct sim_call *call)
{
    sim_clock_tick();
    if (call->domain != SIM_LIBRARY) {
        if (call->id)
            tell_call(call, true);
        innermost = call->outer;
    }
    if (call->domain == SIM_RUNTIME && call->status && !call->answer)
        last_error = call->status;
    return call->status;
}

int sim_call_missing(const struct sim_call *call, int status)
{
    fprintf(stderr, "simgpu: %s is not simulated\n", call->name);
    return status;
}

struct sim_call *sim_call_now(void)
{
    return innermost;
}

int sim_last_error(bool forget)
{
    int error = last_error;
    if (forget)
        last_error = 0;
    return error;
}
