#include "trace_feed.h"

#include <stdlib.h>
#include <string.h>

void feed_init(struct trace_feed *feed, uint64_t begin_ns)
{
    *feed = (struct trace_feed){.segment = SIZE_MAX};
    feed->identity = (struct tp_identity){.host = "node1", .process = "python", .pid = 4000, .world_size = 1};
    feed->report = (struct tp_cycle_report){
        .settings = &feed->settings,
        .identity = &feed->identity,
        .window_begin_ns = begin_ns,
        .window_end_ns = begin_ns + UINT64_C(10000000000),
        .ticks_per_ns = 2.5,
        .trace_id = "0123456789ABCDEF0123456789ABCDEF",
        .trace_name = "/tmp/a.pt.trace.json",
    };
}

void feed_free(struct trace_feed *feed)
{
    free(feed->events);
}

size_t feed_begin(struct trace_feed *feed, const struct tp_thread_info *thread, const char *name, uint64_t start_ns)
{
    if (feed->count == feed->capacity) {
        feed->capacity = feed->capacity ? feed->capacity * 2 : 1024;
        feed->events = realloc(feed->events, feed->capacity * sizeof *feed->events);
    }
    feed->events[feed->count] = (struct tp_event){
        .start_ns = start_ns,
        .end_ns = feed->report.window_end_ns,
        .index = feed->count,
        .parent = UINT64_MAX,
        .name = name,
        .name_bytes = (uint32_t)strlen(name),
        .flags = TP_EVENT_UNFINISHED,
        .sequence = -1,
        .schema = "",
        .forward_parent = UINT64_MAX,
        .thread = thread,
        .end_thread = thread->serial,
    };
    return feed->count++;
}

struct tp_event *feed_end(struct trace_feed *feed, size_t index, uint64_t end_ns)
{
    struct tp_event *event = &feed->events[index];
    event->end_ns = end_ns;
    event->flags &= (uint8_t)~TP_EVENT_UNFINISHED;
    return event;
}

struct tp_event *feed_range(struct trace_feed *feed, const struct tp_thread_info *thread, const char *name,
                            uint64_t start_ns, uint64_t end_ns)
{
    return feed_end(feed, feed_begin(feed, thread, name, start_ns), end_ns);
}

static int by_end(const void *a, const void *b)
{
    const struct tp_event *const *first = a, *const *second = b;
    return ((*first)->end_ns > (*second)->end_ns) - ((*first)->end_ns < (*second)->end_ns);
}

/* As the model numbers them: in the order of their ends. */
static void number_ends(struct tp_event *segment, size_t count, uint64_t first)
{
    struct tp_event **ends = malloc((count + 1) * sizeof *ends);
    for (size_t i = 0; i < count; i++)
        ends[i] = &segment[i];
    qsort(ends, count, sizeof *ends, by_end);
    for (size_t i = 0; i < count; i++)
        ends[i]->end_index = first + i;
    free(ends);
}

static int deliver(struct trace_feed *feed, const struct tp_writer *writer, void *state)
{
    struct tp_event *segment = malloc((feed->count + 1) * sizeof *segment);
    bool *done = calloc(feed->count + 1, sizeof *done);
    uint64_t delivered = 0;
    int result = 0;
    for (size_t from = 0; from < feed->count && result == 0; from += feed->segment) {
        size_t until = feed->segment < feed->count - from ? from + feed->segment : feed->count, size = 0;
        uint64_t now = until < feed->count ? feed->events[until].start_ns : UINT64_MAX;
        for (size_t i = 0; i < until; i++) {
            if (!done[i] && feed->events[i].end_ns <= now) {
                segment[size++] = feed->events[i];
                done[i] = true;
            }
        }
        number_ends(segment, size, delivered);
        delivered += size;
        result = writer->segment ? writer->segment(state, segment, size) : 0;
        if (until == feed->count)
            break;
    }
    free(done);
    free(segment);
    return result;
}

int feed_write(struct trace_feed *feed, const struct tp_writer *writer, int folder, const char *name, int gzip_level)
{
    struct tp_arena arena;
    tp_arena_init(&arena, 0);
    struct tp_sink *sink = tp_sink_open(
        &(struct tp_sink_options){.folder = folder, .name = name, .gzip_level = gzip_level}, &arena, NULL);
    struct tp_writer_file file = {sink, &arena};
    void *state = sink ? writer->begin(&feed->report, &file) : NULL;
    int result = state ? deliver(feed, writer, state) : -1;
    feed->counts.kept = feed->count;
    if (result == 0)
        result = writer->end(state, &feed->counts);
    if (sink && result < 0)
        tp_sink_abandon(sink);
    else if (sink)
        result = tp_sink_close(sink, NULL, NULL);
    tp_arena_free(&arena);
    return result;
}
