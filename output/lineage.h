/*
 * lineage.h: which range torch takes for the parent of which, found out before events are written: a range that is still
 * open may turn out to be left out, or to be one with its only child of the same name, and steps are known to the
 * nanosecond when all ranges are.
 *
 * It takes the segments of a cycle once; a second run over the same cycle then asks. Memory: eight bytes for each range
 * that is one with its child, or is left out and has one.
 */
#ifndef TP_LINEAGE_H
#define TP_LINEAGE_H

#include "writer.h"

struct tp_lineage;

#define TP_LINEAGE_NONE UINT64_MAX

/* NULL: out of memory. The report must stay as it is. */
struct tp_lineage *tp_lineage_new(const struct tp_cycle_report *report, struct tp_arena *arena);
int tp_lineage_segment(struct tp_lineage *lineage, const struct tp_event *events, size_t count);
int tp_lineage_end(struct tp_lineage *lineage); /* 0 or -ENOMEM */

/* How an event is shown. */
enum tp_lineage_part {
    TP_LINEAGE_SHOWN,
    TP_LINEAGE_LEFT_OUT,
    TP_LINEAGE_MERGED, /* one with the range around it */
};

enum tp_lineage_part tp_lineage_part(const struct tp_lineage *lineage, const struct tp_event *event);

/* The index of the event around it that is shown, or TP_LINEAGE_NONE; *ret_step: it is a step, by its place in the
 * report. */
uint64_t tp_lineage_parent(struct tp_lineage *lineage, const struct tp_event *event, bool *ret_step);

/* Do steps lie directly in this event? */
bool tp_lineage_has_steps(const struct tp_lineage *lineage, uint64_t index);

/* Of a step that is drawn: where, its index, and that of the range around it. False: it is not. */
struct tp_lineage_step {
    uint64_t start_ns, end_ns, index, parent;
};
bool tp_lineage_step(const struct tp_lineage *lineage, size_t step, struct tp_lineage_step *ret);

#endif
