/*
 * trace_feed.h: hand-made events for a writer, given to it in segments as the model does: in the order of their index,
 * a range that is open longer than its segment in a later one. For unit tests and make_trace.
 */
#ifndef TP_TRACE_FEED_H
#define TP_TRACE_FEED_H

#include "../../output/writer.h"

struct trace_feed {
    struct tp_event *events;
    size_t count, capacity;
    size_t segment; /* events a segment */
    struct tp_settings settings;
    struct tp_identity identity;
    struct tp_cycle_report report;
    struct tp_model_counts counts;
};

/* A window of ten seconds that begins at begin_ns; no steps; default settings. */
void feed_init(struct trace_feed *feed, uint64_t begin_ns);
void feed_free(struct trace_feed *feed);

/* Opens a range that is unfinished until feed_end; returns its index. The name must live as long as the feed. */
size_t feed_begin(struct trace_feed *feed, const struct tp_thread_info *thread, const char *name, uint64_t start_ns);
struct tp_event *feed_end(struct trace_feed *feed, size_t index, uint64_t end_ns);
struct tp_event *feed_range(struct trace_feed *feed, const struct tp_thread_info *thread, const char *name,
                            uint64_t start_ns, uint64_t end_ns);

/* Runs the writer into a file. 0, or the first failure of writer or sink. */
int feed_write(struct trace_feed *feed, const struct tp_writer *writer, int folder, const char *name, int gzip_level);

#endif
