/*
 * simgpu.h: the simulated GPU (libsimgpu.so), which knows no header of NVIDIA's; the libraries in front of it stand over this.
 *
 * Memory is the host's, copies and sets are done at once, kernels take their time on a stream's timeline and compute nothing.
 *
 *     SIMGPU_DEVICES=n    how many there are (1)          SIMGPU_LOG=1    every call to stderr
 *     SIMGPU_CLOCK=ns     virtual time that begins there  SIMGPU_FAULTS   faults.c
 *     SIMGPU_CUPTI=n      what cuptiGetVersion says, and the sizes of records with it: 17..28, 130000 and on
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_DEVICES 16

/* clock.c: nanoseconds, of the wall or virtual. */
void sim_clock_virtual(uint64_t start);
uint64_t sim_clock_now(void);
void sim_clock_tick(void);             /* a call costs this much virtual time */
void sim_clock_wait(uint64_t until);

/* faults.c */
void sim_faults_set(const char *text); /* replaces what SIMGPU_FAULTS said */
int sim_fault(const char *call);       /* the status that this call is to return instead of being done; 0: done */
uint64_t sim_fault_number(const char *name);

/* calls.c: one call of an API. */
enum sim_domain { SIM_LIBRARY, SIM_DRIVER, SIM_RUNTIME }; /* the latter two as CUPTI counts them */
struct sim_call {
    enum sim_domain domain;
    uint32_t id;            /* CUPTI's, 0: not shown */
    const char *name;
    const void *parameters; /* the struct of the generated_*_meta.h */
    const char *symbol;     /* the kernel that it launches */
    uint32_t correlation;
    int status;
    bool answer;            /* a status other than 0 is an answer, no error to remember */
    uint64_t begin, kept[4];
    struct sim_call *outer;
};
bool sim_call_begins(struct sim_call *call); /* false: it must not be done, its status stands */
int sim_call_ends(struct sim_call *call);
int sim_call_missing(const struct sim_call *call, int status);
struct sim_call *sim_call_now(void);
int sim_last_error(bool forget);

/* What the device did. */
enum sim_kind { SIM_KERNEL, SIM_COPY, SIM_SET, SIM_MARK, SIM_SYNC, SIM_ALLOCATION, SIM_GRAPH };
enum sim_memory { SIM_UNKNOWN, SIM_PAGEABLE, SIM_PINNED, SIM_DEVICE, SIM_MANAGED = 5 };       /* as CUPTI counts */
enum sim_copy { SIM_TO_DEVICE = 1, SIM_TO_HOST, SIM_ON_DEVICE = 8, SIM_ON_HOST, SIM_TO_PEER }; /* the same */
enum sim_wait { SIM_EVENT_WAIT = 1, SIM_STREAM_EVENT_WAIT, SIM_STREAM_WAIT, SIM_DEVICE_WAIT };  /* the same */
struct sim_operation {
    enum sim_kind kind;
    uint32_t correlation, device, stream, graph;
    uint64_t queued, start, end, node;
    bool async;
    union {
        struct {
            const char *name;
            uint32_t grid[3], block[3], registers, shared_static, shared_dynamic;
        } kernel;
        struct {
            uint64_t bytes;
            enum sim_copy kind;
            enum sim_memory from, to;
            uint32_t from_device, to_device;
        } copy;
        struct {
            uint64_t bytes;
            uint32_t value;
            enum sim_memory memory;
        } set;
        struct {
            enum sim_wait type; /* of SIM_SYNC */
            uint32_t event;
            uint64_t sync_id;
        } sync;
        struct {
            uint64_t address, bytes;
            enum sim_memory memory;
            bool frees;
        } allocation;
    };
};

/* Whoever looks on, CUPTI that is. Called without a lock, in the thread that made the call. */
struct sim_stream;
struct sim_node;
struct sim_graph;
struct sim_observer {
    void (*call)(struct sim_call *call, bool ends);
    void (*operation)(const struct sim_operation *operation);
    void (*context)(int device);
    void (*stream)(struct sim_stream *stream, bool ends);
    void (*node)(struct sim_graph *graph, struct sim_node *node);
};
void sim_observe(const struct sim_observer *observer);
extern const struct sim_observer sim_observers; /* tells all of them */

/* devices.c */
int sim_device_count(void);
int sim_device(void);                /* of this thread */
bool sim_device_set(int device);
bool sim_device_awake(int device);   /* it has a context */
void *sim_context(int device);       /* made if need be */
int sim_context_device(const void *context);
int sim_device_number(int attribute); /* by the number of cudaDeviceAttr */
extern const char sim_device_name[];
extern const uint64_t sim_device_memory;

/* memory.c */
struct sim_allocation {
    uintptr_t address;
    size_t bytes;
    enum sim_memory memory;
    int device;
};
void *sim_allocate(size_t bytes, enum sim_memory memory);
bool sim_register(void *address, size_t bytes, enum sim_memory memory); /* the caller's own memory */
bool sim_free(void *address);
bool sim_unregister(void *address);
bool sim_allocation_of(const void *address, struct sim_allocation *found);
enum sim_memory sim_memory_of(const void *address);
uint64_t sim_memory_used(int device);

