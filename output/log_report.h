/*
 * log_report.h: what is printed once, at the end, on stderr: the table with what it covers, the times of all steps,
 * what was lost, what tprof cost, and where the files are. At most 120 columns; only a path or a command may be longer,
 * on a line of its own.
 *
 * struct tp_run_report is its input and that of summary.json: plain values, gathered when all cycles are written.
 */
#ifndef TP_LOG_REPORT_H
#define TP_LOG_REPORT_H

#include "averages.h"
#include "step_times.h"
#include "text.h"
#include "writer.h"

#define TP_LOG_REPORT_COLUMNS 120

struct tp_report_file {
    const char *path; /* whole; as the user can open it */
    uint64_t bytes;
    const char *failure; /* why there is no such file, or NULL */
};

struct tp_report_cycle {
    uint64_t number;
    uint64_t window_begin_ns, window_end_ns; /* since the epoch */
    uint64_t first_step, last_step;          /* if has_steps */
    bool has_steps;
    bool partial;
    const char *partial_why; /* one clause, or NULL */
    struct tp_model_counts counts;
    uint64_t lost_before; /* as in struct tp_cycle_report */
    const struct tp_report_file *files;
    size_t file_count;
};

struct tp_cost {
    uint64_t background_cpu_ns; /* of both background threads */
    uint64_t edge_ns;           /* at step marks and edges, on the program's threads */
    uint64_t attach_ns;         /* at attach, on the program's thread */
    uint64_t held_bytes;        /* at most, of budget_bytes */
    uint64_t budget_bytes;
};

struct tp_report_setting {
    const char *name, *value; /* as the user gave it */
};

struct tp_run_report {
    const struct tp_identity *identity;
    const struct tp_settings *settings;
    const struct tp_report_setting *settings_given; /* those that are not the default */
    size_t settings_given_count;
    const char *pytorch;  /* version, or NULL */
    const char *observed; /* in which way: "callback"; or NULL */
    const char *command;  /* arguments, separated by blanks; or NULL */
    const char *ended;    /* "return", "SIGTERM", ...; or NULL */
    struct tp_clock_pair clock_begin, clock_end;
    struct tp_clock_map map; /* of the step times */
    const struct tp_averages *averages; /* of all cycles; NULL: there was no memory for them */
    const struct tp_step_times *steps;
    const struct tp_report_cycle *cycles; /* the first ones, in order */
    size_t cycle_count;
    uint64_t cycles_left_out; /* written, but not in the array */
    struct tp_model_counts left_out;
    uint64_t left_out_lost_before;
    const struct tp_report_file *files; /* of the run, not of a cycle: summary.json */
    size_t file_count;
    const char *const *notes; /* what could not be done, each one sentence */
    size_t note_count;
    struct tp_cost cost;
};

/* Sums over all cycles. */
struct tp_report_totals {
    uint64_t kept, lost_no_room, lost_before, unwritten, unfinished, names_cut, inputs_cut, damaged;
};

struct tp_report_totals tp_report_totals(const struct tp_run_report *run);

/* 0, or -ENOMEM when it was cut. */
int tp_log_report(struct tp_text *text, const struct tp_run_report *run);

#endif
