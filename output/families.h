/*
 * families.h: what lay directly inside each range, gathered while events come in segments: a range that is open longer
 * than a segment comes after those inside it, and what is known of these waits for it here. Names that torch's tables
 * leave out are no children: their caller does not add them.
 *
 * torch takes an only child for one with a parent of the same name (torch/autograd/profiler_util.py,
 * EventList._remove_dup_nodes): count and only tell.
 *
 * Memory goes with the number of open ranges that had a child, not with that of events.
 */
#ifndef TP_FAMILIES_H
#define TP_FAMILIES_H

#include "../agent/arena.h"
#include "ids.h"
#include "model.h"

struct tp_child {
    uint64_t index;
    uint64_t label; /* the caller's */
    int64_t total_ns, self_ns;
    uint64_t flops;
};

struct tp_family {
    uint64_t parent;      /* its index */
    uint64_t count;       /* children so far */
    struct tp_child only; /* the first one */
    int64_t left_out_ns;  /* time of those that the tables leave out */
    struct tp_ids ids;    /* of the caller */
};

struct tp_families;

struct tp_families *tp_families_new(struct tp_arena *arena); /* NULL: out of memory */

/* A segment begins: what waited for its ranges is theirs now. 0 or -ENOMEM. The segment stays as it is until the next
 * one begins. */
int tp_families_begin(struct tp_families *families, const struct tp_event *events, size_t count);

/* Of the event at this place of the segment; whole when the segment has been gone through. */
struct tp_family *tp_families_of(struct tp_families *families, size_t at);
/* Of the range around that event, which must have one (parent). NULL: out of memory. */
struct tp_family *tp_families_around(struct tp_families *families, size_t at);
/* Where in the segment the range around the event stands; false: it has not come yet, or there is none. */
bool tp_families_parent_at(const struct tp_families *families, size_t at, size_t *ret);

void tp_family_add(struct tp_family *family, const struct tp_child *child);

#endif
