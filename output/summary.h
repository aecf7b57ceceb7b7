/*
 * summary.h: summary.json of a process. Its schema is described in docs/summary.md; who changes it, changes that page,
 * and the number where a reader of the old form would be misled.
 */
#ifndef TP_SUMMARY_H
#define TP_SUMMARY_H

#include "log_report.h"
#include "sink.h"

#define TP_SUMMARY_SUFFIX "summary.json"
#define TP_SUMMARY_SCHEMA 1

/* Writes the whole file into the sink, which stays open. 0, -ENOMEM, or the sink's failure. */
int tp_summary_write(struct tp_sink *sink, const struct tp_run_report *run, struct tp_arena *scratch);

#endif
