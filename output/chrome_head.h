/*
 * chrome_head.h: the keys of a Chrome trace around its traceEvents: who, where, with which settings, and tprof's own
 * object. Apart from the events, because this is what changes with every setting.
 */
#ifndef TP_CHROME_HEAD_H
#define TP_CHROME_HEAD_H

#include "json.h"
#include "writer.h"

/* Kineto's base of all time stamps: the beginning of a period of 7889238 s, so that microseconds fit a double. */
uint64_t tp_chrome_base_ns(uint64_t realtime_ns);

/* The members before traceEvents. */
void tp_chrome_write_head(struct tp_json *json, const struct tp_cycle_report *report);

/* A line for each key of the user's metadata that is not his to set, and is left out. */
void tp_chrome_tell_reserved(const struct tp_settings *settings);

/* The members behind it. shown: how many of the kept events stand in traceEvents (settings may leave out a kind). */
void tp_chrome_write_tail(struct tp_json *json, const struct tp_cycle_report *report,
                          const struct tp_model_counts *counts, uint64_t shown);

#endif
