/*
 * delivery.h: from whole cycles to files, and from all of them to the summary and the report at the end, of one process:
 * this one (live.c), or one that died (recover.c). The table of writers stands in delivery.c.
 *
 * Threads: one at a time, but for step, which is called under the session's lock while a cycle may be written.
 */
#ifndef TP_DELIVERY_H
#define TP_DELIVERY_H

#include <stdatomic.h>

#include "../agent/cycle.h"
#include "../agent/identity.h"
#include "../agent/intern.h"
#include "../agent/settings.h"
#include "../agent/spool.h"
#include "log_report.h"

struct tp_delivery;

/* Whose run it is. All that it points to stays as it is until free. */
struct tp_delivery_process {
    const struct tp_settings *settings;
    const struct tp_identity *identity;
    struct tp_log *log;
    const struct tp_intern *names;
    const char *folder; /* absolute, with its escapes (tp_folder_absolute) */
    struct tp_clock_pair attached;
    const char *pytorch, *observed, *command; /* as in struct tp_run_report; may be NULL */
    /* The process is dead. Files are named by its own times, so that a second try finds those of the first. */
    bool died;
    uint64_t died_at_ns; /* since the epoch */
    const _Atomic bool *stop; /* NULL, or: true means to write no more */
};

struct tp_delivery_end {
    const char *ended;           /* by which way the process left */
    struct tp_clock_pair clock;  /* then */
    uint64_t edges, next_step;
    struct tp_cost cost;         /* without held_bytes and budget_bytes */
    bool prints;                 /* the report, on stderr */
};

struct tp_delivery_totals {
    uint64_t files, failures; /* written, or found written by a try before; not written */
    uint64_t kept;
};

/* NULL: no memory. */
struct tp_delivery *tp_delivery_new(const struct tp_delivery_process *process);
void tp_delivery_step(struct tp_delivery *delivery, uint64_t number, uint64_t begin, uint64_t end, enum tp_step_kind kind);
/* held: bytes that records take now. Notes in cycle->written what is there. */
void tp_delivery_cycle(struct tp_delivery *delivery, struct tp_cycle *cycle, size_t held);
void tp_delivery_finish(struct tp_delivery *delivery, const struct tp_delivery_end *end);
struct tp_delivery_totals tp_delivery_totals(const struct tp_delivery *delivery);
void tp_delivery_free(struct tp_delivery *delivery);

/* A child process is worth files only if it trained. */
bool tp_delivery_is_wanted(const struct tp_settings *settings, bool is_child, uint64_t edges, bool saw_backward);

#endif