/* functions.c */
void sim_function_add(const void *host, const char *name);
const char *sim_function_name(const void *host); /* NULL: not registered */
void sim_variable_add(const void *host, size_t bytes);
void *sim_variable(const void *host, size_t *bytes);

/* streams.c */
struct sim_stream {
    uint32_t id;
    int device, priority;
    unsigned flags;                 /* SIM_NON_BLOCKING */
    uint64_t ready;                 /* when all that was given to it is done */
    struct sim_graph *capture;
    uint64_t capture_id;
    struct sim_node **last;         /* what the next captured node depends on */
    size_t last_count;
    struct sim_stream *next;
};
enum { SIM_NON_BLOCKING = 1 };
struct sim_stream *sim_stream(const void *handle); /* small numbers are the default streams */
struct sim_stream *sim_stream_new(unsigned flags, int priority);
void sim_stream_end(struct sim_stream *stream);
void sim_stream_sync(struct sim_stream *stream);
void sim_device_sync(void);
uint64_t sim_idle_at(int device);
void sim_kernel(struct sim_stream *stream, const char *name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared);
void sim_kernel_work(struct sim_stream *stream, const char *name, const uint32_t grid[3], const uint32_t block[3], uint32_t shared,
                     void (*work)(void *), const void *argument, size_t bytes); /* what it does, to a copy of its argument */
void sim_copy(struct sim_stream *stream, void *to, const void *from, size_t width, size_t height, size_t to_pitch,
              size_t from_pitch, bool async);
void sim_set(struct sim_stream *stream, void *to, int value, size_t bytes, bool async);
void sim_host(struct sim_stream *stream, void (*function)(void *), void *argument);
void sim_waited(struct sim_stream *stream, enum sim_wait type, uint64_t since, uint32_t event, uint64_t sync_id);

/* events.c */
struct sim_event {
    uint32_t id;
    bool recorded;
    uint64_t time, sync_id;
    uint32_t stream;
    struct sim_graph *capture;
    uint64_t capture_id;
    struct sim_node **nodes;
    size_t count;
};
struct sim_event *sim_event_new(void);
void sim_event_end(struct sim_event *event);
void sim_event_record(struct sim_event *event, struct sim_stream *stream, bool external);
void sim_event_sync(struct sim_event *event);
bool sim_event_wait(struct sim_stream *stream, struct sim_event *event);

/* graphs.c */
enum sim_node_kind { SIM_KERNEL_NODE, SIM_COPY_NODE, SIM_SET_NODE, SIM_HOST_NODE, SIM_MARK_NODE = 7 }; /* as cudaGraphNodeType */
struct sim_node {
    uint64_t id;
    enum sim_node_kind kind;
    struct sim_operation operation;
    void *to;
    const void *from;
    size_t width, height, to_pitch, from_pitch;
    void (*function)(void *); /* of a host node with `to`, of a kernel with its own argument */
    void *argument;
    struct sim_node **needs;
    size_t need_count;
};
struct sim_graph {
    uint32_t id;
    unsigned users;
    struct sim_node **nodes;
    size_t count;
};
struct sim_replay {
    uint32_t id;
    struct sim_graph *graph;
};
struct sim_graph *sim_graph_new(void);
void sim_graph_end(struct sim_graph *graph);
bool sim_capture_begins(struct sim_stream *stream, struct sim_graph *graph);
struct sim_graph *sim_capture_ends(struct sim_stream *stream);
struct sim_node *sim_capture(struct sim_stream *stream, enum sim_node_kind kind, const struct sim_operation *operation);
void sim_capture_after(struct sim_stream *stream, struct sim_node *const *nodes, size_t count, bool instead);
struct sim_replay *sim_replay_new(struct sim_graph *graph);
void sim_replay_end(struct sim_replay *replay);
void sim_replay(struct sim_replay *replay, struct sim_stream *stream);

/* place.c: the timeline. */
void sim_fill(struct sim_operation *operation, const struct sim_stream *stream);
void sim_place(struct sim_operation *operation, struct sim_stream *stream, uint64_t duration); /* under the lock */
uint64_t sim_duration(const struct sim_operation *operation);
void sim_lock(void);
void sim_unlock(void);

/* buffers.c: records on their way to whoever asked for them. */
typedef void (*sim_buffer_request)(uint8_t **buffer, size_t *bytes, size_t *records);
typedef void (*sim_buffer_complete)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);
struct sim_buffers;
struct sim_buffers *sim_buffers_new(void);
void sim_buffers_callbacks(struct sim_buffers *buffers, sim_buffer_request request, sim_buffer_complete complete);
void sim_buffers_put(struct sim_buffers *buffers, const void *record, size_t bytes, uint64_t ready);
void sim_buffers_flush(struct sim_buffers *buffers, bool forced);
size_t sim_buffers_dropped(struct sim_buffers *buffers);
void sim_buffers_end(struct sim_buffers *buffers);

/* timebase.c: times in the clock of whoever reads the records. */
void sim_timebase(uint64_t (*clock)(void)); /* NULL: our own */
uint64_t sim_timebase_now(void);
uint64_t sim_timebase_of(uint64_t time);

/* sizes.c */
enum { SIM_NEWS = 255 }; /* a kind of record that no reader knows */
size_t sim_record_bytes(unsigned kind, unsigned version); /* 0: no record of this kind is ever made */
