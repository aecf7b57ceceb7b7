/*
 * trace_judge.h: is a trace sound? Takes its events one by one, in any order, and judges them when the last one is
 * there.
 *
 *   - an event has what its phase needs; durations are not negative; B and E pair up
 *   - slices of a row (pid, tid) nest strictly, and none stands there twice
 *   - what is on no row (b and e, S and F, by cat and id) pairs up
 *   - a flow (cat, id) has one start and an end, the end not before the start, each at a slice of its row
 *   - a backward operator comes after its forward one, the device's work after the call that asked for it (correlation)
 *   - Ev Idx is unique; the numbers of ProfilerStep# rise with time, and the steps do not overlap
 *   - slices lie inside the record window, where the file names it
 *   - where tprof wrote the file: kept operators are there, all of them
 *
 * What other writers are known to do, and readers to bear, is a note and no finding (docs/check.md).
 *
 * Memory: 32 bytes a slice, 48 a flow event or a call with a correlation, on the heap.
 */
#ifndef TP_TRACE_JUDGE_H
#define TP_TRACE_JUDGE_H

#include "../output/trace_in.h"
#include "findings.h"

struct judge_counts {
    uint64_t slices, rows, flows;
    bool by_tprof;
    uint64_t kept, lost;
};

struct judge;

struct judge *judge_new(struct findings *findings); /* NULL: out of memory */
void judge_free(struct judge *judge);

/* As callbacks of tp_trace_in_read; context is the judge. Negative: out of memory. */
int judge_event(void *context, const struct tp_trace_event *event);
int judge_member(void *context, const char *path, enum tp_json_token token, const struct tp_json_in *json);
int judge_twice(void *context, const char *path, uint64_t offset);

/* What a file without traceEvents is. */
const char *judge_what_else(const struct judge *judge);

/* After the last event of a file whose JSON is whole. */
void judge_end(struct judge *judge, struct judge_counts *ret_counts);

#endif
