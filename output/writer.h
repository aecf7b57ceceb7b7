/*
 * writer.h: one output format. A writer is begun, given every segment of the cycle, and ended; it may fail without harm
 * to the others. Everything that it may know of the cycle besides the events is in struct tp_cycle_report, which is
 * const while writers run.
 */
#ifndef TP_WRITER_H
#define TP_WRITER_H

#include "../agent/arena.h"
#include "../agent/base.h"
#include "../agent/clock.h"
#include "../agent/identity.h"
#include "../agent/settings.h"
#include "../agent/steps.h"
#include "model.h"
#include "sink.h"

struct tp_averages;
struct tp_lineage;

struct tp_step_span {
    uint64_t number;
    uint64_t start_ns, end_ns; /* since the epoch */
    struct tp_thread_info thread; /* that made the mark which ended it (or began it) */
    enum tp_step_kind kind;
};

struct tp_cycle_report {
    const struct tp_settings *settings;
    const struct tp_identity *identity;
    uint64_t cycle;                  /* 0, 1, ... */
    uint64_t window_begin_ns, window_end_ns;
    struct tp_clock_pair clock_begin, clock_end;
    double ticks_per_ns;
    const struct tp_step_span *steps; /* those that overlap the window, in order */
    size_t step_count;
    bool steps_by_program;   /* the program's own ProfilerStep ranges are in the events: none are to be added */
    bool partial;            /* the program ended before the schedule did */
    const char *partial_why; /* one clause, or NULL */
    bool is_cut;             /* partial, and not all that was recorded is written */
    uint64_t lost_before;    /* begins in the window whose blocks were let go before the model saw them */
    const char *trace_id;    /* may be empty */
    const char *trace_name;  /* final path, for traceName */
    /* What tables are of: the cycle, or with acc_events all cycles so far. There in end alone; NULL: no memory. */
    const struct tp_averages *averages;
    struct tp_lineage *lineage; /* where events are written; NULL: no memory */
    const char *earlier_events; /* the events.json of the cycle before, with acc_events; NULL: none */
    uint64_t dropped_end_ns; /* when lost_before > 0: events before this time are not complete; else 0 */
};

/* Is this type of activity one of those that were asked for? */
static inline bool tp_writer_shows(const struct tp_settings *settings, enum tp_activity_type type)
{
    const struct tp_activities *activities = &settings->activities;
    return !activities->set ||
           (activities->groups & 1u << TP_ACTIVITY_CPU && activities->types[TP_ACTIVITY_CPU] & 1u << type);
}

struct tp_writer_file {
    struct tp_sink *sink;
    struct tp_arena *arena; /* for what this writer holds until its end */
};

struct tp_writer {
    const char *name;   /* "chrome" */
    const char *suffix; /* "pt.trace.json"; ".gz" is added where gzip is on and gzip is true */
    bool gzip;
    /* begin returns the writer's state, NULL when memory is out; counts is complete only in end. */
    void *(*begin)(const struct tp_cycle_report *report, const struct tp_writer_file *file);
    int (*segment)(void *state, const struct tp_event *events, size_t count); /* NULL: it needs none */
    int (*end)(void *state, const struct tp_model_counts *counts);
};

extern const struct tp_writer tp_chrome_writer;
extern const struct tp_writer tp_execution_trace_writer;

#endif
